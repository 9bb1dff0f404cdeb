"""Responses that are generated in the background: their leases, and waiting for their end."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.responses_pb2 import NewResponse, ResponseContent, StoredResponse
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge
from services.common.storage.leased_rows import LeaseRenewer, wait_briefly
from services.responses.records import ITEM_COST, LeasedResponse, lease_lost_error
from services.responses.repository import ResponseRepository

# Seconds between two polls of a response that another process generates.
_POLL_S = 0.5
_RUNNING = (StoredResponse.STATE_QUEUED, StoredResponse.STATE_IN_PROGRESS)

_T = TypeVar("_T")


class ResponseRun:
    """A response that this process generates.

    Attributes:
        is_in_conversation: whether it belongs to a stored conversation.
        is_over: whether it has ended, or its lease is lost.
    """

    def __init__(
        self, repository: ResponseRepository, leased: LeasedResponse, max_bytes: int
    ) -> None:
        self._repository = repository
        self._leased = leased
        self._max_bytes = max_bytes
        self._failure: GatewayError | None = None
        self._generating: asyncio.Future[Any] | None = None
        self.is_in_conversation = bool(leased.conversation_id)
        self.is_over = False

    def mark_lost(self) -> None:
        """Mark the lease of the response as lost."""
        self.is_over = True
        self._stop(lease_lost_error())

    def stop(self) -> None:
        """Stop the generation, because the process stops."""
        self._stop(_stopping())

    def _stop(self, failure: GatewayError) -> None:
        self._failure = failure
        if self._generating is not None:
            self._generating.cancel()

    async def unless_stopped(self, generating: Coroutine[Any, Any, _T]) -> _T:
        """Run the generation and return its result.

        Raises:
            GatewayError: conflict, the lease of the response is lost; unavailable, the process
                stops.
        """
        self._generating = asyncio.ensure_future(generating)
        if self._failure is not None:
            self._generating.cancel()
        try:
            result: _T = await self._generating
            return result
        except asyncio.CancelledError:
            if self._failure is None:
                raise
            raise self._failure from None

    async def start(self) -> None:
        """Record that the response is being generated; see `ResponseRepository.start`."""
        await self._repository.start(self._leased)

    async def finish(
        self, content: ResponseContent, substitute_body: bytes, *, append: bool = False
    ) -> bool:
        """Record the end of the response; see `ResponseRepository.finish`."""
        is_stored = await self._repository.finish(
            self._leased, self._max_bytes, content, substitute_body, append=append
        )
        self.is_over = True
        return is_stored


class ResponseRuns:
    """The responses that one process generates, and the calls that wait for responses."""

    def __init__(self, repository: ResponseRepository) -> None:
        self._repository = repository
        self._renewer = LeaseRenewer(repository.renew, repository.limits.lease_s)
        self._running: dict[tuple[str, str], ResponseRun] = {}
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def run(
        self, owner_id: str, max_bytes: int, new: NewResponse
    ) -> AsyncIterator[ResponseRun]:
        """Store a queued response, and hold its lease until the block is left.

        A response that has not ended by then is interrupted.

        Raises:
            GatewayError: as `ResponseRepository.create_leased`.
        """
        leased = await self._repository.create_leased(owner_id, max_bytes, new)
        del new  # it may be large
        run = ResponseRun(self._repository, leased, max_bytes)
        key = (owner_id, leased.response_id)
        self._running[key] = run
        self._renewer.add(leased, run.mark_lost)
        try:
            yield run
        finally:
            self._renewer.discard(leased)
            del self._running[key]
            if not run.is_over:
                # Shielded: this task may have been cancelled.
                await asyncio.shield(asyncio.ensure_future(self._repository.interrupt(leased)))
            self._wake()

    async def wait(
        self,
        owner_id: str,
        response_id: str,
        wait_s: float,
        charge: Charge,
        *,
        with_events: bool,
    ) -> StoredResponse:
        """Return a response, once it has ended or `wait_s` is over; its bytes are charged.

        Raises:
            GatewayError: not_found; as `Charge.acquire`.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait_s
        while True:
            ended = self._ended
            charge.release()
            response = await self._repository.find(
                owner_id, response_id, with_events=with_events, admit=charge.at(ITEM_COST)
            )
            left_s = deadline - clock()
            if response.state not in _RUNNING or left_s <= 0:
                return response
            await wait_briefly(ended, min(left_s, _POLL_S))

    async def cancel(self, owner_id: str, response_id: str) -> StoredResponse:
        """Cancel a response; see `ResponseRepository.cancel`."""
        cancelled = await self._repository.cancel(owner_id, response_id)
        self._lose(owner_id, response_id)
        return cancelled

    async def delete(self, owner_id: str, response_id: str) -> None:
        """Delete a response; see `ResponseRepository.delete`."""
        await self._repository.delete(owner_id, response_id)
        self._lose(owner_id, response_id)

    async def close(self) -> None:
        """Wait for a renewal of leases in progress."""
        await self._renewer.close()

    def _lose(self, owner_id: str, response_id: str) -> None:
        """Mark the lease of a response as lost, if this process generates it."""
        if run := self._running.get((owner_id, response_id)):
            run.mark_lost()
        self._wake()

    def _wake(self) -> None:
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()


def _stopping() -> GatewayError:
    """Return the error of a response that is interrupted by shutdown."""
    return GatewayError(
        errors_pb2.REASON_UNAVAILABLE, "the gateway is stopping; try again", limit="limits.drain_s"
    )
