"""The endpoints of memories and the profile, in the format of the credential."""

from typing import Any

import grpc

from facade import credentials
from facade.bodies import ReceivedBody
from facade.credentials import Format
from facade.dialects import memory
from facade.dialects.json_schemas import NAME
from facade.dialects.memory import examples, schemas
from facade.endpoint import Answer, Body, EndpointSpec, Handler, path_parameter, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.generation import check_json, rpc_metadata
from gateway.memory.v1.memory_pb2 import (
    DeleteFactRequest,
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
# Maximum size of a corrected fact: 200 characters, each escaped in 12 bytes.
_MAX_FACT = 4 << 10


async def list_memories(exchange: Exchange) -> Response:
    """List the caller's memories, the most recently used first."""
    page = memory.parse_page(exchange.query)
    list_request = ListMemoriesRequest(page_size=page.limit, page_token=page.token)
    try:
        listed = await exchange.context.memory.ListMemories(
            list_request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise _to_caller_error(error) from None
    return JsonResponse(
        memory.render_memory_list(listed.memories, listed.next_page_token, _api_format(exchange))
    )


async def get_memory(exchange: Exchange) -> Response:
    """Return a memory with its summary."""
    get_request = GetMemoryRequest(memory_id=_memory_id(exchange))
    response = await exchange.context.memory.GetMemory(get_request, metadata=rpc_metadata(exchange))
    return JsonResponse(memory.render_memory(response.memory, _api_format(exchange)))


async def delete_memory(exchange: Exchange) -> Response:
    """Delete a memory."""
    memory_id = _memory_id(exchange)
    delete_request = DeleteMemoryRequest(memory_id=memory_id)
    await exchange.context.memory.DeleteMemory(delete_request, metadata=rpc_metadata(exchange))
    return JsonResponse(memory.render_deleted_memory(memory_id, _api_format(exchange)))


async def list_turns(exchange: Exchange) -> Response:
    """List the turns of a memory, the newest first."""
    page = memory.parse_page(exchange.query)
    list_request = ListTurnsRequest(
        memory_id=_memory_id(exchange), page_size=page.limit, page_token=page.token
    )
    try:
        listed = await exchange.context.memory.ListTurns(
            list_request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise _to_caller_error(error) from None
    return JsonResponse(
        memory.render_turn_list(listed.turns, listed.next_page_token, _api_format(exchange))
    )


async def search(exchange: Exchange) -> Response:
    """Search the archived turns of a memory."""
    memory_id = _memory_id(exchange)
    check_json(exchange)
    async with ReceivedBody(exchange, _MAX_SEARCH, "") as held:
        search_request = memory.parse_search(held.pop(), memory_id)
    response = await exchange.context.memory.SearchMemory(
        search_request, metadata=rpc_metadata(exchange)
    )
    return JsonResponse(memory.render_snippets(response.snippets, _api_format(exchange)))


async def get_profile(exchange: Exchange) -> Response:
    """Return the facts about the caller."""
    service = exchange.context.memory
    profile = await service.GetProfile(GetProfileRequest(), metadata=rpc_metadata(exchange))
    return JsonResponse(memory.render_profile(profile.facts, _api_format(exchange)))


async def update_fact(exchange: Exchange) -> Response:
    """Correct a fact about the caller."""
    check_json(exchange)
    async with ReceivedBody(exchange, _MAX_FACT, "") as held:
        update_request = memory.parse_correction(held.pop(), exchange.path_values["fact_id"])
    service = exchange.context.memory
    updated = await service.UpdateFact(update_request, metadata=rpc_metadata(exchange))
    return JsonResponse(memory.render_fact(updated.fact, _api_format(exchange)))


async def delete_fact(exchange: Exchange) -> Response:
    """Delete a fact about the caller."""
    fact_id = exchange.path_values["fact_id"]
    service = exchange.context.memory
    await service.DeleteFact(DeleteFactRequest(id=fact_id), metadata=rpc_metadata(exchange))
    return JsonResponse(memory.render_deleted_fact(fact_id, _api_format(exchange)))


async def delete_profile(exchange: Exchange) -> Response:
    """Delete the facts about the caller."""
    service = exchange.context.memory
    await service.DeleteProfile(DeleteProfileRequest(), metadata=rpc_metadata(exchange))
    return JsonResponse(memory.render_deleted_profile(_api_format(exchange)))


def _to_caller_error(error: grpc.aio.AioRpcError) -> Exception:
    """Return the error of a call, with the query parameter `page` in place of `page_token`."""
    failure = from_rpc_error(error)
    if failure.param == "page_token":
        return invalid("page", "page: must be the next_page of a previous page")
    return failure


def _memory_id(exchange: Exchange) -> str:
    return memory.parse_memory_id(exchange.path_values["memory_id"])


def _api_format(exchange: Exchange) -> Format:
    return credentials.credential_format(exchange.headers)


_ID = path_parameter(
    "memory_id",
    schemas.MEMORY_ID,
    "Name of the memory, percent-encoded; may contain slashes.",
)
_FACT_ID = path_parameter(
    "fact_id", {"type": "string", "minLength": 1, "maxLength": 64}, "The `id` in the profile."
)
_PAGE = (
    query_parameter("limit", schemas.LIMIT),
    query_parameter("page", NAME, "Page token: the `next_page` of the previous page."),
)


def _endpoint(
    method: str, path: str, handler: Handler, operation_id: str, summary: str, **others: Any
) -> EndpointSpec:
    """Return a spec whose response has the schemas and examples of its operation."""
    openai, anthropic = examples.ANSWERS[operation_id]
    return EndpointSpec(
        method=method,
        path=path,
        handler=handler,
        operation_id=operation_id,
        summary=summary,
        answer=Answer(
            "Success",
            schemas.answer_schemas(operation_id),
            examples={"Authorization": openai, "x-api-key": anthropic},
        ),
        **others,
    )


ENDPOINTS = (
    _endpoint(
        "GET",
        "/beta/v1/memories",
        list_memories,
        "listMemories",
        "List the caller's memories, latest first",
        parameters=_PAGE,
    ),
    _endpoint(
        "GET",
        "/beta/v1/memories/{memory_id}",
        get_memory,
        "getMemory",
        "Get a memory, with its summary",
        parameters=[_ID],
    ),
    _endpoint(
        "DELETE",
        "/beta/v1/memories/{memory_id}",
        delete_memory,
        "deleteMemory",
        "Delete a memory",
        parameters=[_ID],
    ),
    _endpoint(
        "GET",
        "/beta/v1/memories/{memory_id}/turns",
        list_turns,
        "listMemoryTurns",
        "List the turns of a memory, newest first",
        parameters=[_ID, *_PAGE],
    ),
    _endpoint(
        "POST",
        "/beta/v1/memories/{memory_id}/search",
        search,
        "searchMemory",
        "Search the archived turns of a memory",
        parameters=[_ID],
        body=Body(schemas.SEARCH, example=examples.SEARCH),
    ),
    _endpoint(
        "GET",
        "/beta/v1/memory/profile",
        get_profile,
        "getProfile",
        "Get the caller's profile: the facts known about the user",
    ),
    _endpoint(
        "PATCH",
        "/beta/v1/memory/profile/facts/{fact_id}",
        update_fact,
        "updateFact",
        "Correct a fact about the caller",
        parameters=[_FACT_ID],
        body=Body(schemas.CORRECTION, example=examples.CORRECTION),
    ),
    _endpoint(
        "DELETE",
        "/beta/v1/memory/profile/facts/{fact_id}",
        delete_fact,
        "deleteFact",
        "Delete a fact about the caller",
        parameters=[_FACT_ID],
    ),
    _endpoint(
        "DELETE",
        "/beta/v1/memory/profile",
        delete_profile,
        "deleteProfile",
        "Delete the caller's profile",
    ),
)
