"""What happens around every gRPC call of a service.

In order: the request id is taken over, the key is looked up, the call runs, and a
failure becomes a status. Health and reflection need no key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc

from services.common import errors, logs
from services.common.authentication import Identify, bearer_key, caller, caller_key
from services.common.channels import REQUEST_ID_KEY

_OPEN = ("/grpc.health.v1.Health/", "/grpc.reflection.")

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]
    Context = grpc.aio.ServicerContext[Any, Any]


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Identifies the caller and translates failures, for every kind of call."""

    def __init__(self, identify: Identify) -> None:
        self._identify = identify

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap the handler of one call."""
        handler = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_OPEN):
            return handler
        if handler.response_streaming:
            wrapped = self._streaming(handler.unary_stream or handler.stream_stream)
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
        else:
            wrapped = self._single(handler.unary_unary or handler.stream_unary)
            make = (
                grpc.stream_unary_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
        return make(wrapped, handler.request_deserializer, handler.response_serializer)

    def _single(self, behavior: Any) -> Any:
        async def call(request: Any, context: Context) -> Any:
            try:
                await self._enter(context)
                return await behavior(request, context)
            except Exception as error:
                await _abort(context, error)

        return call

    def _streaming(self, behavior: Any) -> Any:
        async def call(request: Any, context: Context) -> AsyncIterator[Any]:
            try:
                await self._enter(context)
                async for response in behavior(request, context):
                    yield response
            except Exception as error:
                await _abort(context, error)

        return call

    async def _enter(self, context: Context) -> None:
        authorization = request_id = ""
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                authorization = str(value)
            elif key == REQUEST_ID_KEY:
                request_id = str(value)
        logs.request_id.set(request_id)
        key = bearer_key(authorization)
        caller.set(await self._identify(key))
        caller_key.set(key)


async def _abort(context: Context, error: Exception) -> None:
    """End the call with the status of `error`; never returns."""
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if isinstance(error, grpc.aio.AioRpcError):
        error = errors.from_rpc_error(error)
    elif not isinstance(error, errors.GatewayError):
        log.error("unforeseen failure", exc_info=error)
        error = errors.internal()
    code, message, details = errors.to_status(error)
    await context.abort(code, message, ((errors.STATUS_METADATA_KEY, details),))
    raise asyncio.CancelledError
