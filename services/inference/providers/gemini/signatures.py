"""Gemini's thought signatures, and how canonical answers carry them from one turn to the next.

A signature belongs to one part of an answer and must be sent back on that part, else Gemini 3 and
later reject the next step of a tool loop (ai.google.dev/gemini-api/docs/thought-signatures).
Callers that require a single text receive it where Google's own OpenAI-compatible API puts it,
`extra_content.google.thought_signature`. Other callers receive it in a thinking block or a redacted
one, inside the gateway's own signature (`services.inference.request.thinking`), together with the
kind of part that it belongs to.
"""

import binascii
import re
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque

# Kinds of parts: the thought itself, the text before, the function call after; and a part that is
# carried whole, as a model needs back the calls of Google's tools beside functions.
THOUGHT, TEXT, CALL, PART = "thought", "text", "call", "part"

# Google's documented placeholder for function calls of other models.
NOT_SIGNED = "skip_thought_signature_validator"

# Fields of OpenAI's dialect, and the mark of signatures that Gemini's own API has made.
_FIELD, _GOOGLE, _SIGNED = "extra_content", "google", "thought_signature"
_API, _OWN_API = "api", "generateContent"
_OF_SIGNATURES = frozenset({_SIGNED, _API})

_CARRIED = re.compile(r"(thought|text|call|part):([A-Za-z0-9+/=_-]+)")
# Parts that are carried whole.
_OF_TOOLS = ("toolCall", "toolResponse")
_SIGNATURE = re.compile(r"[A-Za-z0-9+/=_-]+")


def packed(kind: str, signature: str) -> str:
    """Return a signature with the kind of its part."""
    return f"{kind}:{signature}"


def unpacked(carried: str) -> tuple[str, str]:
    """Return the kind and signature from `packed`; ("", "") for anything else."""
    match = _CARRIED.fullmatch(carried)
    return (match[1], match[2]) if match else ("", "")


def packed_part(part: dict[str, Any]) -> str:
    """Return a part of Google's own tools to be carried whole; "" for any other part."""
    if not any(name in part for name in _OF_TOOLS):
        return ""
    return packed(PART, binascii.b2a_base64(orjson.dumps(part), newline=False).decode())


def unpacked_part(carried: str) -> dict[str, Any]:
    """Return the part of `packed_part`, without its kind."""
    part: dict[str, Any] = orjson.loads(binascii.a2b_base64(carried))
    return part


def of_part(part: dict[str, Any]) -> str:
    """Return the signature of a part of an answer, or ""."""
    signature = part.get("thoughtSignature")
    return signature if isinstance(signature, str) and _SIGNATURE.fullmatch(signature) else ""


def of_call(carried: str) -> str:
    """Return the signature in a thinking block that belongs to the next call, or ""."""
    kind, signature = unpacked(carried)
    return signature if kind == CALL else ""


def signed_fields(signature: str) -> dict[str, Any]:
    """Return a signature as fields of OpenAI's dialect, for Google's server of that dialect."""
    return {_FIELD: {_GOOGLE: {_SIGNED: signature}}}


def for_chat(signature: str) -> Opaque:
    """Return a signature as fields of OpenAI's dialect, for callers, marked as of this API."""
    fields = {_FIELD: {_GOOGLE: {_SIGNED: signature, _API: _OWN_API}}}
    return Opaque(dialect=DIALECT_OPENAI, json=orjson.dumps(fields))


def for_server(fields: dict[str, Any], *, reads_signatures: bool) -> dict[str, Any]:
    """Return a caller's fields of OpenAI's dialect for a server of that dialect.

    A signature that is marked as of this API goes, without the mark, to servers that read it. One
    without the mark is the server's own.
    """
    match fields.get(_FIELD):
        case {"google": {"api": "generateContent"} as google, **others}:
            left_out = {_API} if reads_signatures else _OF_SIGNATURES
            kept = {name: value for name, value in google.items() if name not in left_out}
            left = {**others, _GOOGLE: kept} if kept else others
            return {
                name: left if name == _FIELD else value
                for name, value in fields.items()
                if left or name != _FIELD
            }
    return fields


def from_chat(fields: dict[str, Any]) -> str:
    """Return the signature in a caller's fields of OpenAI's dialect, or ""."""
    match fields.get("extra_content"):
        case {"google": {"thought_signature": str(signature)}} if _SIGNATURE.fullmatch(signature):
            return signature
    return ""
