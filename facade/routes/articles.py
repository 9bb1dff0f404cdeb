"""The document editing endpoints: all alike, each as its row of the table says."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import grpc
from aiohttp import web
from google.protobuf.message import Message
from pydantic import BaseModel

from facade.bodies import ReceivedBody
from facade.context import CONTEXT
from facade.dialects import articles
from facade.dialects.articles import Code, Endpoint
from facade.middlewares import EXCHANGE
from facade.parsing import check_values
from facade.routes.generation import metadata
from gateway.articles.v1.articles_pb2 import ReadArticleResponse, ReadBlockRequest
from services.common.errors import GatewayError, from_rpc_error
from services.common.texts import quoted

MAX_BODY = 2 << 20

# Bytes from which on a body is read in a thread: most of that is Python, which shares its time.
_LARGE = 128 << 10
# Blocks from which on a document is rendered in a thread: 10,000 take 20 ms.
_MANY_BLOCKS = 500

_NO_BLOCK = 40403

_T = TypeVar("_T")


def routes() -> list[web.RouteDef]:
    """Return the routes of all endpoints."""
    return [
        web.post(articles.PREFIX + endpoint.path, partial(_answer, endpoint))
        for endpoint in articles.ENDPOINTS
    ]


async def _answer(endpoint: Endpoint, request: web.Request) -> web.Response:
    """Read, translate, call, translate back."""
    _check_json(request)
    async with ReceivedBody(request[EXCHANGE], MAX_BODY, "") as held:
        content = held.pop()
        run = asyncio.to_thread if len(content) > _LARGE else _run_here
        limit = request.app[CONTEXT].settings.limits.max_body_values
        found = await run(_read_object, content, limit)
        del content
    try:
        body, wanted = await run(_translate, endpoint, found)
    except GatewayError:
        await _keep_session(request, found.get("sessionId"))
        raise
    call = getattr(request.app[CONTEXT].articles, endpoint.rpc)
    response: Any = await call(wanted, metadata=metadata(request))
    is_long = isinstance(response, ReadArticleResponse) and len(response.blocks) > _MANY_BLOCKS
    run = asyncio.to_thread if is_long else _run_here
    return web.Response(
        body=await run(_rendered, endpoint, body, response), content_type="application/json"
    )


async def _run_here(function: Callable[..., _T], *arguments: object) -> _T:
    return function(*arguments)


def _read_object(content: bytes, max_values: int) -> dict[str, Any]:
    check_values(content, max_values)
    return articles.read_object(content)


def _translate(endpoint: Endpoint, found: dict[str, Any]) -> tuple[BaseModel, Message]:
    body = articles.read(endpoint.body, found)
    return body, endpoint.request(body)


def _rendered(endpoint: Endpoint, body: BaseModel, response: Message) -> bytes:
    return articles.render(endpoint.data(body, response))


async def _keep_session(request: web.Request, session_id: object) -> None:
    """Keep the session alive that a refused request names, as the service does with its own.

    Raises:
        GatewayError: the session is over, or was never the caller's, which is told first.
    """
    if not isinstance(session_id, str):
        return
    # No block has an empty id; what counts is that the call names the session.
    nothing = ReadBlockRequest(session_id=session_id)
    try:
        await request.app[CONTEXT].articles.ReadBlock(nothing, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.article_code != _NO_BLOCK:
            raise failure from None


def _check_json(request: web.Request) -> None:
    """Check that a request says it is JSON.

    Raises:
        GatewayError: 40001 for another content type.
    """
    if request.content_type != "application/json":
        said = f"is {quoted(request.content_type)}, and takes application/json"
        raise articles.refused(Code.BODY, "Content-Type", said)
