"""Every part of a whole answer by the types of the SDKs, and an answer that has it."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tests.surface.bodies import values_of, wrapped
from tests.surface.gemini_answers import GeminiAnswer
from tests.surface.requests import Part, parts_in
from tests.surface.samples import is_needed, least
from tests.surface.sdk_types import fields_of

Json = dict[str, Any]

# Fields whose members' fields have rows of their own; all deeper ones are as their holders.
_ENTERED: Mapping[str, frozenset[str]] = {
    "answers_of_chat": frozenset(
        {"choices", "message", "usage", "tool_calls", "function", "custom", "annotations"}
    ),
    "answers_of_messages": frozenset({"content", "usage"}),
    "answers_of_responses": frozenset({"output", "usage"}),
    "answers_of_gemini": frozenset(
        {"candidates", "content", "parts", "functionCall", "promptFeedback", "usageMetadata"}
    ),
}


@cache
def root_of(table: str) -> Any:
    """Return the type of the answers of a table."""
    from anthropic.types.beta import BetaMessage
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    return {
        "answers_of_chat": ChatCompletion,
        "answers_of_messages": BetaMessage,
        "answers_of_responses": Response,
        "answers_of_gemini": GeminiAnswer,
    }[table]


@cache
def answer_parts(table: str) -> Sequence[Part]:
    """Return every part of the answers of a table."""
    fields = fields_of(root_of(table), enters=lambda name: name in _ENTERED[table])
    return parts_in(fields)


def answers(table: str, part: Part) -> tuple[Json, list[Json]]:
    """Return an answer with a part, and those that differ from it in this part alone."""
    field, way = part.field, part.field.steps[:-1]
    whole = least(root_of(table))

    def build(value: Any) -> Json:
        held = dict(least(field.holder) if way else whole)
        held.pop(field.name, None)
        if value is not None:
            held[field.name] = value
        return {**whole, **wrapped(way, held)}

    first, *others = values_of(part)
    if part.step is not None and not way and isinstance(whole.get(field.name), list):
        # Beside another block or item: what becomes of this one alone is seen.
        first, others = [*whole[field.name], *first], [whole[field.name]]
    elif not is_needed(field.holder, field.name, field.hint):
        others = [None]
    return build(first), [build(one) for one in others]
