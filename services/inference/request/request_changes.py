"""Changes of a canonical request, for example for one step of a chain. Pure.

All functions except `lower_max_tokens` leave their arguments unmodified.
"""

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, ThinkingConfig

_LEAST_BUDGET = 1024
# Bytes of text per token, rather too many, so that the remaining tokens are not underestimated.
_BYTES_A_TOKEN = 4


def copied(request: GenerateRequest) -> GenerateRequest:
    """Return a copy of a request."""
    copy = GenerateRequest()
    copy.CopyFrom(request)
    return copy


def without_stop_sequences(request: GenerateRequest) -> GenerateRequest:
    """Return a request that ends at no text."""
    copy = copied(request)
    copy.ClearField("stop_sequences")
    return copy


def merged(request: GenerateRequest, parameters: GenerateRequest) -> GenerateRequest:
    """Return a request in which the fields set in `parameters` replace its own."""
    over = copied(request)
    over.ClearField("fallback_config")
    for field, _ in parameters.ListFields():
        over.ClearField(field.name)  # type: ignore[arg-type]  # names of the same message
    over.MergeFrom(parameters)
    return over


def clamped(request: GenerateRequest, limit: int) -> tuple[GenerateRequest, list[str]]:
    """Limit the `max_tokens` of a request; return the request and the dropped fields.

    The thinking budget is kept below `max_tokens`. A limit of 0 means no limit.
    """
    if not limit or request.max_tokens <= limit:
        return request, []
    fitting = copied(request)
    dropped = ["max_tokens"] if request.lowers_max_tokens else []
    if not lower_max_tokens(fitting, limit):
        dropped.append("thinking")
    return fitting, dropped


def lower_max_tokens(request: GenerateRequest, limit: int) -> bool:
    """Lower `max_tokens` in place; return False if the limit is too low for thinking.

    Thinking is removed then.
    """
    request.max_tokens = limit
    thinking = request.thinking
    if thinking.mode != ThinkingConfig.MODE_ENABLED or thinking.budget_tokens < limit:
        return True
    if limit > _LEAST_BUDGET:
        thinking.budget_tokens = limit - 1
        return True
    request.ClearField("thinking")
    return False


def generates_nothing(request: GenerateRequest) -> bool:
    """Return whether a request is only to fill the provider's prompt cache (Anthropic's)."""
    return request.max_tokens == 0 and request.HasField("max_tokens")


def can_prefill(request: GenerateRequest) -> bool:
    """Return whether an answer to a request can be continued by a prefill.

    Providers accept no prefill if the answer must match a schema or a tool call is required.
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
    """Return a request for the rest of an answer that begins with `text`.

    Providers reject white space at the end of a prefill, and thinking together with one.
    """
    longer = copied(request)
    longer.ClearField("thinking")
    if longer.HasField("max_tokens"):
        longer.max_tokens = max(1, longer.max_tokens - len(text.encode()) // _BYTES_A_TOKEN)
    delivered = text.rstrip()
    last = longer.messages[-1]
    ends_in_text = bool(last.blocks) and last.blocks[-1].HasField("text")
    if last.role == conversation_pb2.ROLE_ASSISTANT and ends_in_text:
        last.blocks[-1].text += delivered
    else:
        longer.messages.append(
            Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=[Block(text=delivered)])
        )
    return longer
