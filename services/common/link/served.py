"""One call being served: found, run, and ended with a status."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from services.common.link.context import CallContext, CallDetails, Handler, OverError

log = logging.getLogger(__name__)

_OK = grpc.StatusCode.OK

# Gives the handler of a call, or None; it asks the interceptors.
Find = Callable[[CallDetails], Awaitable[Handler | None]]


class ServedCall(CallContext):
    """A call, from its opening until nothing of it is left."""

    _task: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    def start(self, find: Find) -> None:
        """Serve the call, in a task of its own."""
        if self._deadline is not None:
            self._timer = asyncio.get_running_loop().call_at(self._deadline, self._expire)
        self._task = asyncio.create_task(self._run(find))
        # Not at the end of the task's own code, which never begins when it is cancelled at once.
        self._task.add_done_callback(self._stop)

    def leave(self) -> None:
        """Stop: the caller has cancelled, or is gone."""
        was_over, self.is_over, self.has_left = self.is_over, True, True
        self.outgoing.drop()
        self._discard(is_running=not was_over)

    def end(self, code: grpc.StatusCode, text: str) -> None:
        """End the call at once with a status that is not the servicer's."""
        was_over = self.is_over
        self.outgoing.drop()
        self.send_status(code, text, ())
        self._discard(is_running=not was_over)

    async def stopped(self) -> None:
        """Wait until nothing serves the call any more."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, find: Find) -> None:
        try:
            await self._serve(find)
        except (grpc.aio.AbortError, OverError):
            # The status is out already, or nobody waits for one.
            pass
        except asyncio.CancelledError:
            if not self.is_over:
                self.send_status(grpc.StatusCode.CANCELLED, "the call was cancelled", ())
        except Exception as error:
            if self.aborted is None:
                kind = type(error)
                name = self._details.method
                log.exception("unexpected %s raised by the servicer of %s", kind.__name__, name)
                if not self.is_over:
                    code = self._code if self._code not in (None, _OK) else None
                    text = f"Unexpected {kind}: {error}"
                    self.send_status(code or grpc.StatusCode.UNKNOWN, text, self._trailing)

    async def _serve(self, find: Find) -> None:
        handler = self.handler = await find(self._details)
        if handler is None:
            self.send_status(grpc.StatusCode.UNIMPLEMENTED, "Method not found!", ())
            return
        request: Any = self
        if not handler.request_streaming:
            request = await self.read()
            if request is grpc.aio.EOF:
                self.send_status(grpc.StatusCode.INTERNAL, "the caller sent no request", ())
                return
        if handler.response_streaming:
            await self._stream((handler.unary_stream or handler.stream_stream)(request, self))
            self.raise_if_over()
        else:
            response = await (handler.unary_unary or handler.stream_unary)(request, self)
            self.raise_if_over()
            if self._code is None or self._code is _OK:
                self.send_response(response)
                if self.is_over:
                    return
        self.send_status(self._code or _OK, self._text, self._trailing)

    async def _stream(self, responses: Any) -> None:
        """Send what a servicer yields; one that yields nothing writes by itself."""
        if not isinstance(responses, AsyncIterator):
            await responses
            return
        outgoing = self.outgoing
        try:
            async for response in responses:
                self.raise_if_over()
                self.send_response(response)
                if outgoing.is_full:
                    await outgoing.drained()
        finally:
            close = getattr(responses, "aclose", None)
            if close is not None:
                await close()

    def _expire(self) -> None:
        self._timer = None
        self._code = grpc.StatusCode.DEADLINE_EXCEEDED
        self.end(self._code, "Deadline Exceeded")

    def _discard(self, *, is_running: bool) -> None:
        """Let nothing wait for the caller any more; a servicer that has answered may go on."""
        self.inbox.drop()
        if self._task is None or self._task.done():
            self._forget()
        elif is_running:
            self._task.cancel()

    def _stop(self, task: asyncio.Task[None]) -> None:
        """Note that nothing serves the call any more; what it sent may still be waiting."""
        self.inbox.drop()
        if self.outgoing.is_empty:
            self._forget()
        else:
            self.outgoing.on_empty = self._forget
        for callback in self._callbacks:
            try:
                callback(self)
            except Exception:
                log.exception("a callback of a call failed")

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._session.forget(self._number)
