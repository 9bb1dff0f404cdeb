"""A plain answer says to callers of other dialects what the message says that it stands for."""

from collections.abc import Callable, Mapping

from facade.dialects.anthropic import render_message
from facade.dialects.openai import render_completion
from facade.dialects.responses import render_response
from facade.dialects.responses.state import Echo
from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Dialect,
)
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.messages.plain_answer import PlainAnswer

_ECHO = Echo(b'"store":false', b"")
_RENDERERS: Mapping[Dialect.ValueType, Callable[[GenerateResponse | PlainAnswer], bytes]] = {
    DIALECT_OPENAI: lambda answer: render_completion(answer, 1),
    DIALECT_ANTHROPIC: render_message,
    DIALECT_RESPONSES: lambda answer: render_response(answer, "resp_1", 1, _ECHO),
}


def check_plain(plain: PlainAnswer, response: GenerateResponse, dialect: Dialect.ValueType) -> None:
    """Check a plain answer of a provider's dialect against its translation."""
    message = plain.response()
    for other, render in _RENDERERS.items():
        if other != dialect and (other == DIALECT_OPENAI or len(plain.choices) == 1):
            assert render(plain) == render(message) == render(response)
    # What only the provider's own dialect has words for is not in it.
    whole = GenerateResponse()
    whole.CopyFrom(response)
    for holder in (whole, *(choice.finish for choice in whole.choices), *whole.choices):
        holder.ClearField("extra")
    for choice in whole.choices:
        for block in choice.blocks:
            block.ClearField("extra")
    if not message.usage.HasField("extra"):
        whole.usage.ClearField("extra")
    assert message == whole
