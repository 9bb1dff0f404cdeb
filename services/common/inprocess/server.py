"""The server side: a replacement for `grpc.aio.Server`, and the calls that it serves."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

import grpc

from services.common.byte_budget import context_of_call
from services.common.inprocess.context import CallContext, Handler, OverError
from services.common.inprocess.exchange import Exchange

log = logging.getLogger(__name__)

_OK = grpc.StatusCode.OK
NOT_SERVING = "the server is not running"


# Returns the handler of a call through the interceptors, or None.
Find = Callable[["grpc.HandlerCallDetails"], Awaitable[Handler | None]]


class InProcessServer:
    """Serves the calls of `InProcessChannel`s.

    Handlers are coroutines and asynchronous generators; others are not supported.

    Attributes:
        max_message_bytes: maximum size of a message in bytes, in both directions.
        find: returns the handler of a call through the interceptors, or None.
        is_serving: whether it accepts calls.
    """

    def __init__(
        self, interceptors: Sequence[grpc.aio.ServerInterceptor], *, max_message_bytes: int
    ) -> None:
        """Create a server that accepts no calls yet.

        Args:
            interceptors: interceptors of every call, outermost first.
            max_message_bytes: maximum size of a message in bytes, in both directions.
        """
        self.max_message_bytes = max_message_bytes
        self._methods: dict[str, Handler] = {}
        self._generic: list[grpc.GenericRpcHandler] = []
        self._calls: set[ServedCall] = set()
        self._emptied: asyncio.Future[None] | None = None
        self.is_serving = False
        find: Any = self._find
        for interceptor in reversed(interceptors):
            find = partial(interceptor.intercept_service, find)
        self.find: Find = find

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]
    ) -> None:
        """Register handlers."""
        self._generic += generic_rpc_handlers

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, Handler]
    ) -> None:
        """Register the methods of a service."""
        for name, handler in method_handlers.items():
            self._methods[f"/{service_name}/{name}"] = handler

    def start(self) -> None:
        """Start accepting calls."""
        self.is_serving = True

    def begin(self, exchange: Exchange) -> None:
        """Start serving a call."""
        if not self.is_serving:
            exchange.leave(grpc.StatusCode.UNAVAILABLE, NOT_SERVING)
        elif exchange.code is None:
            self._calls.add(ServedCall(exchange, self))

    def served(self, call: "ServedCall") -> None:
        """Remove a call that has been served."""
        self._calls.discard(call)
        if self._emptied is not None and not self._calls and not self._emptied.done():
            self._emptied.set_result(None)

    async def stop(self, grace_s: float | None) -> None:
        """Reject new calls, and cancel those still running after `grace_s` seconds."""
        self.is_serving = False
        self._emptied = asyncio.get_running_loop().create_future()
        if grace_s and self._calls:
            await asyncio.wait([self._emptied], timeout=grace_s)
        for call in list(self._calls):
            call.end(grpc.StatusCode.UNAVAILABLE, NOT_SERVING)
        if self._calls:
            await self._emptied

    async def _find(self, details: "grpc.HandlerCallDetails") -> Handler | None:
        handler = self._methods.get(details.method)
        if handler is not None:
            return handler
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None


class ServedCall(CallContext):
    """The server side of a call.

    The servicer runs in a task of its own. If a call with one request is awaited, or its responses
    are delivered, before the event loop runs anything else, the servicer runs in the caller's task:
    that saves a task and two event loop iterations. In both cases it runs in an empty context: the
    caller's context variables must not reach the servicer.
    """

    _task: asyncio.Task[Any] | None = None
    _starting: asyncio.Handle | None = None
    _is_left = _is_cancelled = False

    def __init__(self, exchange: Exchange, server: InProcessServer) -> None:
        """Start serving a call, in the next loop iteration if it has one request."""
        self._exchange = exchange
        self._server = server
        exchange.on_leave = self._leave
        if exchange.requests is None:
            exchange.serve_here = self._serve_here
            self._starting = exchange.loop.call_soon(self._start)
        else:
            self._start()

    def end(self, code: grpc.StatusCode, text: str) -> None:
        """End the call at once with a status other than the servicer's."""
        if not self._exchange.is_over:
            self._exchange.answer(code, text, ())
            self._leave()

    def _start(self) -> None:
        """Serve the call in a task of its own."""
        exchange = self._exchange
        exchange.serve_here = self._starting = None
        task = self._task = exchange.loop.create_task(self._run(), context=context_of_call())
        # Not at the end of the task's own code, which never runs if the task is cancelled at once.
        task.add_done_callback(self._ended)

    def _serve_here(self) -> Generator[Any, None, None]:
        """Serve the call in the current task; `__await__` iterates over it.

        Raises:
            asyncio.CancelledError: the task was cancelled in the meantime.
        """
        exchange = self._exchange
        assert self._starting is not None, "it has not been started"
        self._starting.cancel()
        exchange.serve_here = self._starting = None
        task = self._task = asyncio.current_task(exchange.loop)
        assert task is not None, "a call is awaited in a task"
        cancelling = task.cancelling()
        run, coroutine = context_of_call().run, self._run()
        try:
            awaited = run(coroutine.send, None)
            while True:
                try:
                    yield awaited
                except GeneratorExit:
                    run(coroutine.close)
                    raise
                except BaseException as error:
                    awaited = run(coroutine.throw, error)
                else:
                    awaited = run(coroutine.send, None)
        except StopIteration:
            pass  # it has been served
        finally:
            self._ended()
        if self._is_cancelled and not self._is_left and task.cancelling() > cancelling:
            # The traceback refers to this frame, and the task to the exception.
            del task
            raise asyncio.CancelledError
        # Undo cancellations by `_leave`, and by a task group: when a task fails while the group
        # waits for it, the task group of Python 3.11 cancels its parent and does not undo that.
        while task.cancelling() > cancelling:
            task.uncancel()

    def _leave(self) -> None:
        """Stop serving a call that has ended."""
        if self._starting is not None:
            self._starting.cancel()
            self._ended()
        elif self._task is not None:
            self._is_left = True
            self._task.cancel()

    async def _run(self) -> None:
        exchange = self._exchange
        try:
            handler = self.handler = await self._server.find(exchange)
            if handler is None:
                exchange.answer(grpc.StatusCode.UNIMPLEMENTED, "Method not found!", ())
                return
            request: Any = self
            if not handler.request_streaming:
                request = await self.read() if exchange.requests else self.take_request()
                if request is grpc.aio.EOF:
                    exchange.answer(grpc.StatusCode.INTERNAL, "the caller sent no request", ())
                    return
            if handler.response_streaming:
                responses = (handler.unary_stream or handler.stream_stream)(request, self)
                if isinstance(responses, AsyncIterator):
                    responses = self._stream(responses)
                await responses
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

    async def _stream(self, responses: AsyncIterator[Any]) -> None:
        """Send the responses that a servicer yields."""
        try:
            async for response in responses:
                await self.write(response)
        finally:
            close = getattr(responses, "aclose", None)
            if close is not None:
                await close()

    def _fail(self, error: BaseException) -> None:
        """End the call with the status of an exception, unless it has ended."""
        exchange = self._exchange
        if isinstance(error, asyncio.CancelledError):
            self._is_cancelled = True
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

    def _ended(self, _: object = None) -> None:
        self._server.served(self)
        exchange = self._exchange
        exchange.on_leave = exchange.serve_here = None
        self._task = None
        if self.aborted is not None:
            # Keep a copy: the traceback of the raised error would keep a reference to this call.
            self.aborted = grpc.aio.AbortError(*self.aborted.args)
        if not exchange.is_over:  # cancelled before it started
            exchange.answer(grpc.StatusCode.CANCELLED, "the call was cancelled", ())
        for callback in self._callbacks or ():
            try:
                callback(self)
            except Exception:
                log.exception("a callback of a call failed")
