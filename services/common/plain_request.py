"""The plain form of a request: the features that all dialects share, as plain Python values.

These are texts, function calls and their results, functions as tools, and the usual settings. A
facade reads the plain form from a conversation (`services.common.lazy_request`), and a provider of
another dialect writes its body from it. The body is the same as by way of the canonical request.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple


class PlainCall(NamedTuple):
    """A function call.

    Attributes:
        id: id of the call.
        name: name of the function.
        arguments: arguments as the model wrote them, usually a JSON object.
    """

    id: str
    name: str
    arguments: str


class PlainMessage(NamedTuple):
    """A message, or the result of a call.

    Attributes:
        role: role of the author; `tool` for a result.
        texts: text parts, none of them empty.
        calls: function calls of an assistant message, after its texts.
        call_id: id of the call that a result belongs to.
        is_error: whether the call failed.
        is_marked: whether a part has a `cache_control` marker of Anthropic's prompt cache.
        has_billing_line: whether a system message begins with a billing line, as in the canonical
            request.
    """

    role: Literal["system", "user", "assistant", "tool"]
    texts: Sequence[str]
    calls: Sequence[PlainCall] = ()
    call_id: str = ""
    is_error: bool = False
    is_marked: bool = False
    has_billing_line: bool = False

    def texts_without_billing(self) -> Sequence[str]:
        """Return the texts without the billing line."""
        if not self.has_billing_line:
            return self.texts
        rest = self.texts[0].partition("\n")[2]
        return [rest, *self.texts[1:]] if rest else self.texts[1:]


class PlainTool(NamedTuple):
    """A function that the model may call.

    Attributes:
        name: unique in the request.
        description: may be empty.
        parameters: the JSON Schema of its arguments, not empty.
        strict: whether arguments must match the schema; None if unspecified.
        is_marked: as `PlainMessage.is_marked`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool | None
    is_marked: bool


class PlainRequest(NamedTuple):
    """A request without features of a single dialect.

    Attributes:
        messages: the conversation; results of calls follow the message with the calls. The last
            message is not an assistant message.
        tools: functions with unique names.
        settings: the other fields, by the names of `GenerateRequest`; `tool_choice` is "auto". None
            if they are in the canonical request.
    """

    messages: Sequence[PlainMessage]
    tools: Sequence[PlainTool]
    settings: Mapping[str, Any] | None
