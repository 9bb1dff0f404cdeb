"""Responses that are generated in the background, by the process that accepted them.

A run is a call of the service of stored responses that stays open: it makes the response durable,
holds it while it is generated, and stores its end. Callers' keys are not stored, so no other
process could go on with a response: one whose process dies is marked as failed by the service, and
is never generated a second time. A cancelled response ends the call, which ends the generation.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack, suppress
from typing import Any

import grpc

from facade.dialects import responses, stored_responses
from facade.draining import stopping
from facade.failures import to_gateway_error
from facade.http.exchange import Exchange
from facade.live_events import LiveEvents
from facade.parsing import Parsed
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.responses_pb2 import FinishResponse, RunResponseRequest, StartResponse
from services.common.channels import Metadata
from services.common.errors import GatewayError, from_rpc_error, internal

log = logging.getLogger(__name__)


class BackgroundResponse:
    """One response that is generated in the background.

    Args:
        exchange: the request that it was asked for with.
        parsed: the request's body.
        state: what it says about the response.
        metadata: of the calls that are made for it.
        response_id: id of the response.

    Attributes:
        events: where it is streamed, its events so far.
    """

    def __init__(
        self,
        exchange: Exchange,
        parsed: Parsed,
        state: responses.ResponseState,
        metadata: Metadata,
        response_id: str,
    ) -> None:
        assert exchange.caller is not None, "it has been authenticated"
        context = exchange.context
        self.events = LiveEvents(stored_responses.MAX_EVENTS)
        self._exchange = exchange
        self._context = context
        self._tasks = context.background
        self._user_id = exchange.caller.user_id
        self._metadata = metadata
        self._request: Any = parsed.request
        self._model = parsed.model
        self._is_streamed = parsed.stream
        self._state = state
        self._id = response_id
        self._created = int(context.clock.now())
        now = context.clock.now
        self._encoder = responses.ResponseStream(response_id, self._created, state.echo, now)
        self._call: Any = None
        self._held = ExitStack()
        self._generating: asyncio.Task[bytes] | None = None
        self._is_stopped = False
        self._started = asyncio.Event()

    async def begin(self) -> bytes:
        """Store the response as queued, start to generate it, and return its object.

        Raises:
            GatewayError: the user has too many of them; it could not be stored.
        """
        with ExitStack() as held:
            self._tasks.admit(self._user_id)
            held.callback(self._tasks.release, self._user_id)
            size = _size(self._request)
            self._context.body_budget.reserve(self._user_id, size, 0)
            held.callback(self._context.body_budget.release, self._user_id, size)
            await self._create()
            self._held = held.pop_all()
        queued = self._encoder.response
        self._tasks.spawn(self._run(), self.stop)
        return queued

    def stop(self) -> None:
        """End the response, since the process stops."""
        self._is_stopped = True
        if self._generating is not None:
            self._generating.cancel()

    async def _create(self) -> None:
        """Make the response durable, with the call that holds it."""
        queued = self._encoder.queue(self._model)
        state = self._state
        new = stored_responses.new_response(
            self._id,
            state.previous_response_id,
            state.input_items,
            self._encoder.response,
            state.conversation,
        )
        self._call = self._context.responses.RunResponse(metadata=self._metadata)
        try:
            await self._write(RunResponseRequest(create=new))
            await self._answer()
        except BaseException:
            self._call.cancel()
            raise
        self._add(queued)

    async def _run(self) -> None:
        """Generate the response and store its end, unless it is lost before."""
        with self._held:
            lost = asyncio.ensure_future(self._finished())
            self._generating = asyncio.create_task(self._generate())
            if self._is_stopped:
                self._generating.cancel()
            try:
                await asyncio.wait({lost, self._generating}, return_when=asyncio.FIRST_COMPLETED)
                if lost.done():
                    lost.result()
                await self._finish(self._end(), lost)
            except GatewayError as error:
                # It was cancelled or deleted, or the service has ended.
                log.info("a background response was not stored", extra={"code": error.code})
                self._add(self._encoder.error(error))
            finally:
                self._generating.cancel()
                lost.cancel()
                self._call.cancel()
                self.events.end()

    async def _generate(self) -> bytes:
        """Generate the answer once its turn has come, and return the end of its stream."""
        try:
            async with self._tasks.place(self._user_id):
                await self._write(RunResponseRequest(start=StartResponse()))
                await self._started.wait()
                return await self._read_answer()
        except asyncio.CancelledError:
            if not self._is_stopped:
                raise
            return self._encoder.error(stopping())
        except (grpc.aio.AioRpcError, LookupError, TypeError, ValueError) as error:
            return self._encoder.error(to_gateway_error(error, self._exchange))

    async def _read_answer(self) -> bytes:
        inference = self._context.inference
        call: Any = inference.StreamGenerate(self._request, metadata=self._metadata)
        self._request = None  # it may be large
        try:
            while (message := await call.read()) is not grpc.aio.EOF:
                self._add(self._encoder.encode(message.events))
        finally:
            call.cancel()
        return self._encoder.finish()

    def _end(self) -> bytes:
        """Return the end of the stream."""
        assert self._generating is not None
        if self._generating.cancelled():
            return self._encoder.error(stopping())
        return self._generating.result()

    async def _finish(self, end: bytes, finished: asyncio.Future[Any]) -> None:
        """Store the end of the response, and add the end of its stream after that.

        Raises:
            GatewayError: it was not stored.
        """
        streamed = self.events.whole()
        packed = (
            await asyncio.to_thread(stored_responses.pack_events, streamed + end)
            if streamed
            else b""
        )
        is_in_conversation = self._state.conversation is not None
        failure = GatewayError(
            errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
            "the response does not fit in what your plan has for memories and stored responses"
            + (", or in its conversation" if is_in_conversation else ""),
        )
        failed = responses.failed_response(
            failure, self._id, self._created, self._state.echo, self._model
        )
        last = FinishResponse(
            content=stored_responses.response_content(self._encoder.response, packed),
            body_without_room=stored_responses.response_content(failed).body,
            append=is_in_conversation and stored_responses.is_appended(self._encoder.response),
        )
        await self._write(RunResponseRequest(finish=last))
        if (await finished).finished.without_room:
            end = self._encoder.error(failure)
        self._add(end)

    def _add(self, data: bytes) -> None:
        if self._is_streamed:
            self.events.add(data)

    async def _write(self, step: RunResponseRequest) -> None:
        # Writing to a call that has ended fails without the reason, which reading gives.
        with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            await self._call.write(step)

    async def _finished(self) -> Any:
        """Return the service's last answer.

        Raises:
            GatewayError: the call has ended before it.
        """
        answer = await self._answer()
        if answer.HasField("started"):
            self._started.set()
            answer = await self._answer()
        return answer

    async def _answer(self) -> Any:
        """Return the service's next answer.

        Raises:
            GatewayError: the call has ended.
        """
        try:
            answer = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        if answer is grpc.aio.EOF:
            raise internal()
        return answer


def _size(request: Any) -> int:
    return int(request.ByteSize())
