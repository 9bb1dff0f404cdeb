"""Logs calls of the inference service over gRPC, whose callers do not pass through the facade."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import grpc

from gateway.accounts.v1.usage_pb2 import UsageLabel
from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from gateway.requests.v1.requests_pb2 import LoggedRequest
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import caller
from services.common.grpc.inprocess.context import CallContext
from services.common.ids import new_request_id
from services.common.labels import labels_in
from services.common.process import logs
from services.common.process.telemetry.trace_context import current_trace
from services.common.settings import Usage
from services.request_log.recorder import RequestRecorder

_SERVICE = inference_pb2.DESCRIPTOR.services_by_name["InferenceService"].full_name
_OK, _CALLER_LEFT, _INTERNAL = 200, 499, 500

Context = grpc.aio.ServicerContext[Any, Any]


class LoggedInference(inference_pb2_grpc.InferenceServiceServicer):
    """The inference service, with entries for the calls of other processes.

    Calls of this process are those of the facade, which logs its requests itself, and those that
    other services make for a request.

    Args:
        inner: serves the calls.
        recorder: takes the entries.
        usage: which labels of requests are read.
        clock: the clock.
    """

    def __init__(
        self,
        inner: inference_pb2_grpc.InferenceServiceServicer,
        recorder: RequestRecorder,
        usage: Usage,
        clock: Clock,
    ) -> None:
        self._inner: Any = inner
        self._recorder = recorder
        self._usage = usage
        self._clock = clock

    async def Generate(self, request: Any, context: Context) -> Any:
        """Return a whole answer."""
        return await self._logged("Generate", request, context)

    def StreamGenerate(self, request: Any, context: Context) -> AsyncGenerator[Any, Any]:
        """Yield the events of an answer."""
        return self._stream("StreamGenerate", request, context)

    def Forward(self, request: Any, context: Context) -> AsyncGenerator[Any, Any]:
        """Yield the events of the answer to a request that is no conversation."""
        return self._stream("Forward", request, context)

    async def CountTokens(self, request: Any, context: Context) -> Any:
        """Count the input tokens of a request."""
        return await self._logged("CountTokens", request, context)

    async def Embed(self, request: Any, context: Context) -> Any:
        """Return the embeddings of texts."""
        return await self._logged("Embed", request, context)

    async def ListModels(self, request: Any, context: Context) -> Any:
        """Return the listed models."""
        return await self._logged("ListModels", request, context)

    async def GetModel(self, request: Any, context: Context) -> Any:
        """Return one model."""
        return await self._logged("GetModel", request, context)

    async def RunTask(self, request: Any, context: Context) -> Any:
        """Run a task of the gateway's own, which no caller can."""
        return await self._inner.RunTask(request, context)

    async def _logged(self, method: str, request: Any, context: Context) -> Any:
        serve = getattr(self._inner, method)
        if isinstance(context, CallContext):
            return await serve(request, context)
        with self._entry(method, request, context):
            return await serve(request, context)

    def _stream(self, method: str, request: Any, context: Context) -> AsyncGenerator[Any, Any]:
        answer: AsyncGenerator[Any, Any] = getattr(self._inner, method)(request, context)
        if isinstance(context, CallContext):
            return answer
        return self._logged_stream(method, request, context, answer)

    async def _logged_stream(
        self, method: str, request: Any, context: Context, answer: AsyncGenerator[Any, Any]
    ) -> AsyncGenerator[Any, Any]:
        with self._entry(method, request, context) as logged:
            began_s = self._clock.monotonic()
            async with aclosing(answer) as batches:
                async for batch in batches:
                    if not logged.HasField("first_content_ms"):
                        logged.first_content_ms = self._ms_since(began_s)
                    yield batch

    @contextmanager
    def _entry(self, method: str, request: Any, context: Context) -> Iterator[LoggedRequest]:
        """Log a call, with how it ends."""
        request_id = logs.request_id.get() or new_request_id()
        # Usage is recorded by this id.
        logs.request_id.set(request_id)
        owner = caller.get()
        logged = LoggedRequest(
            request_id=request_id,
            user_id=owner.user_id,
            team_id=owner.team_id,
            key_id=owner.key_id,
            endpoint=f"POST /{_SERVICE}/{method}",
            status=_OK,
            requested_model=getattr(request, "model", ""),
            labels=self._labels_of(context),
        )
        entry = self._recorder.begin(request_id, has_bodies=False)
        began_s = self._clock.monotonic()
        try:
            yield logged
        except GatewayError as error:
            logged.status, logged.error_code = error.http_status, error.code
            raise
        except (asyncio.CancelledError, GeneratorExit):
            logged.status = _CALLER_LEFT
            raise
        except Exception:
            logged.status, logged.error_code = _INTERNAL, "internal"
            raise
        finally:
            if entry is not None:
                logged.duration_ms = self._ms_since(began_s)
                entry.trace = current_trace.get()
                self._recorder.end(entry, logged)

    def _labels_of(self, context: Context) -> Sequence[UsageLabel]:
        """Return the labels of a call; none if the call is to be refused for them."""
        metadata, usage = context.invocation_metadata() or (), self._usage
        try:
            labels = labels_in(metadata, usage.tags, has_end_users=usage.end_users)
        except GatewayError:
            return ()
        return [UsageLabel(name=name, value=labels[name]) for name in sorted(labels)]

    def _ms_since(self, began_s: float) -> int:
        return round(1000 * (self._clock.monotonic() - began_s))
