"""Changes of a canonical request, such as what one step of a chain is to see. Pure.

All but `lower_max_tokens` leave what they are given as it is.
"""

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, ThinkingConfig

_LEAST_BUDGET = 1024
# Bytes of text for one token, rather too many: what is left to write must not come out short.
_BYTES_A_TOKEN = 4


def copied(request: GenerateRequest) -> GenerateRequest:
    """Return a copy to change."""
    copy = GenerateRequest()
    copy.CopyFrom(request)
    return copy


def merged(request: GenerateRequest, parameters: GenerateRequest) -> GenerateRequest:
    """Lay what a step sets over a request: each field that is set replaces the request's."""
    over = copied(request)
    over.ClearField("fallback_config")
    for field, _ in parameters.ListFields():
        over.ClearField(field.name)  # type: ignore[arg-type]  # names of the same message
    over.MergeFrom(parameters)
    return over


def clamped(request: GenerateRequest, limit: int) -> tuple[GenerateRequest, list[str]]:
    """Return the request with no more tokens asked for than a model writes, and what that dropped.

    A budget of thinking has to stay below them. A limit of 0 is none.
    """
    if not limit or request.max_tokens <= limit:
        return request, []
    fitting = copied(request)
    dropped = ["max_tokens"] if request.lowers_max_tokens else []
    if not lower_max_tokens(fitting, limit):
        dropped.append("thinking")
    return fitting, dropped


def lower_max_tokens(request: GenerateRequest, limit: int) -> bool:
    """Lower `max_tokens` of a request; return False where its thinking has no room below."""
    request.max_tokens = limit
    thinking = request.thinking
    if thinking.mode != ThinkingConfig.MODE_ENABLED or thinking.budget_tokens < limit:
        return True
    if limit > _LEAST_BUDGET:
        thinking.budget_tokens = limit - 1
        return True
    request.ClearField("thinking")
    return False


def can_prefill(request: GenerateRequest) -> bool:
    """Return whether an answer to a request can be gone on with by an assistant's message.

    Providers take no such message where the answer is to match a schema or a tool has
    to be called.
    """
    return request.output_format.kind in (
        OutputFormat.KIND_UNSPECIFIED,
        OutputFormat.KIND_TEXT,
    ) and request.tool_choice.mode in (
        request.tool_choice.MODE_UNSPECIFIED,
        request.tool_choice.MODE_AUTO,
        request.tool_choice.MODE_NONE,
    )


def continued(request: GenerateRequest, text: str) -> GenerateRequest:
    """Ask for the rest of an answer that has begun with `text`.

    Providers refuse white space at the end of what they go on with, and thinking there.
    """
    rest = copied(request)
    rest.ClearField("thinking")
    if rest.HasField("max_tokens"):
        rest.max_tokens = max(1, rest.max_tokens - len(text.encode()) // _BYTES_A_TOKEN)
    said = text.rstrip()
    last = rest.messages[-1]
    ends_in_text = bool(last.blocks) and last.blocks[-1].HasField("text")
    if last.role == conversation_pb2.ROLE_ASSISTANT and ends_in_text:
        last.blocks[-1].text += said
    else:
        rest.messages.append(
            Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=[Block(text=said)])
        )
    return rest
