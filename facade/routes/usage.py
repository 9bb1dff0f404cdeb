"""What a caller has used, what is left of the caller's limits, and the caller's own requests."""

from functools import partial

from facade import credentials
from facade.dialects import caller_usage
from facade.dialects.admin import answers, request_log, usage
from facade.endpoint import Answer, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.admin.call import rpc_endpoint
from facade.routes.generation import rpc_metadata
from gateway.accounts.v1.accounts_pb2 import GetUsageRequest

_own_endpoint = partial(rpc_endpoint, prefix="/beta/v1/usage", schemas="Own.")


async def my_usage(exchange: Exchange) -> Response:
    """Return the caller's limits, what is left of them, and the usage."""
    accounts = exchange.context.accounts
    used = await accounts.GetUsage(GetUsageRequest(), metadata=rpc_metadata(exchange))
    api_format = credentials.credential_format(
        exchange.headers, credentials.rules_for(exchange.path)
    )
    return JsonResponse(caller_usage.render(used, api_format))


ENDPOINTS = (
    EndpointSpec(
        method="GET",
        path="/beta/v1/usage/me",
        handler=my_usage,
        operation_id="getMyUsage",
        summary="Get the caller's limits, what is left of them, and the usage",
        answer=Answer("The limits and the usage", [caller_usage.USAGE]),
    ),
    _own_endpoint(
        "GET",
        "/activity",
        "reportOwnActivity",
        "Get the caller's usage and latencies of the last 31 days, by hour, day, key, model or "
        "provider",
        stub="usage",
        rpc="ReportOwnActivity",
        request=usage.activity_request,
        render=lambda page: answers.render_list(
            page.sums, page.next_page_token, usage.render_activity
        ),
        answer=answers.list_schema(usage.ACTIVITY),
        query=usage.OwnActivityQuery,
    ),
    _own_endpoint(
        "GET",
        "/requests",
        "listOwnRequests",
        "List the caller's logged requests, newest first",
        stub="request_log",
        rpc="ListOwnRequests",
        request=request_log.list_request,
        render=lambda page: answers.render_list(
            page.requests, page.next_page_token, request_log.render_request
        ),
        answer=answers.list_schema(request_log.REQUEST),
        query=request_log.OwnRequestsQuery,
    ),
    _own_endpoint(
        "GET",
        "/requests/{entry_id}",
        "getOwnRequest",
        "Get a logged request of the caller, with its bodies if they are logged",
        stub="request_log",
        rpc="GetOwnRequest",
        request=request_log.get_request,
        render=request_log.render_with_bodies,
        answer=request_log.REQUEST_WITH_BODIES,
    ),
)
