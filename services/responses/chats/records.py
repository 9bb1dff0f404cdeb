"""Stored chat completions: their limits and sizes, and the errors raised about them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.chats_pb2 import StoredChatCompletion
from services.common.errors import GatewayError, invalid
from services.common.text.texts import MAX_NAME, quoted

MAX_ID = 64
_MAX_ENTRIES, _MAX_KEY, _MAX_VALUE = 16, 64, 512
# Bytes charged for a chat completion besides its content.
_ROW_BYTES = 512


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """The bounds of stored chat completions.

    Attributes:
        ttl_s: seconds until a chat completion is deleted.
        max_bytes: bytes of one, its messages included.
    """

    ttl_s: float
    max_bytes: int


def size_of(chat: StoredChatCompletion) -> int:
    """Return the bytes charged for a chat completion."""
    return _ROW_BYTES + len(labels_of(chat.metadata)) + len(chat.completion) + len(chat.messages)


def labels_of(metadata: Mapping[str, str]) -> str:
    """Return metadata in the form in which it is stored."""
    return orjson.dumps(dict(metadata), option=orjson.OPT_SORT_KEYS).decode()


def label_in(key: str, value: str) -> str:
    """Return the part of stored metadata that an entry makes.

    As quotes within strings are escaped, no other entry contains it.
    """
    return orjson.dumps({key: value}).decode()[1:-1]


def check_new(chat: StoredChatCompletion) -> None:
    """Check a chat completion that is to be stored.

    Raises:
        GatewayError: invalid.
    """
    if not is_chat_id(chat.id):
        raise invalid("id", f"id: must be 1 to {MAX_ID} printable characters")
    if not 1 <= len(chat.model) <= MAX_NAME:
        raise invalid("model", f"model: must be 1 to {MAX_NAME} characters")
    check_metadata(chat.metadata)


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Check the metadata of a chat completion, or of a filter.

    Raises:
        GatewayError: invalid.
    """
    if len(metadata) > _MAX_ENTRIES:
        raise invalid("metadata", f"metadata: must have at most {_MAX_ENTRIES} entries")
    for key, value in metadata.items():
        if not 1 <= len(key) <= _MAX_KEY or len(value) > _MAX_VALUE:
            raise invalid(
                "metadata",
                f"metadata: keys must have 1 to {_MAX_KEY} characters, and values at most "
                f"{_MAX_VALUE}",
            )


def is_chat_id(name: str) -> bool:
    """Return whether an id is valid for a chat completion."""
    return 1 <= len(name) <= MAX_ID and name.isprintable()


def chat_not_found(chat_id: str) -> GatewayError:
    """Return the 404 error for a chat completion that the caller does not have."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND, f"id: no chat completion {quoted(chat_id)}", param="id"
    )


def chat_exists() -> GatewayError:
    """Return the 409 error for a new chat completion whose id the caller has used already."""
    return GatewayError(
        errors_pb2.REASON_CONFLICT, "id: a chat completion with this id already exists", param="id"
    )


def chat_too_large(max_bytes: int) -> GatewayError:
    """Return the 413 error for a chat completion that exceeds the maximum size."""
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"store: the chat completion and its messages exceed {max_bytes:,} bytes; store: false "
        "stores nothing",
        param="store",
        limit="memory.max_response_bytes",
    )


def storage_exceeded(max_bytes: int) -> GatewayError:
    """Return the 403 error for an owner who has stored as much as the plan allows."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
        f"store: your plan allows {max_bytes} bytes of memories, stored responses and chat "
        "completions, which this one would exceed; delete some with DELETE "
        "/v1/chat/completions/{completion_id}, or set store: false to store nothing",
        param="store",
        limit="memory.storage",
    )
