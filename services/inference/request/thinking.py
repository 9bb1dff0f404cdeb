"""Thinking blocks: signatures, and their treatment in requests.

Some providers sign thinking and reject foreign signatures. Thinking of other providers is signed by
the gateway, so that forged thinking of callers can be detected. This module uses no clock, settings
or network.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Dialect, Message, Thinking
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.sealed_summary import SummarySealer

# Kinds of blocks with thinking.
KINDS = frozenset({"thinking", "redacted_thinking"})
# Base64 has no dot, so this prefix never starts a provider's signature.
_PREFIX = "gw1."
# Prefix of thinking encrypted by OpenAI (Fernet, version 128).
_ENCRYPTED = "gAAAA"
# Prefixes of carried state: OpenRouter's `reasoning_details`, and Gemini's signatures with the
# kind of their part, or whole parts. Anything else is the signature of a server of Anthropic's
# dialect.
DETAILS = "details:"
# Prefix of carried signatures of Claude, for callers whose dialect has no place for them.
CLAUDES = "claude:"
_GEMINIS = ("thought:", "text:", "call:", "part:")

# Strategies by which a caller says that thinking is not to be sent.
_OMITTING = (
    inference_pb2.THINKING_BLOCK_STRATEGY_DISCARD,
    inference_pb2.THINKING_BLOCK_STRATEGY_FLATTEN,
)

# A base64 signature is Anthropic's; providers without a dialect verify it themselves.
_DIALECTS_WITH_SIGNATURES = (
    conversation_pb2.DIALECT_ANTHROPIC,
    conversation_pb2.DIALECT_UNSPECIFIED,
)


def is_gateway_signature(signature: str) -> bool:
    """Return whether a signature has the gateway's prefix; it may be invalid."""
    return signature.startswith(_PREFIX)


def is_encrypted(signature: str) -> bool:
    """Return whether a signature is thinking encrypted by OpenAI, which only OpenAI can read."""
    return signature.startswith(_ENCRYPTED)


def is_provider_signature(signature: str) -> bool:
    """Return whether a signature may be Anthropic's: base64, not empty, and not OpenAI's."""
    if is_encrypted(signature):
        return False
    try:
        return bool(binascii.a2b_base64(signature.encode(), strict_mode=True))
    except binascii.Error:
        return False


def _is_state_of(carried: str, dialect: Dialect.ValueType) -> bool:
    """Return whether a provider of a dialect can read state that a signature carries."""
    if carried.startswith(DETAILS):
        return dialect == conversation_pb2.DIALECT_OPENAI
    if carried.startswith(_GEMINIS):
        # Google has an API of OpenAI's dialect too.
        return dialect in (conversation_pb2.DIALECT_OPENAI, conversation_pb2.DIALECT_GEMINI)
    return dialect == conversation_pb2.DIALECT_ANTHROPIC


class Signer:
    """Signs thinking in the gateway's name: `gw1.<key id>.<model>[.<carried>].<HMAC-SHA256>`.

    A signature may carry data that the provider needs back (Gemini's thought signatures). The
    model's name, the carried data and the HMAC are base64url without padding; the HMAC covers all
    of them and the text. Old keys stay valid while they are configured.
    """

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        """Create a signer with keys by id (without a dot), and the id of the signing key."""
        if current not in keys or any("." in key_id for key_id in keys):
            raise ValueError("the current key must be among the keys, and no id may hold a dot")
        self._keys = dict(keys)
        self._current = current

    def summary_sealer(self) -> SummarySealer:
        """Return the sealer of summaries with the same keys."""
        return SummarySealer(self._keys, self._current)

    def sign(self, text: str, model: str, carried: str = "") -> str:
        """Return the signature of a model's thinking, with carried data."""
        return self._signature(self._current, text, model, carried)

    def carried(self, signature: str, text: str) -> str | None:
        """Return the data carried by a signature of `text`, or None if it is invalid."""
        key_id, _, remainder = signature.removeprefix(_PREFIX).partition(".")
        if key_id not in self._keys:
            return None
        name, _, remainder = remainder.partition(".")
        packed, dot, _ = remainder.partition(".")
        try:
            model = _decoded(name).decode()
            carried = _decoded(packed).decode() if dot else ""
        except ValueError:  # invalid base64 or UTF-8
            return None
        expected = self._signature(key_id, text, model, carried)
        return carried if hmac.compare_digest(expected.encode(), signature.encode()) else None

    def _signature(self, key_id: str, text: str, model: str, carried: str) -> str:
        code = _encoded(_code(self._keys[key_id], text, model, carried))
        packed = f"{_encoded(carried.encode())}." if carried else ""
        return f"{_PREFIX}{key_id}.{_encoded(model.encode())}.{packed}{code}"


def _code(key: bytes, text: str, model: str, carried: str) -> bytes:
    # The lengths separate the parts unambiguously, and the plus sign separates carried bytes from
    # text.
    name, packed = model.encode(), carried.encode()
    mac = hmac.new(key, b"+%d:%b" % (len(packed), packed) if packed else b"", hashlib.sha256)
    mac.update(b"%d:%b" % (len(name), name))
    mac.update(text.encode())
    return mac.digest()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)


def apply_strategy(
    request: GenerateRequest,
    *,
    target_checks: bool,
    target_dialect: Dialect.ValueType,
    signer: Signer,
) -> GenerateRequest:
    """Apply the `thinking_block_strategy` of a request for a target; return the request.

    DISCARD removes thinking, and FLATTEN turns it into text. PRESERVE keeps:

    - for a target that checks signatures, thinking whose signature has the form of its own, or
      carries one of Claude's if that is its own. In the dialect of responses that is all thinking
      of a request of this dialect that the gateway has not signed: it is encrypted, or unsigned if
      the server encrypts none.
    - for any other target, thinking signed by the gateway, or all thinking if the request
      `has_unsigned_thinking`. Servers of Anthropic's dialect also get thinking with any other
      signature, which may be their own, but never thinking encrypted by OpenAI.

    For targets that do not check signatures, a gateway signature that carries the state of a
    provider of the same dialect is replaced by that state. No other provider is sent it: thinking
    keeps its text, and redacted thinking is removed. Messages that become empty are removed.

    Args:
        request: the request; not modified, and returned as it is if it has no thinking.
        target_checks: whether the target rejects thinking that it has not signed.
        target_dialect: the target's dialect; DIALECT_UNSPECIFIED for none.
        signer: verifies the gateway's own signatures.
    """
    first = _first_thinking(request.messages)
    if first is None:
        return request
    strategy = request.thinking_block_strategy
    target = _Target(target_dialect, target_checks, signer)

    def treated(block: Block) -> Block | None:
        if not _is_thinking(block):
            return block
        if strategy == inference_pb2.THINKING_BLOCK_STRATEGY_DISCARD:
            return None
        if strategy == inference_pb2.THINKING_BLOCK_STRATEGY_FLATTEN:
            return _flattened(block.thinking)
        return _preserved(block, request, target)

    messages = list(request.messages)
    for index in range(first, len(messages)):
        if any(_is_thinking(block) for block in messages[index].blocks):
            messages[index] = _with_blocks(messages[index], map(treated, messages[index].blocks))
    changed = GenerateRequest()
    changed.CopyFrom(request)
    del changed.messages[:]
    changed.messages.extend(one for one in messages if one.blocks or one.HasField("extra"))
    return changed


def loses_thinking(
    caller: GenerateRequest, request: GenerateRequest, treated: GenerateRequest
) -> bool:
    """Return whether `apply_strategy` left out thinking that its caller wants to be preserved.

    Args:
        caller: the request as its caller sent it.
        request: the request before.
        treated: the request after.
    """
    return (
        treated is not request
        and caller.thinking_block_strategy not in _OMITTING
        and _count(treated.messages) < _count(request.messages)
    )


def _count(messages: Iterable[Message]) -> int:
    return sum(_is_thinking(block) for message in messages for block in message.blocks)


class _Target(NamedTuple):
    """The provider that thinking is sent to.

    Attributes:
        dialect: its dialect; DIALECT_UNSPECIFIED for none.
        checks: whether it rejects thinking that it has not signed.
        signer: verifies the gateway's own signatures.
    """

    dialect: Dialect.ValueType
    checks: bool
    signer: Signer

    @property
    def signs(self) -> bool:
        """Whether its signatures are in base64."""
        is_checked = self.checks and self.dialect in _DIALECTS_WITH_SIGNATURES
        return is_checked or self.dialect == conversation_pb2.DIALECT_ANTHROPIC

    def may_have_made(self, block: Block, dialect: Dialect.ValueType) -> bool:
        """Return whether thinking of a request in `dialect`, not of the gateway, may be its own."""
        if block.HasField("redacted_thinking"):
            return self.signs
        signature = block.thinking.signature
        if self.checks and self.dialect == conversation_pb2.DIALECT_RESPONSES:
            return dialect == self.dialect
        if self.checks:
            return self.signs and is_provider_signature(signature)
        return self.signs and signature != "" and not is_encrypted(signature)


def _preserved(block: Block, request: GenerateRequest, target: _Target) -> Block | None:
    """Return a thinking block of a request as it is sent to a target; None if it is not."""
    is_redacted = block.HasField("redacted_thinking")
    proof = block.redacted_thinking if is_redacted else block.thinking.signature
    if not is_gateway_signature(proof):
        if target.may_have_made(block, request.dialect):
            return block
        if is_redacted or target.checks or not request.has_unsigned_thinking:
            return None
        return _with_proof(block, "") if proof else block
    text = block.thinking.text
    carried = target.signer.carried(proof, text)
    if carried and carried.startswith(CLAUDES):
        if target.signs:
            return _with_proof(block, carried.removeprefix(CLAUDES))
    elif carried and not target.checks and _is_state_of(carried, target.dialect):
        return _with_proof(block, carried)
    if is_redacted or target.checks or (carried and not text):
        return None
    return block if request.has_unsigned_thinking or carried is not None else None


def _with_proof(block: Block, proof: str) -> Block:
    """Return a thinking block with the state of its provider in place of a signature of it."""
    if block.HasField("redacted_thinking"):
        return Block(redacted_thinking=proof)
    thought = block.thinking
    return Block(thinking=Thinking(text=thought.text, signature=proof, field=thought.field))


def _first_thinking(messages: Sequence[Message]) -> int | None:
    for index, message in enumerate(messages):
        for block in message.blocks:
            if _is_thinking(block):
                return index
    return None


def _is_thinking(block: Block) -> bool:
    return block.WhichOneof("kind") in KINDS


def _flattened(thinking: Thinking) -> Block | None:
    # Also called for redacted blocks, which have no readable text.
    return Block(text=f"<thinking>{thinking.text}</thinking>") if thinking.text else None


def _with_blocks(message: Message, blocks: Iterable[Block | None]) -> Message:
    kept = [block for block in blocks if block is not None]
    changed = Message(role=message.role, blocks=kept, name=message.name)
    if message.HasField("extra"):
        changed.extra.CopyFrom(message.extra)
    return changed
