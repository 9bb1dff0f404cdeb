"""What happens around every gRPC call of a service.

In order: the request id is taken over, the key is looked up, the call runs, and a
failure becomes a status. Health and reflection need no key, nor does a link, whose calls
come through here one by one; background work comes with the gateway's own credential in
place of one, and through a door of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import grpc

from services.common import errors, logs
from services.common.authentication import (
    Identify,
    ServiceDoor,
    bearer_key,
    caller,
    caller_key,
)
from services.common.channels import REQUEST_ID_KEY, USER_ID_KEY

_OPEN = ("/grpc.health.v1.Health/", "/grpc.reflection.", "/gateway.link.v1.Link/")
# What the gateway's own credential opens, and nothing else does.
_SERVICE_ONLY = frozenset({"/gateway.inference.v1.InferenceService/RunRole"})

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]
    Context = grpc.aio.ServicerContext[Any, Any]
    # Finds out for whom a call is; raises GatewayError when it is for nobody.
    Enter = Callable[[Context], Awaitable[None]]


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Identifies the caller and translates failures, for every kind of call."""

    def __init__(
        self, identify: Identify, door: ServiceDoor, count_limit: Callable[[str], None]
    ) -> None:
        """Return an interceptor; `count_limit` takes the name of each limit that was reached."""
        self._identify = identify
        self._door = door
        self._count_limit = count_limit
        # A method has one handler, which is wrapped once.
        self._wrapped: dict[str, tuple[Handler, Handler]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap the handler of one call."""
        handler = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_OPEN):
            return handler
        method = handler_call_details.method
        known = self._wrapped.get(method)
        if known is None or known[0] is not handler:
            known = self._wrapped[method] = handler, self._wrap(method, handler)
        return known[1]

    def _wrap(self, method: str, handler: Handler) -> Handler:
        enter = self._by_service if method in _SERVICE_ONLY else self._by_key
        if handler.response_streaming:
            wrapped = self._streaming(handler.unary_stream or handler.stream_stream, enter)
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
        else:
            wrapped = self._single(handler.unary_unary or handler.stream_unary, enter)
            make = (
                grpc.stream_unary_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
        return make(wrapped, handler.request_deserializer, handler.response_serializer)

    def _single(self, behavior: Any, enter: Enter) -> Any:
        async def call(request: Any, context: Context) -> Any:
            try:
                await enter(context)
                return await behavior(request, context)
            except Exception as error:
                await self._abort(context, error)

        return call

    def _streaming(self, behavior: Any, enter: Enter) -> Any:
        async def call(request: Any, context: Context) -> AsyncIterator[Any]:
            try:
                await enter(context)
                # What a servicer holds while it answers is free as soon as nobody listens.
                async with aclosing(behavior(request, context)) as responses:
                    async for response in responses:
                        yield response
            except Exception as error:
                await self._abort(context, error)

        return call

    async def _by_key(self, context: Context) -> None:
        key = bearer_key(_metadata(context).get("authorization", ""))
        caller.set(await self._identify(key))
        caller_key.set(key)

    async def _by_service(self, context: Context) -> None:
        metadata = _metadata(context)
        authorization = metadata.get("authorization", "")
        caller.set(self._door.admit(authorization, metadata.get(USER_ID_KEY, "")))

    async def _abort(self, context: Context, error: Exception) -> None:
        """End the call with the status of `error`; never returns."""
        if isinstance(error, grpc.aio.AbortError):
            raise error
        if isinstance(error, grpc.aio.AioRpcError):
            error = errors.from_rpc_error(error)
        elif not isinstance(error, errors.GatewayError):
            log.error("unforeseen failure", exc_info=error)
            error = errors.internal()
        if error.limit:
            self._count_limit(error.limit)
        code, message, details = errors.to_status(error)
        await context.abort(code, message, ((errors.STATUS_METADATA_KEY, details),))
        raise asyncio.CancelledError


def _metadata(context: Context) -> dict[str, str]:
    """Return the call's metadata, after its request id was taken over for the log.

    Raises:
        GatewayError: invalid, the credential is there more than once.
    """
    entries = context.invocation_metadata() or ()
    metadata = {key: str(value) for key, value in entries}
    if len(metadata) < len(entries) and sum(key == "authorization" for key, _ in entries) > 1:
        raise errors.invalid("authorization", "authorization: is there twice; send it once")
    logs.request_id.set(metadata.get(REQUEST_ID_KEY, ""))
    return metadata
