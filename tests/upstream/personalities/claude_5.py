"""Claude 4.7 to 5: no prefill, no sampling parameters, and only adaptive thinking.

Source: https://platform.claude.com/docs (adaptive thinking, what's new) and error messages.
"""

from services.sandbox.model.models import SandboxError
from tests.upstream.personalities.base import Body, Personality


def _convert_request(body: Body) -> Body:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if isinstance(last, dict) and last.get("role") == "assistant":
        raise _refused(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        raise _refused(
            '"thinking.type.enabled" is not supported for this model. Use '
            '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            raise _refused(f"`{name}` is deprecated for this model.")
    return body


def _refused(message: str) -> SandboxError:
    return SandboxError("invalid", 400, message)


CLAUDE_5 = Personality(
    "claude-5",
    "refuses an assistant's message at the end, thinking with a budget, and sampling",
    dialect="anthropic",
    model_aliases={"claude-sonnet-5": "echo", "claude-opus-4-8": "echo"},
    convert_request=_convert_request,
)
