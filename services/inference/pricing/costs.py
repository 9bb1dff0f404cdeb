"""The price of each model, and the costs of answers."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from gateway.conversation.v1.conversation_pb2 import Usage
from services.common import settings
from services.common.money import picodollars
from services.inference.pricing.counts import counts_of
from services.inference.pricing.price import (
    Counts,
    MostUsage,
    Price,
    Rate,
    TokenRates,
    Unit,
    cost,
    highest_cost,
    of_batches,
    token_rates,
)
from services.inference.pricing.price_list import PublishedPrices, published_prices

_KEPT = 1_000
_TOKENS = 10**6
# Units that the settings price by the thousand or individually, instead of by the million.
_PER = {Unit.WEB_SEARCH: 10**3, Unit.REQUEST: 10**3, Unit.AUDIO_HOUR: 1, Unit.IMAGE: 1}
_SANDBOX, _EMBEDDED = "sandbox", "embedded"
_FREE: Price = {unit: Rate(0) for unit in Unit}
_LOOPBACK_NAMES = frozenset({"localhost", "host.docker.internal"})


class Costs:
    """The prices of all models that callers can name.

    Args:
        providers: the providers by name.
        configured: returns the configured model of a name, or None.
        now_ms: returns the time in Unix milliseconds.
    """

    def __init__(
        self,
        providers: Mapping[str, settings.Provider],
        configured: Callable[[str], settings.Model | None],
        now_ms: Callable[[], int],
    ) -> None:
        self._providers = providers
        self._configured = configured
        self._now_ms = now_ms
        self._found = lru_cache(_KEPT)(self._find)
        # The prices of tokens, by provider, model and the provider's name of the model.
        self.token_rates = lru_cache(_KEPT)(self._token_rates)

    def cost_of(
        self, usage: Usage, provider: str, model: str, upstream: str = "", at_ms: int | None = None
    ) -> int | None:
        """Return the cost of an answer in picodollars, or None if it is not known.

        Args:
            usage: the usage reported by the provider; the cost of its `helpers` is not included.
            provider: the name of the provider.
            model: the name that callers use.
            upstream: the provider's name of the model; by default as in `model`.
            at_ms: when the model was called, in Unix milliseconds; by default now.
        """
        return self.cost_of_counts(counts_of(usage), provider, model, upstream, at_ms)

    def cost_of_counts(
        self,
        counts: Counts,
        provider: str,
        model: str,
        upstream: str = "",
        at_ms: int | None = None,
        *,
        is_batch: bool = False,
    ) -> int | None:
        """Return the cost of billed units in picodollars, or None; see `cost_of`.

        With `is_batch` it is the cost at the provider's batch service.
        """
        price = self._found(provider, model, upstream)
        if isinstance(price, PublishedPrices):
            price = price.at(self._now_ms() if at_ms is None else at_ms)
        if is_batch and price is not None and (served_by := self._providers.get(provider)):
            price = of_batches(price, served_by.batch_price_factor)
        return None if price is None else cost(price, counts)

    def highest_cost(
        self, usage: MostUsage, provider: str, model: str, upstream: str
    ) -> int | None:
        """Return the highest cost of a request now in picodollars, or None; see `highest_cost`."""
        price = self._found(provider, model, upstream)
        if isinstance(price, PublishedPrices):
            price = price.at(self._now_ms())
        return None if price is None else highest_cost(price, usage)

    def is_priced(self, provider: str, model: str, upstream: str) -> bool:
        """Return whether any price of a model is known."""
        return self._found(provider, model, upstream) is not None

    def _token_rates(self, provider: str, model: str, upstream: str) -> TokenRates | None:
        """Return the prices of a model's tokens; None if `cost_of_counts` has to compute costs."""
        price = self._found(provider, model, upstream)
        if isinstance(price, PublishedPrices):
            price = price.constant
        return None if price is None else token_rates(price)

    def _find(self, provider: str, model: str, upstream: str) -> Price | PublishedPrices | None:
        configured = self._configured(model)
        if configured is not None and configured.provider == provider:
            upstream = upstream or configured.upstream
            if configured.price is not None:
                return _configured_price(configured.price)
        served_by = self._providers.get(provider)
        if served_by is not None and served_by.price is not None:
            return _configured_price(served_by.price)
        if served_by is None:
            return _FREE if provider in (_SANDBOX, _EMBEDDED) else None
        if served_by.kind == _SANDBOX or is_own_server(served_by):
            return _FREE
        name = upstream or model.removeprefix(f"{provider}/")
        return published_prices(served_by.base_url, name)


def is_own_server(provider: settings.Provider) -> bool:
    """Return whether a provider is a server on this machine that needs no key, such as Ollama.

    Its models are free if the settings have no price.
    """
    host = urlsplit(provider.base_url).hostname or ""
    if provider.api_key_env or provider.api_key.get_secret_value() or provider.headers:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in _LOOPBACK_NAMES


def unknown_costs() -> Costs:
    """Return `Costs` without any price."""
    return Costs({}, lambda name: None, lambda: 0)


def _configured_price(price: settings.Price) -> Price:
    """Return the price in a section of the settings, whose fields are named like units."""
    configured = price.model_dump(exclude_none=True)
    return {
        Unit(name): Rate(picodollars(dollars, per=_PER.get(Unit(name), _TOKENS)))
        for name, dollars in configured.items()
    }
