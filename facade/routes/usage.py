"""What a caller has used, and what is left of the caller's limits."""

from facade import credentials
from facade.dialects import caller_usage
from facade.endpoint import Answer, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.generation import rpc_metadata
from gateway.accounts.v1.accounts_pb2 import GetUsageRequest


async def my_usage(exchange: Exchange) -> Response:
    """Return the caller's limits, what is left of them, and the usage."""
    accounts = exchange.context.accounts
    usage = await accounts.GetUsage(GetUsageRequest(), metadata=rpc_metadata(exchange))
    api_format = credentials.credential_format(
        exchange.headers, credentials.rules_for(exchange.path)
    )
    return JsonResponse(caller_usage.render(usage, api_format))


ENDPOINTS = (
    EndpointSpec(
        method="GET",
        path="/beta/v1/usage/me",
        handler=my_usage,
        operation_id="getMyUsage",
        summary="Get the caller's limits, what is left of them, and the usage",
        answer=Answer("The limits and the usage", [caller_usage.USAGE]),
    ),
)
