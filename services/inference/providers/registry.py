"""Create providers from the settings."""

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from yarl import URL

from services.common.errors import UpstreamError
from services.common.http import Client
from services.common.settings import Limits
from services.common.settings import Provider as ProviderSettings
from services.common.settings.clouds import BEDROCK, VERTEX
from services.inference.facts.catalogue import server_facts
from services.inference.metrics import UpstreamCalls
from services.inference.providers import (
    anthropic,
    bedrock,
    embedded,
    failures,
    gemini,
    openai,
    sandbox,
    vertex,
)
from services.inference.providers.adapter_keys import claude_of
from services.inference.providers.anthropic.batches import AnthropicBatches
from services.inference.providers.base import Provider
from services.inference.providers.batches import BatchApi
from services.inference.providers.bedrock.claude import BedrockEndpoint
from services.inference.providers.credentials.authorizers import Authorizers
from services.inference.providers.gemini.batches import GeminiBatches
from services.inference.providers.openai.batches import OpenAIBatches
from services.inference.providers.openai_responses import ResponsesProvider
from services.inference.providers.openai_responses.endpoint import EndpointSupport
from services.inference.providers.openai_responses.provider import COMPACT
from services.inference.providers.protocols import Classify
from services.inference.providers.upstream import Upstream
from services.inference.providers.vertex.claude import VertexEndpoint
from services.inference.providers.vertex.gemini import VertexApi

_NO_SUCH_PATH = (404, 405)
# Servers with batch services that are used by default, by the kind of providers.
_BATCHES = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
}
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


@dataclass(frozen=True)
class Connections:
    """The client, bounds and credentials that all providers share.

    Attributes:
        client: the shared client.
        limits: bounds on time and size.
        live: counts the running calls.
        authorizers: authorize the requests to clouds; kept when settings are reloaded.
    """

    client: Client
    limits: Limits
    live: UpstreamCalls
    authorizers: Authorizers = field(default_factory=Authorizers)

    def upstream(
        self,
        name: str,
        settings: ProviderSettings,
        credentials: Mapping[str, str],
        classify: Classify = failures.classify,
        base_url: str = "",
    ) -> Upstream:
        """Return the server of a provider.

        Args:
            name: the provider's name in the settings.
            settings: its settings.
            credentials: the headers with its key, if it has one.
            classify: returns the error for a response other than 2xx.
            base_url: in place of that of the settings.
        """
        return Upstream(
            name,
            base_url or settings.base_url,
            {**credentials, **settings.headers},
            self.limits,
            self.client,
            self.live,
            missing_key=settings.missing_key(),
            classify=classify,
            authorize=self.authorizers.of(name, settings, settings.key()),
        )


def build(
    configured: Mapping[str, ProviderSettings],
    connections: Connections,
    engines: embedded.EmbeddedEngines | None = None,
    answering_urls: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Provider]:
    """Return the providers by name, and their further adapters; see `Target.adapter`.

    Args:
        configured: the providers' settings by name.
        connections: what they share.
        engines: run the gateway's own models, if these are included.
        answering_urls: the right base URLs for wrong ones, which errors name.
    """
    providers: dict[str, Provider] = {}
    if engines is not None:
        providers[embedded.EMBEDDED] = embedded.EmbeddedProvider(embedded.EMBEDDED, engines)
    for name, settings in configured.items():
        own = bedrock.classify if settings.kind == BEDROCK else failures.classify
        classify = naming_base_url(own, settings.base_url, answering_urls)
        providers[name] = _build_one(name, settings, connections, classify)
        if settings.kind == BEDROCK:
            # Callers of messages get the adapter of `build_messages`.
            providers[claude_of(name)] = providers[name]
        elif settings.kind == VERTEX:
            providers[claude_of(name)] = _claude_on_vertex(name, settings, connections)
    return providers


def build_responses(
    configured: Mapping[str, ProviderSettings],
    connections: Connections,
    unsupported_urls: set[str],
) -> dict[str, ResponsesProvider]:
    """Return the adapters for the API of responses, by the provider's name.

    Args:
        configured: the providers' settings by name.
        connections: what they share.
        unsupported_urls: base URLs of servers that turned out to lack this endpoint; updated by
            the adapters.
    """
    return {
        name: _build_responses(name, settings, connections, unsupported_urls)
        for name, settings in configured.items()
        if has_responses(settings)
    }


def build_messages(
    configured: Mapping[str, ProviderSettings], connections: Connections
) -> dict[str, Provider]:
    """Return the adapters for requests of Anthropic's dialect, by `Target.adapter`.

    They take the place of an adapter of an API that is the same for the models of all makers.

    Args:
        configured: the providers' settings by name.
        connections: what they share.
    """
    return {
        claude_of(name): _claude_on_bedrock(name, settings, connections)
        for name, settings in configured.items()
        if settings.kind == BEDROCK
    }


def build_batches(
    configured: Mapping[str, ProviderSettings], connections: Connections
) -> dict[str, BatchApi]:
    """Return the batch services of providers, by the provider's name.

    Args:
        configured: the providers' settings by name.
        connections: what they share.
    """
    batches: dict[str, BatchApi] = {}
    for name, settings in configured.items():
        if not has_batches(settings):
            continue
        key = settings.key()
        if settings.kind == "openai":
            batches[name] = OpenAIBatches(connections.upstream(name, settings, openai.headers(key)))
        elif settings.kind == "anthropic":
            credentials = anthropic.headers(key)
            batches[name] = AnthropicBatches(connections.upstream(name, settings, credentials))
        elif settings.kind == "gemini":
            batches[name] = GeminiBatches(connections.upstream(name, settings, gemini.headers(key)))
    return batches


def has_batches(settings: ProviderSettings) -> bool:
    """Return whether a provider has a batch service that is to be used."""
    if settings.batches is not None:
        return settings.batches
    host = URL(settings.base_url).host or ""
    return host == _BATCHES.get(settings.kind) or (
        settings.kind == "openai" and host.endswith(f".{_BATCHES['openai']}")
    )


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
    connections: Connections,
    unsupported_urls: set[str],
) -> ResponsesProvider:
    endpoint = EndpointSupport(settings.base_url, unsupported_urls)
    compacting = EndpointSupport(f"{settings.base_url}{COMPACT}", unsupported_urls)
    credentials = openai.headers(settings.key())
    return ResponsesProvider(
        name,
        connections.upstream(name, settings, credentials, endpoint.classify),
        connections.upstream(name, settings, credentials),
        endpoint,
        connections.upstream(name, settings, credentials, compacting.classify),
        compacting,
        pass_stateful=settings.pass_stateful,
        newest=server_facts(settings.kind, settings.base_url).newest,
        fetches_urls=_fetches_urls(settings),
    )


def _fetches_urls(settings: ProviderSettings) -> bool:
    if settings.fetches_urls is not None:
        return settings.fetches_urls
    server = server_facts(settings.kind, settings.base_url)
    return server.image_urls and not is_own(URL(settings.base_url).host or "")


def _build_one(
    name: str, settings: ProviderSettings, connections: Connections, classify: Classify
) -> Provider:
    server = server_facts(settings.kind, settings.base_url)
    fetches_urls = _fetches_urls(settings)
    pass_stateful = settings.pass_stateful

    def upstream(credentials: Mapping[str, str], base_url: str = "") -> Upstream:
        return connections.upstream(name, settings, credentials, classify, base_url)

    key = settings.key()
    match settings.kind:
        case "openai":
            return openai.OpenAIProvider(
                name,
                upstream(openai.headers(key, settings.api_version)),
                pass_stateful=pass_stateful,
                newest=server.newest,
                fetches_urls=fetches_urls,
                path_of=openai.path_of(settings.base_url, settings.api_version),
            )
        case "anthropic":
            return anthropic.AnthropicProvider(
                name,
                upstream(anthropic.headers(key)),
                pass_stateful=pass_stateful,
                fetches_urls=fetches_urls,
                official=server.checks_signatures,
            )
        case "gemini":
            return gemini.GeminiProvider(
                name,
                upstream(gemini.headers(key)),
                pass_stateful=pass_stateful,
                fetches_urls=fetches_urls,
            )
        case "vertex":
            return gemini.GeminiProvider(
                name,
                upstream(gemini.headers(key), _vertex_url(settings)),
                pass_stateful=pass_stateful,
                fetches_urls=fetches_urls,
                api=VertexApi(),
            )
        case "bedrock":
            return bedrock.BedrockProvider(
                name,
                upstream(openai.headers(key)),
                pass_stateful=pass_stateful,
                guardrail=settings.guardrail,
            )
        case "sandbox":
            return sandbox.SandboxProvider(name)


def _vertex_url(settings: ProviderSettings) -> str:
    return vertex.base_url(settings.base_url, settings.project, settings.region)


def _claude_on_vertex(
    name: str, settings: ProviderSettings, connections: Connections
) -> anthropic.AnthropicProvider:
    credentials = gemini.headers(settings.key())
    return anthropic.AnthropicProvider(
        name,
        connections.upstream(name, settings, credentials, base_url=_vertex_url(settings)),
        pass_stateful=settings.pass_stateful,
        fetches_urls=_fetches_urls(settings),
        official=True,
        endpoint=VertexEndpoint(),
    )


def _claude_on_bedrock(
    name: str, settings: ProviderSettings, connections: Connections
) -> anthropic.AnthropicProvider:
    of_guardrail = bedrock.guardrail_headers(settings.guardrail)
    credentials = {**openai.headers(settings.key()), **of_guardrail}
    return anthropic.AnthropicProvider(
        name,
        connections.upstream(name, settings, credentials, bedrock.classify),
        pass_stateful=settings.pass_stateful,
        fetches_urls=False,
        official=True,
        endpoint=BedrockEndpoint(name),
        # A signature covers the whole body.
        sends_stored_files=False,
    )
