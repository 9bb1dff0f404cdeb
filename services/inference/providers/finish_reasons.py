"""Finish reasons of servers with OpenAI's or Anthropic's API. Pure.

Servers have reasons of their own, and proxies pass on those of the model's API.
"""

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import FinishReason

_END = conversation_pb2.FINISH_REASON_END_TURN
_LENGTH = conversation_pb2.FINISH_REASON_MAX_TOKENS
_CONTEXT = conversation_pb2.FINISH_REASON_CONTEXT_WINDOW
_TOOL = conversation_pb2.FINISH_REASON_TOOL_USE
_STOP_SEQUENCE = conversation_pb2.FINISH_REASON_STOP_SEQUENCE
_REFUSAL = conversation_pb2.FINISH_REASON_REFUSAL

# Those of OpenAI's chat completions.
OPENAI_REASONS = {
    "stop": _END,
    "length": _LENGTH,
    "tool_calls": _TOOL,
    "function_call": _TOOL,
    "content_filter": _REFUSAL,
}

# Those of Anthropic's messages.
ANTHROPIC_REASONS = {
    "end_turn": _END,
    "max_tokens": _LENGTH,
    "stop_sequence": _STOP_SEQUENCE,
    "tool_use": _TOOL,
    "refusal": _REFUSAL,
    "pause_turn": conversation_pb2.FINISH_REASON_PAUSE_TURN,
    "model_context_window_exceeded": _CONTEXT,
}

# Those of both and of other servers, in lower case.
_REASONS = {
    **OPENAI_REASONS,
    **ANTHROPIC_REASONS,
    "model_length": _CONTEXT,  # Mistral
    "eos": _END,  # Together
    "eos_token": _END,  # Text Generation Inference
    "complete": _END,  # Cohere
    "max_output_tokens": _LENGTH,
    "tool_call": _TOOL,  # Cohere
    "sensitive": _REFUSAL,  # Z.ai
    "error_toxic": _REFUSAL,  # Cohere
    "content_filtered": _REFUSAL,  # Bedrock
    "guardrail_intervened": _REFUSAL,  # Bedrock
    # Gemini
    "safety": _REFUSAL,
    "image_safety": _REFUSAL,
    "recitation": _REFUSAL,
    "language": _REFUSAL,
    "blocklist": _REFUSAL,
    "prohibited_content": _REFUSAL,
    "spii": _REFUSAL,
}

# Reasons with which servers report that the generation failed, in lower case.
_FAILURES = frozenset(
    {
        "abort",  # vLLM, SGLang
        "cancelled",  # proxies
        "error",  # OpenRouter, Mistral, Cohere
        "error_limit",  # Cohere
        "function_call_filter",  # Gemini
        "insufficient_system_resource",  # DeepSeek
        "malformed_function_call",  # Gemini
        "network_error",  # Z.ai
        "timeout",  # Cohere
        "unexpected_tool_call",  # Gemini
        "user_cancel",  # Cohere
    }
)


def canonical_reason(reason: str) -> FinishReason.ValueType | None:
    """Return the canonical finish reason; the end of a turn for an unknown one.

    None for a reason that reports that the generation failed.
    """
    if known_reason := _REASONS.get(reason):
        return known_reason
    lower = reason.lower()
    # Google's server of OpenAI's API sends `function_call_filter: MALFORMED_FUNCTION_CALL`.
    if not _FAILURES.isdisjoint(lower.split(": ")):
        return None
    # Some servers send Gemini's reasons as `content_filter: SAFETY`.
    return _REASONS.get(lower.replace("-", "_").partition(":")[0], _END)
