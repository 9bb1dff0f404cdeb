"""The server interceptor: authentication, request ids, errors and logs of gRPC calls.

For each call, the interceptor reads the request id from the metadata and authenticates the caller.
Only then is the request message read and the servicer called; errors are converted to a status. The
message of a call that fails authentication is never read. Health checks, reflection and sign-in
need no key. Background work of the gateway uses its service credential in
place of a key, and administrators use an admin key, whose scopes must permit the method.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import grpc

from gateway.accounts.v1 import admin_pb2, invitations_pb2, stored_providers_pb2
from gateway.inference.v1 import providers_pb2
from services.common import errors
from services.common.grpc.admin_scopes import check_scope
from services.common.grpc.authentication import (
    Identify,
    IdentifyAdmin,
    ServiceAuthenticator,
    call_key,
    caller,
    caller_key,
)
from services.common.grpc.channels import REQUEST_ID_KEY, USER_ID_KEY
from services.common.grpc.hops import HOPS_KEY, hops, parse_hops
from services.common.grpc.inprocess.context import CallContext, OverError
from services.common.grpc.roles import check_role
from services.common.ids import MAX_REQUEST_ID
from services.common.process import logs
from services.common.process.loop_shares import user_of_task
from services.common.process.telemetry.trace_context import (
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
    current_trace,
    parse_trace_context,
)

# Standard gRPC services, which need no key.
_GRPC_SERVICES = ("/grpc.health.v1.Health/", "/grpc.reflection.")
# The credential of these methods is in their request messages.
SIGN_IN_METHODS = tuple(
    f"/gateway.accounts.v1.SessionService/{name}"
    for name in (
        *("CreateSession", "BeginOidcSignIn", "FinishOidcSignIn"),
        *("ReadInvitation", "AcceptInvitation"),
    )
)
# Returns one of two shares of a key, which alone reveals nothing.
_GET_KEY_SHARE = "/gateway.files.v1.FileStoreService/GetUploadKeyShare"
# Methods that need no key.
UNAUTHENTICATED_METHODS = (*_GRPC_SERVICES, *SIGN_IN_METHODS, _GET_KEY_SHARE)


# All methods of these services need an admin key.
_ADMIN_SERVICES = (
    admin_pb2.DESCRIPTOR.services_by_name["AdminService"],
    invitations_pb2.DESCRIPTOR.services_by_name["InvitationService"],
    stored_providers_pb2.DESCRIPTOR.services_by_name["StoredProviderService"],
    providers_pb2.DESCRIPTOR.services_by_name["ProviderAdminService"],
)


class _Credential(Enum):
    """The credential of a method that does not accept a user's API key."""

    GATEWAY = "the gateway's own, for a user"
    GATEWAY_ALONE = "the gateway's own, for nobody"
    ADMIN = "an admin key"
    NONE = "none"


# The credential that each method requires; all other methods require an API key.
_CREDENTIALS = {
    "/gateway.inference.v1.InferenceService/RunTask": _Credential.GATEWAY,
    "/gateway.files.v1.FileStoreService/ReadSharedFile": _Credential.GATEWAY_ALONE,
    "/gateway.accounts.v1.LimitService/Lease": _Credential.GATEWAY,
    "/gateway.accounts.v1.LimitService/GetLabelLimits": _Credential.GATEWAY,
    "/gateway.accounts.v1.UsageService/RecordUsage": _Credential.GATEWAY_ALONE,
    "/gateway.accounts.v1.UsageService/ReportUsage": _Credential.ADMIN,
    "/gateway.accounts.v1.UsageService/ReportActivity": _Credential.ADMIN,
    "/gateway.requests.v1.RequestLogService/RecordRequests": _Credential.GATEWAY_ALONE,
    "/gateway.requests.v1.RequestLogService/ListRequests": _Credential.ADMIN,
    "/gateway.requests.v1.RequestLogService/GetRequest": _Credential.ADMIN,
    **dict.fromkeys(SIGN_IN_METHODS, _Credential.NONE),
    _GET_KEY_SHARE: _Credential.NONE,
    **{
        f"/{method.containing_service.full_name}/{method.name}": _Credential.ADMIN
        for service in _ADMIN_SERVICES
        for method in service.methods
    },
}

# Serializes a response: a message, or an object that serializes itself to one.
_SERIALIZE = methodcaller("SerializeToString")

# Maximum number of chained exceptions that are walked.
_MAX_CHAIN = 20

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]
    Context = grpc.aio.ServicerContext[Any, Any]
    Metadata = Sequence[tuple[str, str | bytes]]


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Authenticates the caller and converts errors to a status, for every kind of call."""

    def __init__(
        self,
        identify: Identify,
        service_authenticator: ServiceAuthenticator,
        count_limit: Callable[[str], None],
        identify_admin: IdentifyAdmin,
    ) -> None:
        """Create an interceptor; `count_limit` is called with the name of each limit reached."""
        self._identify = identify
        self._identify_admin = identify_admin
        self._service_authenticator = service_authenticator
        self._count_limit = count_limit
        # The wrapped handlers, by what they wrap.
        self._wrapped: dict[Handler, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Authenticate the caller, and return a handler that converts errors to a status.

        Runs in the task of the handler, before the request message is received: context variables
        that are set here are visible to the handler.
        """
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(_GRPC_SERVICES):
            return handler
        try:
            authorization, user_id = _take_over(handler_call_details.invocation_metadata or ())
            credential = _CREDENTIALS.get(method)
            if credential is None:
                key = call_key(authorization)
                identified = await self._identify(key)
                if identified.sign_in is not None:
                    check_role(identified.sign_in.role, method)
                elif identified.role:
                    check_role(identified.role, method)
                caller.set(identified)
                caller_key.set(key)
                user_of_task.set(identified.user_id)
            elif credential is _Credential.GATEWAY:
                caller.set(self._service_authenticator.authenticate(authorization, user_id))
            elif credential is _Credential.GATEWAY_ALONE:
                caller.set(
                    self._service_authenticator.authenticate(authorization, "", is_for_user=False)
                )
            elif credential is _Credential.ADMIN:
                administrator = await self._identify_admin(authorization)
                check_scope(administrator.scopes, method)
                caller.set(administrator)
        except Exception as error:
            return self._refusal(handler, error)
        return self._wrapped.get(handler) or self._wrap(handler)

    def _refusal(self, handler: Handler, error: Exception) -> Handler:
        """Return a handler that ends the call with an error without reading its message."""

        async def refuse(_: Any, context: Context) -> None:
            await self._abort(context, error)

        # gRPC calls a handler before it receives a message only for request streams.
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
        self._wrapped[handler] = make(wrapped, handler.request_deserializer, serialize)
        return self._wrapped[handler]

    def _single(self, behavior: Any) -> Any:
        async def call(request: Any, context: Context) -> Any:
            try:
                return await behavior(request, context)
            except Exception as error:
                await self._abort(context, error)

        return call

    def _streaming(self, behavior: Any) -> Any:
        # A coroutine: another generator around the responses would cost time for each response.
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
                    # Free the servicer's resources as soon as the caller has left.
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
    """Remove the tracebacks of a handled error and of its chained exceptions.

    Their frames refer to the request, and often to the error itself. Without these references all
    of it is freed at once.
    """
    exception: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if exception is None:
            return
        exception.__traceback__ = None
        exception = exception.__cause__ or exception.__context__


def _take_over(entries: Metadata) -> tuple[str, str]:
    """Set the request id, hops and trace of the current task from the metadata of its call.

    Return the values of `authorization` and `x-user-id`, "" for missing ones.

    Raises:
        GatewayError: the call has two credentials.
    """
    values: dict[str, Any] = dict(entries)
    authorization: str = values.get("authorization", "")
    # A proxy may have joined two values with a comma.
    if "," in authorization or (len(values) < len(entries) and _is_repeated(entries)):
        raise errors.invalid("authorization", "authorization: must have exactly one value")
    request_id = values.get(REQUEST_ID_KEY, "")
    logs.request_id.set(request_id if len(request_id) <= MAX_REQUEST_ID else "")
    if hop_count := values.get(HOPS_KEY):
        hops.set(parse_hops(hop_count))
    if parent := values.get(TRACEPARENT_KEY):
        current_trace.set(parse_trace_context(parent, values.get(TRACESTATE_KEY, "")))
    return authorization, values.get(USER_ID_KEY, "")


def _is_repeated(entries: Metadata) -> bool:
    """Return whether metadata has several credentials."""
    return [name for name, _ in entries].count("authorization") > 1
