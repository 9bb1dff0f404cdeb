"""OpenRouter's `reasoning_details`, and how callers of other dialects carry them. Pure.

They are the signed or encrypted thinking of the model behind OpenRouter, which needs them back
unchanged with the calls that they led to (openrouter.ai/docs, "Preserving reasoning"). Callers of
the same dialect receive the field itself. Others receive it inside the gateway's signature of a
thinking block (`services.inference.request.thinking`), without the text, which is that of the
block.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque
from services.inference.providers.bounds import dump
from services.inference.providers.opaque_json import Json
from services.inference.request.thinking import DETAILS
from services.inference.stream.unknown_fields import UnknownFields

FIELD = "reasoning_details"
_TEXTS = ("text", "summary")
# In place of a text that is that of the block.
_OF_THE_BLOCK = True


class ReceivedDetails:
    """The details of an answer that no block has carried yet."""

    __slots__ = ("_fields", "_texts")

    def __init__(self) -> None:
        self._fields: UnknownFields | None = None  # most answers have none
        self._texts: list[str] = []

    def add(self, details: Any, text: str) -> None:
        """Add a piece of details, with the thinking that arrived with it."""
        if isinstance(details, list) and all(isinstance(detail, dict) for detail in details):
            if self._fields is None:
                self._fields = UnknownFields(joins=True)
            self._fields.add(Opaque(dialect=DIALECT_OPENAI, json=dump({FIELD: details})))
            self._texts.append(text)

    def take(self) -> str:
        """Return and remove the details as state for a signature; "" if there are none."""
        if self._fields is None:
            return ""
        whole = Opaque()
        self._fields.put_into(whole)
        details = orjson.loads(whole.json)[FIELD]
        text = "".join(self._texts)
        self._fields, self._texts = None, []
        return DETAILS + orjson.dumps(_with_texts(details, text, _OF_THE_BLOCK)).decode()


def details_in(states: Iterable[tuple[str, str]]) -> list[Json]:
    """Return the details in the states of thinking blocks, each with the text of its block."""
    held = [(state, text) for state, text in states if state.startswith(DETAILS)]
    if not held:
        return []
    merged = UnknownFields(joins=True)
    for state, text in held:
        details = orjson.loads(state.removeprefix(DETAILS))
        json = orjson.dumps({FIELD: _with_texts(details, _OF_THE_BLOCK, text)})
        merged.add(Opaque(dialect=DIALECT_OPENAI, json=json))
    whole = Opaque()
    merged.put_into(whole)
    all_details: list[Json] = orjson.loads(whole.json)[FIELD]
    return all_details


def _with_texts(details: list[Json], text: str | bool, replaced_by: str | bool) -> list[Json]:
    """Return details in which a text is replaced by another value."""
    return [
        {
            name: replaced_by if name in _TEXTS and value == text else value
            for name, value in detail.items()
        }
        for detail in details
    ]
