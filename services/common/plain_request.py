"""A request in the words that all dialects have, as plain Python values.

Texts, calls of functions and their results, functions as tools, and the usual settings. A facade
reads one from a plain conversation (`services.common.lazy_request`), and a provider of another
dialect writes its body from it: what would come of the canonical request in between is the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple


class PlainCall(NamedTuple):
    """A call of a function.

    Attributes:
        id: of the call.
        name: of the function.
        arguments: as the model wrote them, usually a JSON object.
    """

    id: str
    name: str
    arguments: str


class PlainMessage(NamedTuple):
    """A message, or the result of a call.

    Attributes:
        role: of its author; `tool` for a result.
        texts: its parts, none of them empty.
        calls: of an assistant, after its texts.
        call_id: of the call that a result answers.
        is_error: whether the call failed.
        is_marked: whether a part has a mark of Anthropic's prompt cache.
        has_billing_line: of a system message, as of the canonical one.
    """

    role: Literal["system", "user", "assistant", "tool"]
    texts: Sequence[str]
    calls: Sequence[PlainCall] = ()
    call_id: str = ""
    is_error: bool = False
    is_marked: bool = False
    has_billing_line: bool = False

    def texts_without_billing(self) -> Sequence[str]:
        """Return the texts without the line that says whom to bill."""
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
        strict: whether arguments must match the schema; None if not said.
        is_marked: as `PlainMessage.is_marked`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool | None
    is_marked: bool


class PlainRequest(NamedTuple):
    """A request without anything that only one dialect has words for.

    Attributes:
        messages: the conversation; results of calls follow the message with the calls. The last
            one is not an assistant's.
        tools: none are named alike.
        settings: the other fields, by the names of `GenerateRequest`; `tool_choice` is "auto". None
            if the canonical request has them.
    """

    messages: Sequence[PlainMessage]
    tools: Sequence[PlainTool]
    settings: Mapping[str, Any] | None
