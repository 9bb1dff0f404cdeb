"""Create providers from the settings."""

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from yarl import URL

from services.common.errors import UpstreamError
from services.common.http import Client
from services.common.settings import Limits
from services.common.settings import Provider as ProviderSettings
from services.common.settings.aws import BEDROCK
from services.inference.facts.catalogue import server_facts
from services.inference.providers import (
    anthropic,
    bedrock,
    embedded,
    failures,
    gemini,
    openai,
    sandbox,
)
from services.inference.providers.base import Provider
from services.inference.providers.openai_responses import ResponsesProvider
from services.inference.providers.openai_responses.endpoint import EndpointSupport
from services.inference.providers.protocols import Authorize, Classify, Gauge
from services.inference.providers.upstream import Upstream

_NO_SUCH_PATH = (404, 405)
_OWN_DOMAINS = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc")


def is_own(host: str) -> bool:
    """Return whether a host is in the operator's own network, judging by its address or name.

    Such a server could fetch internal URLs for callers.
    """
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_OWN_DOMAINS)


def naming_base_url(
    classify: Classify, base_url: str, answering_urls: Mapping[str, str]
) -> Classify:
    """Return a `Classify` whose errors for unknown paths name the right base URL, if it is known.

    The address of a server in the operator's own network is not shown to callers, but its path is.
    """

    def classified(
        provider: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        secrets: Iterable[str] = (),
        now: Callable[[], float],
    ) -> UpstreamError:
        error = classify(provider, status, headers, body, secrets=secrets, now=now)
        answering = answering_urls.get(base_url)
        if answering is not None and status in _NO_SUCH_PATH:
            url = URL(answering).with_user(None)
            shown = str(url)
            if is_own(url.host or ""):
                is_bare = url.path.strip("/") == ""
                shown = "one without a path" if is_bare else f"one that ends in {url.path}"
            error.message = (
                f"model: the provider {provider} has no API at its base_url; the operator must set "
                f"providers.{provider}.base_url to {shown}"
            )
        return error

    return classified


def build(
    configured: Mapping[str, ProviderSettings],
    client: Client,
    limits: Limits,
    live: Gauge,
    embedder: embedded.TextEmbedder | None = None,
    answering_urls: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Provider]:
    """Return the providers by name.

    Args:
        configured: the providers' settings by name.
        client: the shared client.
        limits: bounds on time and size.
        live: gauge of running calls.
        embedder: the gateway's own embedding model, if it is included.
        answering_urls: the right base URLs for wrong ones, which errors name.
    """
    providers: dict[str, Provider] = {}
    if embedder is not None:
        providers[embedded.EMBEDDED] = embedded.EmbeddedProvider(embedded.EMBEDDED, embedder)
    for name, settings in configured.items():
        own = bedrock.classify if settings.kind == BEDROCK else failures.classify
        classify = naming_base_url(own, settings.base_url, answering_urls)
        providers[name] = _build_one(name, settings, client, limits, live, classify)
    return providers


def build_responses(
    configured: Mapping[str, ProviderSettings],
    client: Client,
    limits: Limits,
    live: Gauge,
    unsupported_urls: set[str],
) -> dict[str, ResponsesProvider]:
    """Return the adapters for the API of responses, by the provider's name.

    Args:
        configured: the providers' settings by name.
        client: the shared client.
        limits: bounds on time and size.
        live: gauge of running calls.
        unsupported_urls: base URLs of servers that turned out to lack this endpoint; updated by
            the adapters.
    """
    built = {}
    for name, settings in configured.items():
        if has_responses(settings):
            built[name] = _build_responses(name, settings, client, limits, live, unsupported_urls)
    return built


def has_responses(settings: ProviderSettings) -> bool:
    """Return whether a server is assumed to have OpenAI's `/responses`."""
    if settings.responses is not None:
        return settings.responses
    server = server_facts(settings.kind, settings.base_url)
    # Azure's older URLs are for one model and have no version.
    return server.responses and URL(settings.base_url).path.rstrip("/").endswith("/v1")


def _build_responses(
    name: str,
    settings: ProviderSettings,
    client: Client,
    limits: Limits,
    live: Gauge,
    unsupported_urls: set[str],
) -> ResponsesProvider:
    endpoint = EndpointSupport(settings.base_url, unsupported_urls)
    credentials = _bearer(settings)
    return ResponsesProvider(
        name,
        _upstream(name, settings, credentials, client, limits, live, endpoint.classify),
        _upstream(name, settings, credentials, client, limits, live),
        endpoint,
        pass_stateful=settings.pass_stateful,
        newest=server_facts(settings.kind, settings.base_url).newest,
        fetches_urls=_fetches_urls(settings),
    )


def _bearer(settings: ProviderSettings) -> dict[str, str]:
    key = settings.key()
    return {"Authorization": f"Bearer {key}"} if key else {}


def _fetches_urls(settings: ProviderSettings) -> bool:
    if settings.fetches_urls is not None:
        return settings.fetches_urls
    server = server_facts(settings.kind, settings.base_url)
    return server.image_urls and not is_own(URL(settings.base_url).host or "")


def _upstream(
    name: str,
    settings: ProviderSettings,
    credentials: Mapping[str, str],
    client: Client,
    limits: Limits,
    live: Gauge,
    classify: Classify = failures.classify,
    authorize: Authorize | None = None,
) -> Upstream:
    return Upstream(
        name,
        settings.base_url,
        {**credentials, **settings.headers},
        limits,
        client,
        live,
        missing_key=settings.missing_key(),
        classify=classify,
        authorize=authorize,
    )


def _build_one(
    name: str,
    settings: ProviderSettings,
    client: Client,
    limits: Limits,
    live: Gauge,
    classify: Classify,
) -> Provider:
    server = server_facts(settings.kind, settings.base_url)
    fetches_urls = _fetches_urls(settings)

    def upstream(credentials: Mapping[str, str]) -> Upstream:
        return _upstream(name, settings, credentials, client, limits, live, classify)

    key = settings.key()
    match settings.kind:
        case "openai":
            return openai.OpenAIProvider(
                name,
                upstream(_bearer(settings)),
                pass_stateful=settings.pass_stateful,
                newest=server.newest,
                fetches_urls=fetches_urls,
            )
        case "anthropic":
            return anthropic.AnthropicProvider(
                name,
                upstream(anthropic.headers(key)),
                pass_stateful=settings.pass_stateful,
                fetches_urls=fetches_urls,
                official=server.checks_signatures,
            )
        case "gemini":
            return gemini.GeminiProvider(
                name,
                upstream(gemini.headers(key)),
                pass_stateful=settings.pass_stateful,
                fetches_urls=fetches_urls,
            )
        case "bedrock":
            signer = bedrock.signer_of(name, settings, key)
            return bedrock.BedrockProvider(
                name,
                _upstream(
                    name, settings, _bearer(settings), client, limits, live, classify, signer
                ),
                pass_stateful=settings.pass_stateful,
            )
        case "sandbox":
            return sandbox.SandboxProvider(name)
