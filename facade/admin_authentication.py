"""Authentication of administrators' requests, before their bodies are read."""

import grpc

from facade.http.exchange import Exchange
from facade.http_errors import unknown_path
from facade.sessions import session_token
from gateway.accounts.v1 import accounts_pb2
from gateway.accounts.v1.admin_pb2 import CheckAdminKeyRequest
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.authentication import (
    ADMINISTRATOR,
    Caller,
    bearer_admin_key,
    call_metadata,
    signed_in_token,
)


async def authenticate_administrator(exchange: Exchange) -> None:
    """Reject a request without a valid admin key, session or token of an administrator.

    Raises:
        GatewayError: 404, no admin key is configured, so the admin API does not exist;
            invalid_api_key; permission_denied, the person is no administrator; unavailable, the
            services do not respond.
    """
    headers = exchange.headers
    key = session_token(headers, exchange.context.settings.console.is_secure)
    if not key:
        authorization = headers.get("authorization", "")
        try:
            key = signed_in_token(authorization) or bearer_admin_key(authorization)
        except GatewayError:
            key = ""  # the service refuses it, if there are admin keys at all
    metadata = call_metadata(key, exchange.request_id)
    try:
        checked = await exchange.context.admin.CheckAdminKey(
            CheckAdminKeyRequest(), metadata=metadata
        )
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.reason == errors_pb2.REASON_NOT_IMPLEMENTED:
            raise unknown_path(exchange.method, exchange.path) from None
        raise failure from None
    exchange.connection.authenticated()
    exchange.api_key = key
    exchange.caller = Caller(ADMINISTRATOR, "", accounts_pb2.PLAN_UNSPECIFIED, checked.admin_key_id)
