"""Makes providers from settings."""

from collections.abc import Mapping

from yarl import URL

from services.common.settings import Limits
from services.common.settings import Provider as ProviderSettings
from services.inference.http import Client
from services.inference.providers import anthropic, gemini, openai, sandbox
from services.inference.providers.base import Provider
from services.inference.providers.upstream import Gauge, Upstream

SANDBOX = "sandbox"

# Hosts of the providers themselves, and of those who run their models for them: what
# they take differs a little from what servers of the same dialect take, and they fetch
# media from addresses.
_OFFICIAL_HOSTS = frozenset({"api.openai.com", "api.anthropic.com"})
_OFFICIAL_DOMAINS = (".api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com")
# Google serves its own API there, and OpenAI's dialect, of which it is not the maker.
_GOOGLES_HOST = "generativelanguage.googleapis.com"


def is_official(settings: ProviderSettings) -> bool:
    """Tell whether the provider is the maker of its dialect."""
    host = URL(settings.base_url).host or ""
    if settings.kind == "gemini":
        return host == _GOOGLES_HOST
    return host in _OFFICIAL_HOSTS or host.endswith(_OFFICIAL_DOMAINS)


def build(
    configured: Mapping[str, ProviderSettings],
    client: Client,
    limits: Limits,
    live: Gauge,
) -> dict[str, Provider]:
    """Give the providers by name, the sandbox always among them."""
    providers: dict[str, Provider] = {SANDBOX: sandbox.SandboxProvider(SANDBOX)}
    for name, settings in configured.items():
        providers[name] = _build_one(name, settings, client, limits, live)
    return providers


def _build_one(
    name: str,
    settings: ProviderSettings,
    client: Client,
    limits: Limits,
    live: Gauge,
) -> Provider:
    official = is_official(settings)
    fetches_urls = official if settings.fetches_urls is None else settings.fetches_urls

    def upstream(credentials: Mapping[str, str]) -> Upstream:
        headers = {**credentials, **settings.headers}
        return Upstream(name, settings.base_url, headers, limits, client, live)

    key = settings.key()
    match settings.kind:
        case "openai":
            return openai.OpenAIProvider(
                name,
                upstream({"Authorization": f"Bearer {key}"} if key else {}),
                pass_stateful=settings.pass_stateful,
                official=official,
                fetches_urls=fetches_urls,
            )
        case "anthropic":
            return anthropic.AnthropicProvider(
                name,
                upstream(anthropic.headers(key)),
                pass_stateful=settings.pass_stateful,
                fetches_urls=fetches_urls,
            )
        case "gemini":
            return gemini.GeminiProvider(
                name,
                upstream(gemini.headers(key)),
                pass_stateful=settings.pass_stateful,
                fetches_urls=fetches_urls,
            )
        case "sandbox":
            return sandbox.SandboxProvider(name)
