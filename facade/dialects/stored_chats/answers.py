"""Stored chat completions and their messages as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from facade.dialects.stored_chats.queries import PageQuery
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.chats_pb2 import StoredChatCompletion
from services.common.errors import GatewayError, invalid
from services.common.text.texts import MAX_NAME, cut

_LONGEST_ID = 128


def new_chat(
    completion: dict[str, Any], messages: str, metadata: dict[str, str]
) -> StoredChatCompletion:
    """Return the chat completion to store.

    Args:
        completion: the chat completion object.
        messages: the messages of the request, as JSON.
        metadata: the caller's metadata.
    """
    return StoredChatCompletion(
        id=completion["id"],
        model=str(completion.get("model") or "unknown")[:MAX_NAME],
        metadata=metadata,
        completion=orjson.dumps(completion),
        messages=messages.encode(),
    )


def render_chat(chat: StoredChatCompletion) -> bytes:
    """Return the JSON of a stored chat completion."""
    return orjson.dumps(_object(chat))


def render_chats(chats: Iterable[StoredChatCompletion], *, has_more: bool) -> bytes:
    """Return the JSON of a page of chat completions."""
    return _page([_object(chat) for chat in chats], has_more=has_more)


def render_deleted(chat_id: str) -> bytes:
    """Return the JSON that confirms the deletion of a chat completion."""
    return orjson.dumps({"object": "chat.completion.deleted", "id": chat_id, "deleted": True})


def render_messages(chat: StoredChatCompletion, page: PageQuery) -> bytes:
    """Return the JSON of a page of the messages that a chat completion answers.

    Raises:
        GatewayError: invalid, `after` is not the id of one of the messages.
    """
    listed = [
        _message(message, f"{chat.id}-{index}")
        for index, message in enumerate(orjson.loads(chat.messages))
    ]
    if page.descending:
        listed.reverse()
    first = 0
    if page.after:
        ids = [message["id"] for message in listed]
        if page.after not in ids:
            raise invalid("after", "after: must be the id of a message of this chat completion")
        first = ids.index(page.after) + 1
    last = first + page.limit
    return _page(listed[first:last], has_more=len(listed) > last)


def chat_error(error: GatewayError, chat_id: str) -> GatewayError:
    """Convert an error to one about the chat completion that a path names."""
    if error.reason != errors_pb2.REASON_NOT_FOUND:
        return error
    name = cut(chat_id, _LONGEST_ID)
    return GatewayError(
        error.reason, f"Chat completion with id '{name}' not found.", param="completion_id"
    )


def _object(chat: StoredChatCompletion) -> dict[str, Any]:
    return {**orjson.loads(chat.completion), "metadata": dict(chat.metadata)}


def _message(message: dict[str, Any], message_id: str) -> dict[str, Any]:
    """Return a message of a request as clients expect stored ones."""
    content = message.get("content")
    is_text = isinstance(content, str)
    return {
        **message,
        "id": message_id,
        "content": content if is_text else None,
        "content_parts": None if is_text else content,
    }


def _page(listed: Sequence[dict[str, Any]], *, has_more: bool) -> bytes:
    return orjson.dumps(
        {
            "object": "list",
            "data": listed,
            "first_id": listed[0]["id"] if listed else None,
            "last_id": listed[-1]["id"] if listed else None,
            "has_more": has_more,
        }
    )
