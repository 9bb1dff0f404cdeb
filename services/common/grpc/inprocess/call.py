"""The servers' end of the calls within a process: a replacement for `grpc.aio.Server`, its calls.

A running call has its servicer, its context variables, its deadline and its end.
"""

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextvars import Context, ContextVar
from functools import partial
from types import SimpleNamespace, coroutine
from typing import Any, Final

import grpc

from services.common.grpc.inprocess.context import (
    CallContext,
    Metadata,
    OverError,
    size_error,
    status_error,
)
from services.common.messages.deferred_call import deferred_call
from services.common.process.byte_budget import request_charge, response_charge

log = logging.getLogger(__name__)

# A `grpc.RpcMethodHandler`; its attributes are missing in the published types.
Handler = Any
# Returns the handler of a call through the interceptors, or None.
Find = Callable[[Any], Awaitable[Handler | None]]

# Cached: reading it from the enum takes as long as a call.
_OK = grpc.StatusCode.OK
# A servicer yields this to the task that serves it, so that the caller reads what was sent.
PAUSE: Final = object()
# The deadline of the call that the current task serves: no call that it makes ends later.
_outer_deadline: ContextVar[float | None] = ContextVar("outer_deadline", default=None)


class InProcessServer:
    """Serves the calls of `InProcessChannel`s.

    Handlers are coroutines and asynchronous generators; others are not supported.

    Attributes:
        max_message_bytes: maximum size of a message in bytes, in both directions.
        is_serving: whether it accepts calls.
        find: returns the handler of a call through the interceptors, or None.
        calls: the running calls.
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
        self.is_serving = False
        self.calls: set[InProcessCall] = set()
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

    async def stop(self, grace_s: float | None) -> None:
        """Reject new calls, and cancel those still running after `grace_s` seconds."""
        self.is_serving = False
        running = list(self.calls)
        if not running:
            return
        ends = [call.ended() for call in running]
        if grace_s:
            await asyncio.wait(ends, timeout=grace_s)
        for call in running:
            call.interrupt(not_serving)
        await asyncio.wait(ends)

    async def _find(self, details: Any) -> Handler | None:
        return self._methods.get(details.method) or self._find_generic(details)

    def _find_generic(self, details: Any) -> Handler | None:
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None


class InProcessCall(CallContext):
    """A call of a method, as its servicer's context and as what serves it.

    Args:
        server: the server.
        method: `/package.Service/Method`.
        metadata: the metadata that the caller sent.

    Attributes:
        response: the response, if the call has one and has succeeded.
        is_running: whether the call has begun, and its servicer has not finished.
    """

    response: Any = None
    is_running = False
    # The task that serves the call; None while it pauses.
    _task: Any = None
    # The cancellations of that task before, and whether the call has added one.
    _cancelling = 0
    _has_cancelled = False
    # The coroutine of `_serve`, until it has ended.
    _serving: Any = None
    _unwinding: asyncio.Task[None] | None = None

    def __init__(self, server: InProcessServer, method: str, metadata: Metadata) -> None:
        self._server = server
        self._method = method
        self._metadata = metadata

    def begin(self, request: Any, timeout_s: float | None) -> None:
        """Admit the call; then `advance` serves it.

        Args:
            request: the request; None for a request stream.
            timeout_s: seconds until the deadline, or None.

        Raises:
            grpc.aio.AioRpcError: the server is not running, the request is too large, or the
                deadline has passed.
        """
        server = self._server
        if not server.is_serving:
            raise not_serving()
        if request is not None and request.ByteSize() > server.max_message_bytes:
            raise size_error(request, server.max_message_bytes)
        # Empty but for the charges of the caller's request and response, and a deferred call.
        context = self._context = Context()
        if (charge := request_charge.get()) is not None:
            context.run(request_charge.set, charge)
        if (charge := response_charge.get()) is not None:
            context.run(response_charge.set, charge)
        if (deferred := deferred_call.get()) is not None:
            context.run(deferred_call.set, deferred)
        if timeout_s is not None or _outer_deadline.get() is not None:
            self._limit(timeout_s)
        self._serving = self._serve(request)
        self.is_running = True
        server.calls.add(self)

    async def advance(self) -> None:
        """Serve the call in the current task, until it ends or its servicer pauses.

        Raises:
            grpc.aio.AioRpcError: the status is not OK.
            asyncio.CancelledError: the task was cancelled, or the call by its caller.
            Exception: raised by the receiver of the responses.
        """
        # No local name: exceptions refer to this frame, and the task to its exception.
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling()
        try:
            await _run(self._context.run, self._serving)
        except asyncio.CancelledError:
            self.failure = self.failure or asyncio.CancelledError
            self.end()
            raise
        # A task group of Python 3.11 that waits when one of its tasks fails leaves a cancellation.
        while self._task.cancelling() > self._cancelling:
            self._task.uncancel()
        if self._serving.cr_frame is not None:  # it pauses
            self._task = None
            return
        self.end()
        if self.failure is not None:
            raise self.failure()

    async def finish(self) -> None:
        """Serve the call to its end in the current task, if its servicer does not pause.

        Raises:
            Exception: as `advance`.
        """
        try:
            await self.advance()
        finally:
            self.failure = None  # it may hold an exception of the receiver, and that this frame

    def spawn(self) -> asyncio.Task[Any]:
        """Serve the call in a task of its own; return the task."""
        loop = asyncio.get_running_loop()
        task = self._task = loop.create_task(self._serving, context=self._context)
        return task

    def interrupt(self, make_failure: Callable[[], BaseException]) -> None:
        """End the call unless it has ended; its caller gets the exception that is made."""
        if self.failure is not None:
            return
        self.failure = make_failure
        if self._task is not None:
            self._has_cancelled = True
            self._task.cancel()
        elif self._serving is not None:  # it pauses
            self._unwinding = asyncio.get_running_loop().create_task(self._unwind())

    def end(self) -> None:
        """Note that the servicer has finished."""
        self._task = self._serving = None
        self.is_running = False
        self._server.calls.discard(self)
        if self._callbacks:
            self._call_back()

    def ended(self) -> asyncio.Future[None]:
        """Return a future that completes when the servicer has finished."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.add_done_callback(lambda _: ended.set_result(None))
        return ended

    def time_remaining(self) -> Any:
        """Return the seconds until the deadline, or None."""
        if self.deadline is None:
            return None
        return max(self.deadline - asyncio.get_running_loop().time(), 0.0)

    def _limit(self, timeout_s: float | None) -> None:
        """Set the deadline: the end of the timeout, or the outer deadline if that is earlier.

        Only the timeout ends the call: the outer call cancels what it waits for, and tasks that it
        has started may go on.

        Raises:
            grpc.aio.AioRpcError: the timeout is over.
        """
        loop = asyncio.get_running_loop()
        self.deadline = _outer_deadline.get()
        if timeout_s is not None:
            if timeout_s <= 0:
                raise _late()
            ends_at = loop.time() + timeout_s
            timer = loop.call_at(ends_at, self.interrupt, _late)
            self.add_done_callback(lambda _: timer.cancel())
            self.deadline = ends_at if self.deadline is None else min(ends_at, self.deadline)
        self._context.run(_outer_deadline.set, self.deadline)

    async def _serve(self, request: Any) -> None:
        """Run the servicer, which happens in the call's context."""
        details = SimpleNamespace(method=self._method, invocation_metadata=self._metadata)
        try:
            handler: Any = await self._server.find(details)
            if handler is None:
                self.fail(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
            elif handler.unary_unary is not None:
                self.response = await handler.unary_unary(request, self)
            else:
                # Also one request: an interceptor refuses a call with a handler of a request
                # stream.
                sent = self if handler.request_streaming else request
                if handler.stream_unary is not None:
                    self.response = await handler.stream_unary(sent, self)
                else:
                    responses = (handler.unary_stream or handler.stream_stream)(sent, self)
                    if isinstance(responses, AsyncGenerator):
                        responses = self._write_all_of(responses)
                    await responses
            if self._code is not None and self._code is not _OK:
                if self.failure is None:
                    self.fail(self._code, self._text, self._trailing)
            elif self.response and self.response.ByteSize() > self._server.max_message_bytes:
                self.failure = partial(size_error, self.response, self._server.max_message_bytes)
        except asyncio.CancelledError:
            if self._was_cancelled_outside():
                raise
        except Exception as error:
            self._on_error(error)

    async def _write_all_of(self, responses: AsyncGenerator[Any, Any]) -> None:
        try:
            await self.write_all(responses)
        finally:
            await responses.aclose()

    def _was_cancelled_outside(self) -> bool:
        """Return whether the task of the cancelled servicer is cancelled, too."""
        if self._has_cancelled:
            self._has_cancelled = False
            self._task.uncancel()
        if self._task.cancelling() > self._cancelling:
            return True
        if self.failure is None:
            self.fail(grpc.StatusCode.CANCELLED, "the call was cancelled")
        return False

    def _on_error(self, error: Exception) -> None:
        """Set the status of a call whose servicer has failed, unless it has one."""
        if self._aborted is not None:
            # Keep a copy: the traceback of the raised error would keep a reference to this call.
            self._aborted = grpc.aio.AbortError(*self._aborted.args)
        elif not isinstance(error, OverError):
            kind = type(error)
            log.error(
                "unexpected %s raised by the servicer of %s",
                kind.__name__,
                self._method,
                exc_info=error,
            )
            if self.failure is None:
                code = self._code if self._code not in (None, _OK) else None
                text = f"Unexpected {kind}: {error}"
                self.fail(code or grpc.StatusCode.UNKNOWN, text, self._trailing)

    async def _unwind(self) -> None:
        """Finish a servicer that pauses, in which `drained` raises an error."""
        try:
            await self.advance()
        except (Exception, asyncio.CancelledError):
            pass  # the failure that it was interrupted with

    def _call_back(self) -> None:
        callbacks, self._callbacks = self._callbacks, ()
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                log.exception("a callback of a call failed")


async def run(
    server: InProcessServer,
    method: str,
    request: Any,
    *,
    metadata: Metadata = (),
    timeout: float | None = None,  # noqa: ASYNC109 (as stubs of gRPC call it)
) -> Any:
    """Call a method with one request and one response, in the current task; return the response.

    Raises:
        grpc.aio.AioRpcError: the status is not OK.
    """
    call = InProcessCall(server, method, metadata)
    call.begin(request, timeout)
    await call.advance()
    return call.response


@coroutine
def pause() -> Generator[Any, None, None]:
    """Return from the `advance` that serves the current call; its next one continues here."""
    yield PAUSE


@coroutine
def _run(run: Callable[..., Any], serving: Any) -> Generator[Any, None, None]:
    """Run a coroutine in a context, within the current task, until it ends or yields `PAUSE`.

    Args:
        run: `Context.run` of the context.
        serving: the coroutine.
    """
    try:
        # The iterator calls `send` until that raises StopIteration, or returns `PAUSE`.
        yield from iter(partial(run, serving.send, None), PAUSE)
        return
    except BaseException as error:
        if serving.cr_frame is None:
            raise  # by the coroutine
        thrown = error
    try:
        try:
            awaited = run(serving.throw, thrown)
        finally:
            del thrown  # its traceback refers to this frame
        while awaited is not PAUSE:
            try:
                yield awaited
            except BaseException as error:
                awaited = run(serving.throw, error)
            else:
                awaited = run(serving.send, None)
    except StopIteration:
        pass


not_serving = partial(status_error, grpc.StatusCode.UNAVAILABLE, "the server is not running")
_late = partial(status_error, grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
