"""Conversion of response objects to their stored form, and back.

The output of a response is stored separately, item by item, as it is part of the conversations
that continue the response.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from facade.dialects.responses import StoredConversation
from gateway.memory.v1.responses_pb2 import (
    NewResponse,
    ResponseContent,
    ResponseItem,
    StoredResponse,
)

_MAX_ITEM_ID = 128

_STATUSES = {
    StoredResponse.STATE_QUEUED: "queued",
    StoredResponse.STATE_IN_PROGRESS: "in_progress",
    StoredResponse.STATE_CANCELLED: "cancelled",
    StoredResponse.STATE_INTERRUPTED: "failed",
}
_APPENDED = ("completed", "incomplete")
_INTERRUPTED = {
    "code": "server_error",
    "message": "the gateway stopped while it generated the response; try again",
}


def new_response(
    response_id: str,
    previous_id: str | None,
    sent: Sequence[bytes],
    content: ResponseContent | None,
    conversation: StoredConversation | None,
) -> NewResponse:
    """Return the response to store.

    Args:
        response_id: id of the response.
        previous_id: id of the response that it continues.
        sent: the items of the request's input, as JSON.
        content: its content; None for one that is generated in the background.
        conversation: the stored conversation that it was generated from.
    """
    new = NewResponse(
        id=response_id,
        previous_id=previous_id or "",
        input=_input_items(response_id, sent),
        content=content,
    )
    if conversation is not None:
        new.conversation.id = conversation.id
        new.conversation.last_position = conversation.last_position
    return new


def _input_items(response_id: str, sent: Sequence[bytes]) -> list[ResponseItem]:
    """Return the items to store of a request's input, which are given as JSON."""
    items = [orjson.loads(item) for item in sent]
    return [
        ResponseItem(id=_id(item, response_id, index, "in"), json=json)
        for index, (item, json) in enumerate(zip(items, sent, strict=True))
    ]


def is_appended(response: bytes) -> bool:
    """Return whether the items of a response object are appended to its conversation.

    Items of a failed or cancelled response are not appended, as the caller has to send its input
    again.
    """
    return orjson.loads(response)["status"] in _APPENDED


def response_content(response: bytes, events: bytes = b"") -> ResponseContent:
    """Return the stored content of a response object, with its packed streamed events."""
    body = orjson.loads(response)
    items = body["output"]
    body["output"] = []
    return ResponseContent(
        body=orjson.dumps(body),
        output=[
            ResponseItem(id=_id(item, body["id"], index, "out"), json=orjson.dumps(item))
            for index, item in enumerate(items)
        ],
        events=events,
    )


def render_stored(stored: StoredResponse) -> bytes:
    """Return the response object of a stored response."""
    content = stored.content
    body = orjson.loads(content.body)
    body["output"] = [orjson.Fragment(item.json) for item in content.output]
    status = _STATUSES.get(stored.state)
    if status is not None:
        body["status"] = status
    if stored.state == StoredResponse.STATE_INTERRUPTED:
        body["error"] = _INTERRUPTED
    return orjson.dumps(body)


def with_status(response: bytes, status: str) -> bytes:
    """Return a response object with another status and no error."""
    body = orjson.loads(response)
    return orjson.dumps({**body, "status": status, "error": None})


def render_deleted(response_id: str) -> bytes:
    """Return the JSON that confirms the deletion of a response."""
    return orjson.dumps({"id": response_id, "object": "response", "deleted": True})


def render_items(items: Iterable[ResponseItem], *, has_more: bool) -> bytes:
    """Return the JSON of a page of items."""
    listed = list(items)
    return orjson.dumps(
        {
            "object": "list",
            "data": [orjson.Fragment(item.json) for item in listed],
            "first_id": listed[0].id if listed else None,
            "last_id": listed[-1].id if listed else None,
            "has_more": has_more,
        }
    )


def _id(item: dict[str, Any], response_id: str, index: int, kind: str) -> str:
    """Return the id of an item, or an id of the gateway's own if it has no valid one."""
    item_id = item.get("id")
    if isinstance(item_id, str) and 1 <= len(item_id) <= _MAX_ITEM_ID and item_id.isprintable():
        return item_id
    return f"{kind}_{response_id}_{index}"
