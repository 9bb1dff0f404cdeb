"""Insertion of stored items into a request for a response.

A previous response or a stored conversation goes before the input. Referenced items replace their
references.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import grpc

from facade.dialects import conversations, responses, stored_responses
from facade.dialects.parsed_request import ParsedRequest
from facade.http.exchange import Exchange
from facade.socket_exchange import SocketExchange
from gateway.conversation.v1.conversation_pb2 import ROLE_SYSTEM, Message
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.memory.v1 import responses_pb2_grpc
from gateway.memory.v1.conversations_pb2 import ReadItemsRequest, ReadItemsResponse
from gateway.memory.v1.responses_pb2 import (
    FindItemsRequest,
    FindItemsResponse,
    GetResponseChainRequest,
    GetResponseChainResponse,
    ResponseItem,
)
from services.common.errors import GatewayError, from_rpc_error, invalid
from services.common.grpc.channels import Metadata
from services.common.messages.large_request import LargeRequest
from services.common.messages.lazy_request import LazyRequest
from services.common.process.byte_budget import UNCHARGED, Charge, load_charged
from services.common.process.offload import offload_if

_PREVIOUS = "previous_response_id"
_CONVERSATION = "conversation"
# Bytes charged for each byte of stored items: what the database returns, the parsed items, the
# messages made of them, and the body that is sent to a provider.
_COST = 6
# Items of more bytes are translated in a thread.
_MANY_BYTES = 1 << 18
_PLACE = re.compile(r"ids\[(\d+)\]")


async def insert_previous_items(
    exchange: Exchange,
    parsed: ParsedRequest,
    state: responses.ResponseState,
    metadata: Metadata,
    charge: Charge,
) -> responses.ResponseState:
    """Insert the conversation that a request continues; return its state with resolved items.

    The bytes of stored items are added to `charge`. A response that a socket keeps has the whole
    conversation as its input, and so has one that continues it.

    Raises:
        GatewayError: invalid, naming `previous_response_id`, if that response is not available;
            not_found, naming the conversation or the input, if the conversation or a referenced
            item is not available; too_large, the conversation has no room for the input; invalid,
            naming the input, if neither it nor the conversation has items; as `Charge.acquire`.
    """
    service = exchange.context.responses
    sent = await resolve_references(service, state.input_items, state.references, metadata, charge)
    conversation = state.conversation
    if conversation is None:
        field = _PREVIOUS
        before = await _previous(exchange, state.previous_response_id, metadata, charge)
    else:
        field = _CONVERSATION
        before, conversation = await _stored(exchange, conversation, sent, metadata, charge)
    continued = _with_conversation(exchange, replace(state, input_items=sent), before)
    earlier = await _stored_messages(before, field)
    del before  # it may be as large
    is_large = _takes_long(parsed.request)
    parsed.request = request = await offload_if(is_large, complete, parsed.request)
    first = 1 if state.instructions else 0
    if state.references:
        own = await _messages(sent)
        del request.messages[first:]
    else:
        own = list(request.messages[first:])
        del request.messages[first:]
    await offload_if(_are_large(earlier), request.messages.extend, [*earlier, *own])
    if conversation is not None and not (earlier or own or "prompt" in request.extra.required):
        raise invalid("input", "input: is required, as the conversation has no items")
    for step in request.fallback_config.steps:
        _insert_after_system(step.parameters, earlier)
    assert exchange.caller_paths is not None, "the body has been parsed"
    exchange.caller_paths = responses.ContinuedPaths(
        exchange.caller_paths.names,
        parsed.source_map,
        range(first, first + len(earlier)),
        field,
        is_rewritten=bool(state.references),
    )
    return replace(continued, references=(), conversation=conversation)


def _with_conversation(
    exchange: Exchange, state: responses.ResponseState, before: Sequence[ResponseItem]
) -> responses.ResponseState:
    """Return a state whose input has the conversation before it, unless that is stored."""
    if state.conversation is not None or not isinstance(exchange, SocketExchange):
        return state
    if state.store and exchange.recent.items(state.previous_response_id) is None:
        return state
    items = [*(item.json for item in before), *state.input_items]
    return replace(state, input_items=items, previous_response_id=None)


async def _previous(
    exchange: Exchange, previous_id: str | None, metadata: Metadata, charge: Charge
) -> Sequence[ResponseItem]:
    if previous_id is None:
        return ()
    if isinstance(exchange, SocketExchange):
        kept = exchange.recent.items(previous_id)
        if kept is not None:
            size = sum([len(item.json) for item in kept])
            if size > UNCHARGED:
                await charge.acquire(_COST * size)
            return kept

    async def load(max_bytes: int) -> GetResponseChainResponse:
        rpc_request = GetResponseChainRequest(id=previous_id, max_bytes=max_bytes)
        return await exchange.context.responses.GetResponseChain(rpc_request, metadata=metadata)

    try:
        response = await load_charged(charge, _COST, load)
    except grpc.aio.AioRpcError as error:
        raise stored_responses.continued_error(from_rpc_error(error), previous_id) from None
    return response.items


async def _stored(
    exchange: Exchange,
    conversation: responses.StoredConversation,
    sent: Sequence[bytes],
    metadata: Metadata,
    charge: Charge,
) -> tuple[Sequence[ResponseItem], responses.StoredConversation]:
    """Return the items of a stored conversation, and the conversation with its last position."""

    async def load(max_bytes: int) -> ReadItemsResponse:
        rpc_request = ReadItemsRequest(
            conversation_id=conversation.id,
            new_items=len(sent),
            new_bytes=sum(map(len, sent)),
            max_bytes=max_bytes,
        )
        return await exchange.context.conversations.ReadItems(rpc_request, metadata=metadata)

    try:
        read = await load_charged(charge, _COST, load)
    except grpc.aio.AioRpcError as error:
        failure = conversations.conversation_error(from_rpc_error(error), conversation.id)
        if failure.reason == errors_pb2.REASON_NOT_FOUND:
            failure.param = _CONVERSATION
        raise failure from None
    return read.items, responses.StoredConversation(conversation.id, read.last_position)


async def resolve_references(
    service: responses_pb2_grpc.ResponseServiceAsyncStub,
    items: Sequence[bytes],
    references: Sequence[responses.Reference],
    metadata: Metadata,
    charge: Charge,
) -> Sequence[bytes]:
    """Return items in which the stored items replace the references.

    Raises:
        GatewayError: not_found, naming the reference; too_large; as `Charge.acquire`.
    """
    if not references:
        return items

    async def load(max_bytes: int) -> FindItemsResponse:
        ids = [reference.item_id for reference in references]
        rpc_request = FindItemsRequest(ids=ids, max_bytes=max_bytes)
        return await service.FindItems(rpc_request, metadata=metadata)

    try:
        response = await load_charged(charge, _COST, load)
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        place = _PLACE.fullmatch(failure.param)
        reference = references[int(place[1]) if place else 0]
        raise stored_responses.item_error(failure, reference.item_id, reference.path) from None
    resolved = list(items)
    for reference, item in zip(references, response.items, strict=True):
        resolved[reference.index] = item.json
    return resolved


async def _messages(items: Sequence[bytes]) -> list[Message]:
    """Return the canonical messages of items.

    Raises:
        GatewayError: invalid.
    """
    is_large = sum(map(len, items)) > _MANY_BYTES
    return await offload_if(is_large, responses.messages_of_items, items)


async def _stored_messages(items: Sequence[ResponseItem], field: str) -> list[Message]:
    """Return the canonical messages of stored items.

    Raises:
        GatewayError: invalid, naming `field`.
    """

    def translate() -> list[Message]:
        return responses.messages_of_items([item.json for item in items])

    try:
        return await offload_if(_are_large(items), translate)
    except GatewayError as error:
        raise invalid(field, f"{field}: {error.message}") from None


def _are_large(parts: Sequence[ResponseItem] | Sequence[Message]) -> bool:
    """Return whether copying protobuf messages takes long."""
    return sum([part.ByteSize() for part in parts]) > _MANY_BYTES


def _insert_after_system(step: GenerateRequest, earlier: Sequence[Message]) -> None:
    """Insert a conversation into a fallback step with own messages, after its system prompt."""
    if not step.messages:
        return
    own = list(step.messages)
    first = 1 if own[0].role == ROLE_SYSTEM else 0
    del step.messages[first:]
    step.messages.extend([*earlier, *own[first:]])


def _takes_long(request: GenerateRequest | LazyRequest | LargeRequest) -> bool:
    """Return whether it takes long to complete a request."""
    if isinstance(request, LazyRequest):
        return not request.is_small
    return isinstance(request, LargeRequest)


def complete(request: GenerateRequest | LazyRequest | LargeRequest) -> GenerateRequest:
    """Return a request as a message whose fields can be changed; a large one takes a while."""
    if isinstance(request, LargeRequest):
        return request.parse()
    return request.complete() if isinstance(request, LazyRequest) else request
