"""The server side of one call: finds the handler, runs it and sets the status."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import Context
from typing import Any

import grpc

from services.common.inprocess.context import CallContext, Handler, OverError
from services.common.inprocess.exchange import Exchange, Metadata

log = logging.getLogger(__name__)

_OK = grpc.StatusCode.OK


class CallDetails(grpc.HandlerCallDetails):
    """The call details passed to an interceptor."""

    def __init__(self, method: str, invocation_metadata: Metadata) -> None:
        self.method = method
        self.invocation_metadata = invocation_metadata


# Returns the handler of a call, or None, by way of the interceptors.
Find = Callable[[CallDetails], Awaitable[Handler | None]]


class ServedCall(CallContext):
    """The server side of a call.

    Attributes:
        task: the task that runs the handler.
    """

    def __init__(self, exchange: Exchange, find: Find, registry: "set[ServedCall]") -> None:
        """Start serving a call; `registry` holds it until it has been served."""
        self._exchange = exchange
        self._registry = registry
        registry.add(self)
        # In an empty context: the caller's context variables must not reach the servicer.
        self.task = exchange.loop.create_task(self._run(find), context=Context())
        exchange.on_leave = self.task.cancel
        # Not at the end of the task's own code, which never runs if the task is cancelled at once.
        self.task.add_done_callback(self._ended)

    def end(self, code: grpc.StatusCode, text: str) -> None:
        """End the call at once with a status other than the servicer's."""
        if not self._exchange.is_over:
            self._exchange.answer(code, text, ())
            self.task.cancel()

    async def _run(self, find: Find) -> None:
        exchange = self._exchange
        try:
            handler = self.handler = await find(CallDetails(exchange.method, exchange.metadata))
            if handler is None:
                exchange.answer(grpc.StatusCode.UNIMPLEMENTED, "Method not found!", ())
                return
            request: Any = self
            if not handler.request_streaming:
                request = await self.read()
                if request is grpc.aio.EOF:
                    exchange.answer(grpc.StatusCode.INTERNAL, "the caller sent no request", ())
                    return
            if handler.response_streaming:
                await self._stream((handler.unary_stream or handler.stream_stream)(request, self))
            else:
                response = await (handler.unary_unary or handler.stream_unary)(request, self)
                if self._code is None or self._code is _OK:
                    if exchange.is_over:
                        return
                    exchange.send_response(response)
            if not exchange.is_over:
                exchange.answer(self._code or _OK, self._text, self._trailing)
        except (Exception, asyncio.CancelledError) as error:
            self._fail(error)

    async def _stream(self, responses: Any) -> None:
        """Send the responses that a servicer yields."""
        if not isinstance(responses, AsyncIterator):
            await responses
            return
        exchange = self._exchange
        try:
            async for response in responses:
                if exchange.is_over:
                    return
                if exchange.send_response(response) and exchange.responses is not None:
                    await exchange.responses.drained()
        finally:
            close = getattr(responses, "aclose", None)
            if close is not None:
                await close()

    def _fail(self, error: BaseException) -> None:
        """End the call with the status of an exception, unless it has ended."""
        exchange = self._exchange
        if isinstance(error, asyncio.CancelledError):
            if not exchange.is_over:
                exchange.answer(grpc.StatusCode.CANCELLED, "the call was cancelled", ())
        elif self.aborted is None and not isinstance(error, grpc.aio.AbortError | OverError):
            kind = type(error)
            log.error(
                "unexpected %s raised by the servicer of %s",
                kind.__name__,
                exchange.method,
                exc_info=error,
            )
            if not exchange.is_over:
                code = self._code if self._code not in (None, _OK) else None
                text = f"Unexpected {kind}: {error}"
                exchange.answer(code or grpc.StatusCode.UNKNOWN, text, self._trailing)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._registry.discard(self)
        exchange = self._exchange
        exchange.on_leave = None
        if not exchange.is_over:  # cancelled before it started
            exchange.answer(grpc.StatusCode.CANCELLED, "the call was cancelled", ())
        for callback in self._callbacks or ():
            try:
                callback(self)
            except Exception:
                log.exception("a callback of a call failed")
