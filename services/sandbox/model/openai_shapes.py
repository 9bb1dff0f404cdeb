"""Errors and log probabilities in OpenAI's JSON, also used by the gateway's provider."""

from typing import Any

from services.sandbox.model.models import Kind, SandboxError

_ERRORS: dict[Kind, tuple[str, str | None]] = {
    "invalid": ("invalid_request_error", "invalid_value"),
    "context_length": ("invalid_request_error", "context_length_exceeded"),
    "authentication": ("invalid_request_error", "invalid_api_key"),
    "permission": ("invalid_request_error", "model_not_allowed"),
    "model_not_found": ("invalid_request_error", "model_not_found"),
    "not_found": ("invalid_request_error", "unknown_url"),
    "rate_limit": ("requests", "rate_limit_exceeded"),
    "server": ("server_error", None),
    "overloaded": ("overloaded_error", None),
}
# The log probability of every token: the sandbox is deterministic.
_LOGPROB = 0.0


def error_body(error: SandboxError) -> dict[str, Any]:
    """Write an error; `param` names the field as in `messages[0].content`."""
    kind, code = _ERRORS[error.kind]
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path)
    param = "".join(steps).removeprefix(".") or None
    message = f"Invalid '{param}': {error.message}" if param else error.message
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def token_logprobs(written: list[str], top: int) -> dict[str, Any]:
    """Return the log probabilities of tokens; the only alternative is the token itself."""
    logprobs = [
        {"token": token, "logprob": _LOGPROB, "bytes": list(token.encode())} for token in written
    ]
    content = [{**token, "top_logprobs": [token] if top else []} for token in logprobs]
    return {"content": content, "refusal": None}
