"""What a caller has used, and what is left of the caller's limits."""

from aiohttp import web

from facade import credentials
from facade.context import CONTEXT
from facade.dialects import caller_usage
from facade.routes.generation import metadata
from gateway.accounts.v1.accounts_pb2 import GetUsageRequest


async def my_usage(request: web.Request) -> web.Response:
    """Return the caller's limits, what is left of them, and the usage."""
    accounts = request.app[CONTEXT].accounts
    usage = await accounts.GetUsage(GetUsageRequest(), metadata=metadata(request))
    api_format = credentials.credential_format(request.headers, credentials.rules_for(request.path))
    return web.Response(
        body=caller_usage.render(usage, api_format), content_type="application/json"
    )
