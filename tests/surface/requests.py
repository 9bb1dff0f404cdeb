"""Every part of a request by the types of the SDKs: the rows of the table of verdicts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, get_origin

from tests.surface.sdk_types import Field, Step, fields_of, has_one_value, step_into

_NOT_JSON = ("betas",)
# Blocks of Anthropic's messages, which the types allow in every message, by whose they are.
_OF_USERS = frozenset(
    {
        *("image", "document", "search_result", "tool_result", "container_upload"),
        *("tool_addition", "tool_removal", "mcp_tool_listing"),
    }
)
_ITEMS_WITH_TOOLS = ("ResponseToolSearchOutputItemParamParam", "AdditionalTools")
_OF_BOTH = frozenset({"text"})


@dataclass(frozen=True)
class Part:
    """A part of a request: a field, a member of a union or a value of an enumeration.

    Attributes:
        field: the field.
        step: the step into the member; None for a part that is none.
        value: the value; None for a part that is none.
    """

    field: Field
    step: Step | None = None
    value: Any = None

    @property
    def path(self) -> str:
        if self.step is not None:
            return ".".join(map(str, (*self.field.steps[:-1], self.step)))
        return self.field.path + (f"={self.value}" if self.value is not None else "")


@cache
def root_of(dialect: str) -> Any:
    """Return the type of the requests of a dialect."""
    from anthropic.types.beta import message_create_params as messages
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    return {
        "chat": chat.CompletionCreateParamsStreaming,
        "messages": messages.MessageCreateParamsStreaming,
        "responses": responses.ResponseCreateParamsStreaming,
    }[dialect]


@cache
def parts_of(dialect: str) -> tuple[Part, ...]:
    """Return every part of the requests of a dialect."""
    fields = fields_of(root_of(dialect), is_home=is_home)
    return parts_in(fields)


def parts_in(fields: Iterable[Field]) -> tuple[Part, ...]:
    """Return every part of some fields."""
    return tuple(part for field in fields for part in _parts(field))


def is_home(step: Step) -> bool:
    """Return whether the fields of a member are those of this field; see `is_possible`."""
    # Tools that an item brings have the fields of the request's tools.
    is_of_item = step.name == "tools" and step.holder.__name__ in _ITEMS_WITH_TOOLS
    return is_possible(step) and not is_of_item


def is_possible(step: Step) -> bool:
    """Return whether a member can be there: a block of a message by the message's role."""
    match step.holder.__name__, step.name:
        case "BetaUserMessageParam", "content":
            return step.tag in _OF_USERS | _OF_BOTH
        case "BetaAssistantMessageParam", "content":
            return step.tag not in _OF_USERS
    return True


def _parts(field: Field) -> Iterator[Part]:
    if field.names in _NOT_JSON or has_one_value(field):
        return
    members, literals = field.members, field.literals
    others = [
        value
        for value in field.values
        if value is not NoneType
        and value not in members
        and value is not dict
        and not _is_literal(value)
    ]
    if str in others or len(literals) < 2:
        literals = ()
    if len(members) > 1:
        steps = (step_into(field, member) for member in members)
        yield from (Part(field, step) for step in steps if is_possible(step))
    yield from (Part(field, value=value) for value in literals)
    if others or not (len(members) > 1 or literals):
        yield Part(field)


def _is_literal(value: Any) -> bool:
    return get_origin(value) is Literal
