"""Responses that are generated in the background, by the process that accepted them.

A run is a `RunResponse` call that stays open: it makes the response durable, holds its lease while
it is generated, and stores the result. Callers' keys are not stored, so no other process could
continue a response: if its process dies, the service marks it as failed, and it is never generated
again. Cancelling a response ends the call, which ends the generation.
"""

import asyncio
import logging
from contextlib import ExitStack, suppress
from typing import Any

import grpc

from facade.dialects import responses, stored_responses
from facade.dialects.parsed_request import ParsedRequest
from facade.failures import to_gateway_error
from facade.http.exchange import Exchange
from facade.live_events import LiveEvents
from facade.requests_in_progress import stopping
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.responses_pb2 import FinishResponse, RunResponseRequest, StartResponse
from services.common.errors import GatewayError, from_rpc_error, internal
from services.common.grpc.channels import Metadata
from services.common.process.byte_budget import Charge

log = logging.getLogger(__name__)


class BackgroundResponse:
    """A response that is generated in the background.

    Args:
        exchange: the request that created the response.
        parsed: the request's body.
        state: the request's storage options and the fields that the response echoes.
        metadata: metadata of the gRPC calls.
        response_id: id of the response.
        charge: the bytes that the request holds for stored items; taken over by the response.

    Attributes:
        events: the events so far, if the response is streamed.
    """

    def __init__(
        self,
        exchange: Exchange,
        parsed: ParsedRequest,
        state: responses.ResponseState,
        metadata: Metadata,
        response_id: str,
        charge: Charge | None,
    ) -> None:
        assert exchange.caller is not None, "it has been authenticated"
        context = exchange.context
        self.events = LiveEvents(stored_responses.MAX_EVENTS)
        self._exchange = exchange
        self._context = context
        self._tasks = context.background
        self._user_id = exchange.caller.user_id
        self._metadata = metadata
        self._request: Any = parsed.message
        self._model = parsed.model
        self._is_streamed = parsed.stream
        self._state = state
        self._id = response_id
        self._created = int(context.clock.now())
        now = context.clock.now
        self._encoder = responses.ResponseStream(response_id, self._created, state.echo, now)
        self._charge = charge
        self._call: Any = None
        self._held = ExitStack()
        self._generating: asyncio.Task[bytes] | None = None
        self._is_stopped = False
        self._started = asyncio.Event()

    async def begin(self) -> bytes:
        """Store the response as queued, start its generation, and return the response object.

        Raises:
            GatewayError: the user has too many background responses; the response could not be
                stored.
        """
        with ExitStack() as held:
            self._tasks.admit(self._user_id)
            held.callback(self._tasks.release, self._user_id)
            charge = held.enter_context(Charge(self._context.budget, self._user_id))
            if self._charge is None or not self._charge.size:
                charge.reserve(_size(self._request))
            else:
                charge.take_over(self._charge)
            await self._create()
            self._held = held.pop_all()
        queued = self._encoder.response
        self._tasks.spawn(self._run(), self.stop)
        return queued

    def stop(self) -> None:
        """Stop the generation, because the process stops."""
        self._is_stopped = True
        if self._generating is not None:
            self._generating.cancel()

    async def _create(self) -> None:
        """Open the call that holds the response, and store the response as queued."""
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
        """Generate the response and store the result, unless the call ends first."""
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
        """Wait for a place, generate the answer, and return the last bytes of its stream."""
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
        """Return the last bytes of the stream."""
        assert self._generating is not None
        if self._generating.cancelled():
            return self._encoder.error(stopping())
        return self._generating.result()

    async def _finish(self, end: bytes, finished: asyncio.Future[Any]) -> None:
        """Store the finished response, then add the last bytes to its stream.

        Raises:
            GatewayError: the response was not stored.
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
            "the response exceeds your plan's storage quota for memories and stored responses"
            + (", or the limits of its conversation" if is_in_conversation else ""),
        )
        failed = responses.failed_response(
            failure, self._id, self._created, self._state.echo, self._model
        )
        last = FinishResponse(
            content=stored_responses.response_content(self._encoder.response, packed),
            substitute_body=stored_responses.response_content(failed).body,
            append=is_in_conversation and stored_responses.is_appended(self._encoder.response),
        )
        await self._write(RunResponseRequest(finish=last))
        if (await finished).finished.stored_substitute:
            end = self._encoder.error(failure)
        self._add(end)

    def _add(self, data: bytes) -> None:
        if self._is_streamed:
            self.events.add(data)

    async def _write(self, step: RunResponseRequest) -> None:
        # Writing to an ended call fails without the service's error; the next read raises that.
        with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            await self._call.write(step)

    async def _finished(self) -> Any:
        """Wait for the last message of the service, and return it.

        Raises:
            GatewayError: the call ended before its last message.
        """
        answer = await self._answer()
        if answer.HasField("started"):
            self._started.set()
            answer = await self._answer()
        return answer

    async def _answer(self) -> Any:
        """Return the next message of the service.

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
