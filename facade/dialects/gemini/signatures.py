"""Thinking of other providers in the `thoughtSignature` of a part. Pure.

The dialect has one place for state that a model needs back, a signature on a part of its answer.
The thinking that precedes a part, with the signatures of its provider or of the gateway, is packed
into the part's signature, in base64 as the clients require, and is read from there when the part
comes back. Signatures of Gemini itself do not begin like these, and stay on their parts.
"""

import binascii
from collections.abc import Sequence
from typing import Final

import orjson

from gateway.conversation.v1.conversation_pb2 import Block, Thinking

_MARK: Final = b"gateway:"
# What all of them begin with: complete groups of the mark's base64.
_BEGINNING: Final = "Z2F0ZXdheT"
_URL_SAFE: Final = str.maketrans("-_", "+/")


def packed(thoughts: Sequence[Block]) -> str:
    """Return the signature that carries blocks of thinking; "" for none that is signed."""
    items = [
        [None, block.redacted_thinking]
        if block.HasField("redacted_thinking")
        else [block.thinking.text, block.thinking.signature]
        for block in thoughts
    ]
    if not any(proof for _, proof in items):
        return ""
    return binascii.b2a_base64(_MARK + orjson.dumps(items), newline=False).decode()


def is_packed(signature: str | None) -> bool:
    """Return whether a signature may be one of `packed`."""
    return signature is not None and signature.startswith(_BEGINNING)


def unpacked(signature: str) -> Sequence[Block] | None:
    """Return the blocks of thinking in a signature of `packed`; None for any other signature."""
    text = signature.translate(_URL_SAFE).rstrip("=")
    try:
        data = binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
        items = orjson.loads(data.removeprefix(_MARK)) if data.startswith(_MARK) else None
    except ValueError:
        return None
    if not isinstance(items, list):
        return None
    blocks = []
    for item in items:
        match item:
            case [None, str(proof)]:
                blocks.append(Block(redacted_thinking=proof))
            case [str(thought), str(proof)]:
                blocks.append(Block(thinking=Thinking(text=thought, signature=proof)))
            case _:
                return None
    return blocks
