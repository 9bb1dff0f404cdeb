"""The routing tables: models, providers, roles and web tools."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_GEMINI,
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Dialect,
)
from services.common.settings import Roles
from services.inference.models.routing import Models
from services.inference.pricing.costs import Costs, unknown_costs
from services.inference.providers.base import Provider
from services.inference.providers.batches import BatchApi
from services.inference.tools.running import WebTools


class ResponsesAdapter(Provider, Protocol):
    """An adapter for requests of the dialect of responses.

    Attributes:
        is_supported: whether the server supports the API; True until it answers otherwise.
    """

    @property
    def is_supported(self) -> bool:
        """See the class."""


class _ProvidersOfResponses(Mapping[str, Provider]):
    """The providers by name, for requests of the dialect of responses.

    A server without such an endpoint is called by its usual adapter.
    """

    def __init__(
        self, usual: Mapping[str, Provider], native: Mapping[str, ResponsesAdapter]
    ) -> None:
        self._usual = usual
        self._native = native

    def __getitem__(self, name: str) -> Provider:
        native = self._native.get(name)
        return self._usual[name] if native is None or not native.is_supported else native

    def __iter__(self) -> Iterator[str]:
        return iter(self._usual)

    def __len__(self) -> int:
        return len(self._usual)


class _ByDialect(dict[Dialect.ValueType, Mapping[str, Provider]]):
    """The providers by name, for requests of each dialect; `others` for those it lacks."""

    def __init__(
        self,
        others: Mapping[str, Provider],
        of_dialects: Mapping[Dialect.ValueType, Mapping[str, Provider]],
    ) -> None:
        super().__init__(of_dialects)
        self._others = others

    def __missing__(self, _dialect: Dialect.ValueType) -> Mapping[str, Provider]:
        # Not inserted: callers of gRPC may send any number.
        return self._others


@dataclass(frozen=True)
class Routes:
    """The routing tables, replaced as a whole when settings are reloaded.

    Attributes:
        models: the models that callers can name.
        providers: the providers by name, and their further adapters; see `Target.adapter`.
        costs: the prices of models.
        batches: the batch services of providers, by the provider's name.
        servers: the attributes of the providers' servers in spans, by provider.
        responses: additional adapters of providers, for requests of the dialect of responses.
        messages: adapters in place of the usual ones, for requests of Anthropic's dialect.
        roles: models of internal tasks.
        web: the web tools, or None.
    """

    models: Models
    providers: Mapping[str, Provider]
    roles: Roles = field(default_factory=Roles)
    web: WebTools | None = None
    responses: Mapping[str, ResponsesAdapter] = field(default_factory=dict)
    messages: Mapping[str, Provider] = field(default_factory=dict)
    costs: Costs = field(default_factory=unknown_costs)
    batches: Mapping[str, BatchApi] = field(default_factory=dict)
    servers: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)

    @cached_property
    def providers_of(self) -> Callable[[Dialect.ValueType], Mapping[str, Provider]]:
        """A function that returns the providers by name, for requests of a dialect, or of none."""
        of_responses = _ProvidersOfResponses(self.providers, self.responses)
        by_dialect = _ByDialect(
            self.providers,
            {
                DIALECT_OPENAI: self.providers,
                DIALECT_ANTHROPIC: {**self.providers, **self.messages},
                DIALECT_RESPONSES: of_responses,
                DIALECT_GEMINI: self.providers,
            },
        )
        # Not a method: it is called for every request.
        return by_dialect.__getitem__

    @property
    def has_search(self) -> bool:
        """Whether the gateway searches the web for models."""
        return self.web is not None and self.web.available.searches
