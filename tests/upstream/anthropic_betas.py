"""Names of Anthropic's beta features in the header `anthropic-beta`.

The official SDK lists those of the public reference. Coding agents and older SDKs send others,
which Anthropic accepts as well. Any other name is rejected.
"""

from collections.abc import Collection, Mapping

from services.sandbox.model.models import SandboxError

_HEADER = "anthropic-beta"

# Sent by Claude Code, by agents based on it, and by older clients.
_OF_CLIENTS = frozenset(
    (
        *("adaptive-thinking-2026-01-28", "advanced-tool-use-2025-11-20", "afk-mode-2026-01-31"),
        *("claude-code-20250219", "code-execution-2025-08-25", "context-hint-2026-04-09"),
        *("effort-2025-11-24", "environments-2025-11-01"),
        *("fine-grained-tool-streaming-2025-05-14", "max-tokens-3-5-sonnet-2024-07-15"),
        *("mcp-servers-2025-12-04", "mid-conversation-system-2026-04-07", "oauth-2025-04-20"),
        *("prompt-caching-evict-2026-05-12", "prompt-caching-scope-2026-01-05"),
        *("redact-thinking-2026-02-12", "structured-outputs-2025-12-15"),
        *("thinking-resumption-2026-07-17", "tool-examples-2025-10-29"),
        *("tool-search-tool-2025-10-19", "tools-2024-04-04", "tools-2024-05-16"),
        *("web-fetch-2025-09-10", "web-search-2025-03-05"),
    )
)


def check_betas(headers: Mapping[str, str], listed: Collection[str]) -> None:
    """Reject names that are neither in the SDK's list nor sent by known clients.

    Raises:
        SandboxError: there is such a name.
    """
    unknown = [name for name in betas_of(headers) if name not in _OF_CLIENTS | set(listed)]
    if unknown:
        named = ", ".join(f"`{name}`" for name in unknown)
        raise SandboxError(
            "invalid",
            400,
            f"Unexpected value(s) {named} for the `{_HEADER}` header. Please consult our "
            "documentation at docs.anthropic.com or try again without the header.",
        )


def betas_of(headers: Mapping[str, str]) -> list[str]:
    """Return the beta names in a request's header."""
    return [name for part in headers.get(_HEADER, "").split(",") if (name := part.strip())]
