"""Plain messages: the features that all dialects share.

These are texts, function calls and their results. A facade reads a conversation
(`services.common.messages.lazy_request`) as plain messages, with a canonical message wherever one
has more than that, and a provider of another dialect writes its body from them.

Plain messages have the JSON of chat completions, so that `msgspec` reads those in one pass.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.inference.v1.inference_pb2 import Tool


class PlainText(Struct, frozen=True, gc=False):
    """One of several text parts; not empty."""

    text: str


class PlainFunction(Struct, frozen=True, gc=False):
    """A called function, with its arguments as the model wrote them, usually a JSON object."""

    name: str
    arguments: str


class PlainCall(Struct, frozen=True, gc=False):
    """A function call with its id."""

    id: str
    function: PlainFunction


class PlainMessage(Struct, frozen=True, gc=False):
    """A message, or the result of a call.

    Attributes:
        role: role of the author; `tool` for a result.
        content: a text, or text parts, which are not empty; "" or None for no text.
        calls: function calls of an assistant message, after its texts.
        call_id: id of the call that a result belongs to.
        is_error: whether the call failed.
        marked: number of text parts up to the last one with a `cache_control` of Anthropic's prompt
            cache; 0 without one.
        is_marked_long: whether that is for an hour.
        has_billing_line: whether a system message begins with a billing line, as in the canonical
            request.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[PlainText] | None = None
    calls: list[PlainCall] | None = field(name="tool_calls", default=None)
    call_id: str = field(name="tool_call_id", default="")
    is_error: bool = False
    marked: int = 0
    is_marked_long: bool = False
    has_billing_line: bool = False

    @property
    def texts(self) -> Sequence[str]:
        """The text parts."""
        content = self.content
        if isinstance(content, str):
            return [content] if content else []
        return [part.text for part in content or ()]

    def texts_without_billing(self) -> Sequence[str]:
        """Return the texts without the billing line."""
        texts = self.texts
        if not self.has_billing_line:
            return texts
        without_first_line = texts[0].partition("\n")[2]
        return [without_first_line, *texts[1:]] if without_first_line else texts[1:]


class PlainTool(NamedTuple):
    """A function that the model may call.

    Attributes:
        name: unique in the request.
        description: may be empty.
        parameters: the JSON Schema of its arguments, not empty.
        strict: whether arguments must match the schema; None if unspecified.
        is_marked: whether it has a `cache_control`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool | None
    is_marked: bool


class PlainRequest(NamedTuple):
    """A request for a provider of another dialect.

    Attributes:
        messages: the conversation; results of calls follow the message with the calls. The last
            message is not an assistant message. Canonical messages have nothing that a provider
            may refuse.
        tools: functions with unique names; canonical ones as the messages.
        settings: the other fields, by the names of `GenerateRequest`; `tool_choice` is "auto". None
            if they are in the canonical request.
    """

    messages: Sequence[PlainMessage | Message]
    tools: Sequence[PlainTool | Tool]
    settings: Mapping[str, Any] | None


def plain_content(texts: Sequence[str]) -> str | list[PlainText]:
    """Return the content of a plain message with these text parts."""
    return texts[0] if len(texts) == 1 else [PlainText(text) for text in texts]
