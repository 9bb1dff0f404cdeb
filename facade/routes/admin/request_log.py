"""The endpoints of the request log."""

from facade.dialects.admin import answers, request_log
from facade.routes.admin.call import rpc_endpoint

ENDPOINTS = (
    rpc_endpoint(
        "GET",
        "/requests",
        "listRequests",
        "List the logged requests, newest first",
        stub="request_log",
        rpc="ListRequests",
        request=request_log.list_request,
        render=lambda found: answers.render_list(
            found.requests, found.next_page_token, request_log.render_request
        ),
        answer=answers.list_schema(request_log.REQUEST),
        query=request_log.RequestsQuery,
    ),
    rpc_endpoint(
        "GET",
        "/requests/{entry_id}",
        "getRequest",
        "Get a logged request, with its bodies if they are logged",
        stub="request_log",
        rpc="GetRequest",
        request=request_log.get_request,
        render=request_log.render_with_bodies,
        answer=request_log.REQUEST_WITH_BODIES,
    ),
)
