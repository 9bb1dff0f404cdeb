"""Gemini's thought signatures, as the canonical model carries them from one turn to the next.

A signature belongs to one part of an answer and goes back on that part, else Gemini 3 and
later refuse the next step of a tool loop (ai.google.dev/gemini-api/docs/thought-signatures).
Callers of flat answers get it where Google's own OpenAI-compatible API puts it,
`extra_content.google.thought_signature`. Other callers get it in a thinking block, or in a
redacted one, where the gateway's signature carries it (`services.inference.thinking`)
together with the kind of part that it belongs to.
"""

import re
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque

# Kinds of parts: the thought itself, the text before, the function call after.
THOUGHT, TEXT, CALL = "thought", "text", "call"

# Google's documented placeholder for function calls of other models.
NOT_SIGNED = "skip_thought_signature_validator"

_CARRIED = re.compile(r"(thought|text|call):([A-Za-z0-9+/=_-]+)")
_SIGNATURE = re.compile(r"[A-Za-z0-9+/=_-]+")


def packed(kind: str, signature: str) -> str:
    """Return a signature with the kind of its part."""
    return f"{kind}:{signature}"


def unpacked(carried: str) -> tuple[str, str]:
    """Return the kind and signature from `packed`; ("", "") for anything else."""
    match = _CARRIED.fullmatch(carried)
    return (match[1], match[2]) if match else ("", "")


def of_part(part: dict[str, Any]) -> str:
    """Return the signature of a part of an answer, or ""."""
    signature = part.get("thoughtSignature")
    return signature if isinstance(signature, str) and _SIGNATURE.fullmatch(signature) else ""


def of_call(carried: str) -> str:
    """Return the signature of the next call that a thinking block carries, or ""."""
    kind, signature = unpacked(carried)
    return signature if kind == CALL else ""


def chat_fields(signature: str) -> dict[str, Any]:
    """Return the fields with a signature in OpenAI's dialect."""
    return {"extra_content": {"google": {"thought_signature": signature}}}


def for_chat(signature: str) -> Opaque:
    """Return these fields as a canonical Opaque."""
    return Opaque(dialect=DIALECT_OPENAI, json=orjson.dumps(chat_fields(signature)))


def from_chat(fields: dict[str, Any]) -> str:
    """Return the signature in OpenAI-dialect fields of a caller, or ""."""
    match fields.get("extra_content"):
        case {"google": {"thought_signature": str(signature)}} if _SIGNATURE.fullmatch(signature):
            return signature
    return ""
