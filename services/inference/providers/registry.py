"""Create providers from the settings."""

import ipaddress
from collections.abc import Mapping

from yarl import URL

from services.common.settings import Limits
from services.common.settings import Provider as ProviderSettings
from services.inference.catalogue import server_facts
from services.inference.http import Client
from services.inference.providers import sandbox
from services.inference.providers.base import Provider
from services.inference.providers.upstream import Gauge, Upstream

SANDBOX = "sandbox"

_OWN_DOMAINS = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc")


def is_own(host: str) -> bool:
    """Return whether a host is in the operator's own network, judging by its name.

    Such a server could fetch internal URLs for callers.
    """
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_OWN_DOMAINS)


def build(
    configured: Mapping[str, ProviderSettings],
    client: Client,
    limits: Limits,
    live: Gauge,
) -> dict[str, Provider]:
    """Return the providers by name, the sandbox always among them."""
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
    server = server_facts(settings.kind, settings.base_url)
    fetches_urls = settings.fetches_urls
    if fetches_urls is None:
        fetches_urls = server.image_urls and not is_own(URL(settings.base_url).host or "")

    def upstream(credentials: Mapping[str, str]) -> Upstream:
        headers = {**credentials, **settings.headers}
        missing_key = settings.missing_key()
        return Upstream(
            name, settings.base_url, headers, limits, client, live, missing_key=missing_key
        )

    key = settings.key()
    # Imported on demand: each adapter takes 0.4 MB.
    match settings.kind:
        case "openai":
            from services.inference.providers import openai

            return openai.OpenAIProvider(
                name,
                upstream({"Authorization": f"Bearer {key}"} if key else {}),
                pass_stateful=settings.pass_stateful,
                newest=server.newest,
                fetches_urls=fetches_urls,
            )
        case "anthropic":
            from services.inference.providers import anthropic

            return anthropic.AnthropicProvider(
                name,
                upstream(anthropic.headers(key)),
                pass_stateful=settings.pass_stateful,
                fetches_urls=fetches_urls,
                official=server.checks_signatures,
            )
        case "gemini":
            from services.inference.providers import gemini

            return gemini.GeminiProvider(
                name,
                upstream(gemini.headers(key)),
                pass_stateful=settings.pass_stateful,
                fetches_urls=fetches_urls,
            )
        case "sandbox":
            return sandbox.SandboxProvider(name)
