"""Which adapter calls a model of a cloud, whose models have several APIs. Pure."""

from services.common.settings.clouds import BEDROCK, VERTEX
from services.inference.providers.bedrock.families import Family, family_of_names
from services.inference.providers.vertex.paths import is_claude


def claude_of(provider: str) -> str:
    """Return the key of a provider's adapter for Anthropic's models; no provider's name has "/"."""
    return f"{provider}/claude"


def adapter_key(kind: str, provider: str, upstream: str, name: str) -> str:
    """Return the key of a provider's adapter for a model: its name, or `claude_of` it.

    Args:
        kind: the kind of the provider.
        provider: its name in the settings.
        upstream: its name for the model.
        name: the caller's name for the model.
    """
    calls_claude = (kind == VERTEX and is_claude(upstream)) or (
        kind == BEDROCK and family_of_names(upstream, name) is Family.CLAUDE
    )
    return claude_of(provider) if calls_claude else provider
