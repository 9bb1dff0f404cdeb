"""Interface to the batch services of providers, which another service of the process has."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, unsupported

# Reasons of errors of a batch that its provider, or a service that the settings, do not have.
GONE = (
    errors_pb2.REASON_UNSUPPORTED,
    errors_pb2.REASON_MODEL_NOT_FOUND,
    errors_pb2.REASON_NOT_FOUND,
)
Headers = tuple[tuple[str, str], ...]


class BatchServices(Protocol):
    """The batch services of providers, by the providers' names.

    Methods that name a provider raise GatewayError: `unsupported` if it has no such service, else
    what the provider's failure is.
    """

    @property
    def has_any(self) -> bool:
        """Whether there is a provider with a batch service."""

    def serves(self, model: str) -> bool:
        """Return whether the provider of a model has a batch service."""

    async def create(
        self,
        provider: str,
        name: str,
        path: str,
        headers: Headers,
        requests: Sequence[tuple[str, bytes]],
    ) -> str:
        """Create a batch of requests, each an id and a body; return the provider's id of it."""

    async def find(self, provider: str, name: str, since_s: float) -> str:
        """Return the provider's id of a batch with a name, created after a time in Unix seconds.

        "" if there is none. It raises GatewayError while that is not known.
        """

    async def has_ended(self, provider: str, batch_id: str) -> bool:
        """Return whether a batch has ended, for any reason."""

    def answers(self, provider: str, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the id of each request that was answered, with the body of the answer."""

    async def cancel(self, provider: str, batch_id: str) -> None:
        """Cancel a batch."""

    async def delete(self, provider: str, batch_id: str) -> None:
        """Delete a batch that has ended, with its files."""


class _NoProviders:
    """Batch services of no providers."""

    has_any = False

    def serves(self, model: str) -> bool:
        """Return False."""
        return False

    async def create(
        self,
        provider: str,
        name: str,
        path: str,
        headers: Headers,
        requests: Sequence[tuple[str, bytes]],
    ) -> str:
        """Raise an error."""
        raise _no_service()

    async def find(self, provider: str, name: str, since_s: float) -> str:
        """Raise an error."""
        raise _no_service()

    async def has_ended(self, provider: str, batch_id: str) -> bool:
        """Raise an error."""
        raise _no_service()

    def answers(self, provider: str, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Raise an error."""
        raise _no_service()

    async def cancel(self, provider: str, batch_id: str) -> None:
        """Raise an error."""
        raise _no_service()

    async def delete(self, provider: str, batch_id: str) -> None:
        """Raise an error."""
        raise _no_service()


def _no_service() -> GatewayError:
    return unsupported("model", "model: its provider has no batch service")


NO_PROVIDERS = _NoProviders()
