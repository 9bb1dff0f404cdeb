"""The generation of one background response."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import grpc

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, from_rpc_error, internal
from services.common.process.byte_budget import Charge, request_charge
from services.common.process.offload import offload_if
from services.responses.live_events import LiveEvents
from services.responses.rendering import Renderer
from services.responses.runs import ResponseRun

log = logging.getLogger(__name__)


class Generation:
    """A background response that is queued, and then generated.

    Args:
        run: the stored response.
        renderer: renders the response, which it has queued.
        charge: the bytes that the response holds.
        slot: acquired while the response is generated.
        begin_call: begins the call of StreamGenerate that generates it.
        first_events: the first events; b"" unless the response is streamed.

    Attributes:
        queued: the response object, queued.
        events: the events so far; none unless the response is streamed.
    """

    def __init__(
        self,
        run: ResponseRun,
        renderer: Renderer,
        charge: Charge,
        slot: asyncio.Semaphore,
        begin_call: Callable[[], Any],
        first_events: bytes,
    ) -> None:
        self.queued = renderer.response
        self.events = LiveEvents()
        self._run = run
        self._renderer = renderer
        self._charge = charge
        self._slot = slot
        self._begin_call: Callable[[], Any] | None = begin_call
        self._is_streamed = bool(first_events)
        self._add(first_events)

    def stop(self) -> None:
        """Stop the generation, because the process stops."""
        self._run.stop()

    async def run(self) -> None:
        """Generate the response and store its end, unless its lease is lost."""
        request_charge.set(self._charge)
        try:
            await self._finish(await self._last_events())
        except GatewayError as error:
            # It was cancelled or deleted, or the database does not answer.
            log.info("a background response was not stored", extra={"code": error.code})
            self._add(self._renderer.error(error))
        finally:
            self.events.end()

    async def _last_events(self) -> bytes:
        """Generate the response, and return the last events.

        Raises:
            GatewayError: conflict, the lease of the response is lost.
        """
        try:
            return await self._run.unless_stopped(self._generate())
        except GatewayError as error:
            if self._run.is_over:
                raise
            return self._renderer.error(error)
        except (LookupError, TypeError, ValueError) as error:
            # Events that cannot be encoded.
            log.error("unforeseen failure", exc_info=error)
            return self._renderer.error(internal())

    async def _generate(self) -> bytes:
        async with self._slot:
            await self._run.start()
            assert self._begin_call is not None, "it is called once"
            call = self._begin_call()
            self._begin_call = None  # it holds the request
            try:
                while (message := await call.read()) is not grpc.aio.EOF:
                    self._add(self._renderer.encode(message.events))
            except grpc.aio.AioRpcError as error:
                raise from_rpc_error(error) from None
            finally:
                call.cancel()
        return self._renderer.finish()

    async def _finish(self, last_events: bytes) -> None:
        """Store the response, then add the last events to its stream.

        Raises:
            GatewayError: the response was not stored.
        """
        renderer = self._renderer
        events = self.events.whole()
        content = await offload_if(
            bool(events), renderer.content, events + last_events if events else b""
        )
        failure = _does_not_fit(is_in_conversation=self._run.is_in_conversation)
        is_stored = await self._run.finish(
            content, renderer.failed_body(failure), append=renderer.is_appended
        )
        self._add(last_events if is_stored else renderer.error(failure))

    def _add(self, events: bytes) -> None:
        if self._is_streamed:
            self.events.add(events)


def _does_not_fit(*, is_in_conversation: bool) -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
        "the response exceeds your plan's storage quota for memories and stored responses"
        + (", or the limits of its conversation" if is_in_conversation else ""),
    )
