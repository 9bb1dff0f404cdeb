"""The server interceptor: authentication, request ids, errors and logs of gRPC calls.

In order: the request id is taken over, the caller is identified by the call's metadata,
the message is read, the call runs, and a failure becomes a status. A call that is refused
by its metadata never has its message read. Health, reflection and the sign-in by a one-time code
need no key; background work comes with the gateway's own credential in place of a key, and
administrators with an admin key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import grpc

from gateway.accounts.v1 import admin_pb2
from services.common import errors, logs
from services.common.authentication import (
    Identify,
    IdentifyAdmin,
    ServiceAuthenticator,
    bearer_key,
    caller,
    caller_key,
)
from services.common.channels import REQUEST_ID_KEY, USER_ID_KEY
from services.common.hops import HOPS_KEY, hops, parse_hops
from services.common.ids import MAX_REQUEST_ID
from services.common.inprocess.context import CallContext, OverError
from services.common.telemetry.trace_context import (
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
    current_trace,
    parse_trace_context,
)

# Services of gRPC's own, which need no key.
_GRPC_SERVICES = ("/grpc.health.v1.Health/", "/grpc.reflection.")
# Its one-time code is in its message.
REDEEM_SIGN_IN_CODE = "/gateway.accounts.v1.AccountsService/RedeemSignInCode"
# Methods that need no key.
OPEN_METHODS = (*_GRPC_SERVICES, REDEEM_SIGN_IN_CODE)


class _Credential(Enum):
    """What opens a method that takes no user's key."""

    GATEWAY = "the gateway's own, for a user"
    GATEWAY_ALONE = "the gateway's own, for nobody"
    ADMIN = "an admin key"
    NONE = "none"


# A credential opens the methods that are here under it, and no others.
_CREDENTIALS = {
    "/gateway.inference.v1.InferenceService/RunTask": _Credential.GATEWAY,
    "/gateway.accounts.v1.LimitService/Lease": _Credential.GATEWAY,
    "/gateway.accounts.v1.UsageService/RecordUsage": _Credential.GATEWAY_ALONE,
    "/gateway.accounts.v1.UsageService/ReportUsage": _Credential.ADMIN,
    "/gateway.accounts.v1.UsageService/ReportActivity": _Credential.ADMIN,
    "/gateway.inference.v1.ProviderAdminService/ListProviders": _Credential.ADMIN,
    REDEEM_SIGN_IN_CODE: _Credential.NONE,
    **{
        f"/{method.containing_service.full_name}/{method.name}": _Credential.ADMIN
        for method in admin_pb2.DESCRIPTOR.services_by_name["AdminService"].methods
    },
}

# Serializes a response that is a message, or that makes one of itself.
_SERIALIZE = methodcaller("SerializeToString")

# Errors of which one led to the other.
_MAX_CHAIN = 20

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]
    Context = grpc.aio.ServicerContext[Any, Any]
    Metadata = Iterable[tuple[str, str | bytes]]


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Identifies the caller and translates failures, for every kind of call."""

    def __init__(
        self,
        identify: Identify,
        door: ServiceAuthenticator,
        count_limit: Callable[[str], None],
        identify_admin: IdentifyAdmin,
    ) -> None:
        """Return an interceptor; `count_limit` takes the name of each limit that was reached."""
        self._identify = identify
        self._identify_admin = identify_admin
        self._door = door
        self._count_limit = count_limit
        # A method has one handler, which is wrapped once.
        self._wrapped: dict[str, tuple[Handler, Handler]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Identify the caller of a call, and return its handler with failures translated.

        It runs in the task that runs the handler, before the request message is received:
        what it sets in context variables is set for the handler too.
        """
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(_GRPC_SERVICES):
            return handler
        try:
            authorization, user_id = _take_over(handler_call_details.invocation_metadata)
            credential = _CREDENTIALS.get(method)
            if credential is None:
                key = bearer_key(authorization)
                caller.set(await self._identify(key))
                caller_key.set(key)
            elif credential is _Credential.GATEWAY:
                caller.set(self._door.admit(authorization, user_id))
            elif credential is _Credential.GATEWAY_ALONE:
                caller.set(self._door.admit(authorization, "", is_for_user=False))
            elif credential is _Credential.ADMIN:
                caller.set(await self._identify_admin(authorization))
        except Exception as error:
            return self._refusal(handler, error)
        known = self._wrapped.get(method)
        if known is None or known[0] is not handler:
            known = self._wrapped[method] = handler, self._wrap(handler)
        return known[1]

    def _refusal(self, handler: Handler, error: Exception) -> Handler:
        """Return a handler that ends a call of the same kind without reading its message."""

        async def refuse(_: Any, context: Context) -> None:
            await self._abort(context, error)

        # Only a handler of a stream of requests is called before a message was received.
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(refuse)
        return grpc.stream_unary_rpc_method_handler(refuse)

    def _wrap(self, handler: Handler) -> Handler:
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
        serialize = None if handler.response_serializer is None else _SERIALIZE
        return make(wrapped, handler.request_deserializer, serialize)

    def _single(self, behavior: Any) -> Any:
        async def call(request: Any, context: Context) -> Any:
            try:
                return await behavior(request, context)
            except Exception as error:
                await self._abort(context, error)

        return call

    def _streaming(self, behavior: Any) -> Any:
        # A coroutine: each further generator that responses pass takes time for each of them.
        async def call(request: Any, context: Context) -> None:
            try:
                responses = behavior(request, context)
                try:
                    if isinstance(context, CallContext):
                        await context.write_all(responses)
                    else:
                        async for response in responses:
                            await context.write(response)
                finally:
                    # What a servicer holds while it answers is free as soon as nobody listens.
                    await responses.aclose()
            except Exception as error:
                await self._abort(context, error)

        return call

    async def _abort(self, context: Context, error: Exception) -> None:
        """End the call with the status of `error`; never returns."""
        if isinstance(error, grpc.aio.AbortError | OverError):
            raise error
        if isinstance(error, grpc.aio.AioRpcError):
            error = errors.from_rpc_error(error)
        elif not isinstance(error, errors.GatewayError):
            log.error("unforeseen failure", exc_info=error)
            error = errors.internal()
        if error.limit:
            self._count_limit(error.limit)
        _release_frames(error)
        code, message, details = errors.to_status(error)
        await context.abort(code, message, ((errors.STATUS_METADATA_KEY, details),))
        raise asyncio.CancelledError


def _release_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error that has been handled, and of those that led to it.

    Their frames hold the request, and often the error itself: without them all is freed at once.
    """
    seen: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if seen is None:
            return
        seen.__traceback__ = None
        seen = seen.__cause__ or seen.__context__


def _take_over(entries: Metadata | None) -> tuple[str, str]:
    """Set for the current task what the metadata of its call says.

    Return the values of `authorization` and `x-user-id`, "" where there is none.

    Raises:
        GatewayError: the call has two credentials.
    """
    authorization = user_id = request_id = passed = None
    parent = state = ""
    for name, value in entries or ():
        if name == "authorization":
            text = str(value)
            # A proxy may have made two values one.
            if authorization is not None or "," in text:
                raise errors.invalid("authorization", "authorization: takes one value")
            authorization = text
        elif name == REQUEST_ID_KEY:
            request_id = str(value)
        elif name == HOPS_KEY:
            passed = str(value)
        elif name == USER_ID_KEY:
            user_id = str(value)
        elif name == TRACEPARENT_KEY:
            parent = str(value)
        elif name == TRACESTATE_KEY:
            state = str(value)
    logs.request_id.set(request_id if request_id and len(request_id) <= MAX_REQUEST_ID else "")
    hops.set(parse_hops(passed) if passed else 0)
    if parent:
        current_trace.set(parse_trace_context(parent, state))
    return authorization or "", user_id or ""
