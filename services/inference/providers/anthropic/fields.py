"""Fields unknown to the canonical request, for servers of Anthropic's dialect. Pure."""

from collections.abc import Mapping
from typing import Any

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from services.inference.learned.refusals import THINKING_BUDGET, UNSIGNED_THINKING
from services.inference.providers.anthropic import sanitizing
from services.inference.providers.base import AnswerForm, Call
from services.inference.providers.opaque_json import Json
from services.inference.providers.request_fields import RequestFields, Rules
from services.inference.providers.schemas import (
    OpenObjectError,
    for_answer,
    object_schema,
    with_property_names,
)
from services.inference.stream.property_names import PropertyNames, with_names


class AnthropicFields(RequestFields):
    """Decides which parts of a call's request a server is sent; see `RequestFields`.

    Attributes:
        official: whether the provider is Anthropic itself.
        takes_unsigned: whether unsigned thinking may be sent.
        property_names: valid names of properties that Anthropic rejects, by tool.
        takes_budgets: whether a token budget for thinking may be sent.
        has_marks: whether the conversation or a tool has marks for the prompt cache.
    """

    dialect = DIALECT_ANTHROPIC

    def __init__(
        self, call: Call, *, pass_stateful: bool, fetches_urls: bool, official: bool
    ) -> None:
        super().__init__(call, Rules(pass_stateful, fetches_urls))
        self.official = official
        self.has_marks = False
        self.property_names: dict[str, PropertyNames] = {}
        self.takes_unsigned = not official and UNSIGNED_THINKING not in call.refused_fields
        self.takes_budgets = THINKING_BUDGET not in call.refused_fields

    def add_schema(self, tool: Json, schema: Mapping[str, Any], *, strict: bool) -> None:
        """Add its schema to a tool as Anthropic accepts it, and its strictness where possible.

        A strict tool takes the keywords of structured outputs alone, and no maps.
        """
        if strict:
            try:
                schema = for_answer(object_schema(schema))
            except OpenObjectError:
                strict = False
                self.drop("tools[].strict")
        tool["input_schema"] = self.tool_schema(tool["name"], schema)
        if strict:
            tool["strict"] = True

    def tool_schema(self, tool: str, schema: Mapping[str, Any]) -> Json:
        """Return a tool's schema as Anthropic accepts it, and remember what it renamed."""
        fitted = object_schema(schema)
        names = sanitizing.property_names(fitted)
        if names is None:
            return fitted
        self.property_names[tool] = names
        self._call.property_names[tool] = names.inverted()
        # The names are restored in events.
        self._call.accepts = AnswerForm.EVENTS
        return with_property_names(fitted, {**names.inner, **names.outer})

    def tool_input(self, tool: str, arguments: str) -> str:
        """Return the arguments of an earlier call with the names that the tool's schema has."""
        names = self.property_names.get(tool)
        return with_names(arguments, names) if names else arguments
