"""The batch services of all providers, for the service of batches in this process."""

from collections.abc import AsyncIterator, Callable, Sequence

from services.common.errors import GatewayError
from services.inference.providers.batches import BatchApi, Headers
from services.inference.routes import Routes
from services.inference.run.deferred import not_deferred


class ProviderBatches:
    """The batch services by provider; see `services.inference.providers.batches.BatchApi`.

    Every method raises `unsupported` if the settings do not have the service any more.

    Args:
        routes: returns the current routes.
    """

    def __init__(self, routes: Callable[[], Routes]) -> None:
        self._routes = routes

    @property
    def has_any(self) -> bool:
        """Whether there is a provider with a batch service."""
        return bool(self._routes().batches)

    def serves(self, model: str) -> bool:
        """Return whether the provider of a model has a batch service."""
        routes = self._routes()
        try:
            target = routes.models.resolve(model)
        except GatewayError:
            return False
        deployments = target.deployments
        targets = (target,) if deployments is None else deployments.targets
        return any(each.provider in routes.batches for each in targets)

    async def create(
        self,
        provider: str,
        name: str,
        path: str,
        headers: Headers,
        requests: Sequence[tuple[str, bytes]],
    ) -> str:
        """Create a batch, and return the provider's id of it."""
        return await self._api(provider).create(name, path, headers, requests)

    async def find(self, provider: str, name: str, since_s: float) -> str:
        """Return the provider's id of the batch with a name, or ""."""
        return await self._api(provider).find(name, since_s)

    async def has_ended(self, provider: str, batch_id: str) -> bool:
        """Return whether a batch has ended."""
        return await self._api(provider).has_ended(batch_id)

    def answers(self, provider: str, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the ids of requests that were answered, with the answers."""
        return self._api(provider).answers(batch_id)

    async def cancel(self, provider: str, batch_id: str) -> None:
        """Cancel a batch."""
        await self._api(provider).cancel(batch_id)

    async def delete(self, provider: str, batch_id: str) -> None:
        """Delete a batch that has ended."""
        await self._api(provider).delete(batch_id)

    def _api(self, provider: str) -> BatchApi:
        api = self._routes().batches.get(provider)
        if api is None:
            raise not_deferred()
        return api
