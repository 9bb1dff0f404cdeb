"""The endpoints of memories and the profile, in the format of the credential."""

import grpc
from aiohttp import web

from facade import credentials
from facade.bodies import ReceivedBody
from facade.context import CONTEXT
from facade.credentials import Format
from facade.dialects import memory
from facade.middlewares import EXCHANGE
from facade.routes.generation import check_json, metadata
from gateway.memory.v1.memory_pb2 import (
    DeleteMemoryRequest,
    DeleteProfileRequest,
    GetMemoryRequest,
    GetProfileRequest,
    ListMemoriesRequest,
    ListTurnsRequest,
)
from services.common.errors import from_rpc_error, invalid

# Maximum size of a search body: 10,000 characters, each escaped in 12 bytes.
_MAX_SEARCH = 128 << 10


def routes() -> list[web.RouteDef]:
    """Return the routes of all endpoints."""
    one = "/beta/v1/memories/{memory_id}"
    return [
        web.get("/beta/v1/memories", list_memories),
        web.get(one, get_memory),
        web.delete(one, delete_memory),
        web.get(f"{one}/turns", list_turns),
        web.post(f"{one}/search", search),
        web.get("/beta/v1/memory/profile", get_profile),
        web.delete("/beta/v1/memory/profile", delete_profile),
    ]


async def list_memories(request: web.Request) -> web.Response:
    """List the caller's memories, the most recently used first."""
    page = memory.parse_page(request.query)
    wanted = ListMemoriesRequest(page_size=page.limit, page_token=page.token)
    try:
        listed = await request.app[CONTEXT].memory.ListMemories(wanted, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise _to_caller_error(error) from None
    return _json(
        memory.render_memory_list(listed.memories, listed.next_page_token, _api_format(request))
    )


async def get_memory(request: web.Request) -> web.Response:
    """Return a memory with its summary."""
    wanted = GetMemoryRequest(memory_id=_memory_id(request))
    response = await request.app[CONTEXT].memory.GetMemory(wanted, metadata=metadata(request))
    return _json(memory.render_memory(response.memory, _api_format(request)))


async def delete_memory(request: web.Request) -> web.Response:
    """Delete a memory."""
    memory_id = _memory_id(request)
    wanted = DeleteMemoryRequest(memory_id=memory_id)
    await request.app[CONTEXT].memory.DeleteMemory(wanted, metadata=metadata(request))
    return _json(memory.render_deleted_memory(memory_id, _api_format(request)))


async def list_turns(request: web.Request) -> web.Response:
    """List the turns of a memory, the newest first."""
    page = memory.parse_page(request.query)
    wanted = ListTurnsRequest(
        memory_id=_memory_id(request), page_size=page.limit, page_token=page.token
    )
    try:
        listed = await request.app[CONTEXT].memory.ListTurns(wanted, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise _to_caller_error(error) from None
    return _json(
        memory.render_turn_list(listed.turns, listed.next_page_token, _api_format(request))
    )


async def search(request: web.Request) -> web.Response:
    """Search the archived turns of a memory."""
    memory_id = _memory_id(request)
    check_json(request[EXCHANGE])
    async with ReceivedBody(request[EXCHANGE], _MAX_SEARCH, "") as held:
        wanted = memory.parse_search(held.pop(), memory_id)
    response = await request.app[CONTEXT].memory.SearchMemory(wanted, metadata=metadata(request))
    return _json(memory.render_snippets(response.snippets, _api_format(request)))


async def get_profile(request: web.Request) -> web.Response:
    """Return the facts about the caller."""
    service = request.app[CONTEXT].memory
    known = await service.GetProfile(GetProfileRequest(), metadata=metadata(request))
    return _json(memory.render_profile(known.facts, _api_format(request)))


async def delete_profile(request: web.Request) -> web.Response:
    """Delete the facts about the caller."""
    service = request.app[CONTEXT].memory
    await service.DeleteProfile(DeleteProfileRequest(), metadata=metadata(request))
    return _json(memory.render_deleted_profile(_api_format(request)))


def _to_caller_error(error: grpc.aio.AioRpcError) -> Exception:
    """Return the error of a call, with the query parameter `page` in place of `page_token`."""
    failure = from_rpc_error(error)
    if failure.param == "page_token":
        return invalid("page", "page: must be the next_page of a previous page")
    return failure


def _memory_id(request: web.Request) -> str:
    return memory.parse_memory_id(request.match_info["memory_id"])


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def _api_format(request: web.Request) -> Format:
    return credentials.credential_format(request.headers)
