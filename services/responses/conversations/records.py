"""Stored conversations: their limits and sizes, and the errors raised about them."""

from dataclasses import dataclass

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.text.texts import quoted

# Bytes charged for a conversation, and for each item, besides the content.
_ROW_BYTES = 512
_ITEM_BYTES = 256


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """The bounds of stored conversations.

    Attributes:
        ttl_s: seconds from the last change of a conversation until it is deleted.
        max_items: number of items in one conversation.
        max_bytes: size of one conversation, its items included.
    """

    ttl_s: float
    max_items: int
    max_bytes: int


def conversation_size(notes: bytes) -> int:
    """Return the bytes charged for a conversation without its items."""
    return _ROW_BYTES + len(notes)


def items_size(count: int, json_bytes: int) -> int:
    """Return the bytes charged for `count` items with `json_bytes` bytes of JSON in all."""
    return _ITEM_BYTES * count + json_bytes


def check_size(limits: ConversationLimits, count: int, size: int) -> None:
    """Check the number of items and the size of a conversation against the limits.

    Raises:
        GatewayError: too_large.
    """
    if count > limits.max_items:
        raise GatewayError(
            errors_pb2.REASON_TOO_LARGE,
            f"conversation: must have at most {limits.max_items:,} items",
            param="conversation",
            limit="memory.max_conversation_items",
        )
    if size > limits.max_bytes:
        raise GatewayError(
            errors_pb2.REASON_TOO_LARGE,
            f"conversation: must have at most {limits.max_bytes:,} bytes",
            param="conversation",
            limit="limits.max_body_bytes",
        )


def conversation_not_found(conversation_id: str) -> GatewayError:
    """Return the 404 error for a conversation that the caller does not have."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        f"conversation_id: no conversation {quoted(conversation_id)}",
        param="conversation_id",
    )


def item_not_found(item_id: str) -> GatewayError:
    """Return the 404 error for an item that the conversation does not have."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        f"id: no item {quoted(item_id)} in the conversation",
        param="id",
    )


def storage_exceeded(max_bytes: int) -> GatewayError:
    """Return the 403 error for an owner who has stored as much as the plan allows."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
        f"items: your plan allows {max_bytes} bytes of memories, stored responses and "
        "conversations, which these items would exceed; delete some of them",
        param="items",
        limit="memory.storage",
    )
