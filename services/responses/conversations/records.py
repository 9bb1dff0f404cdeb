"""Stored conversations: what they take up, and the errors raised about them."""

from dataclasses import dataclass

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.texts import quoted

# Bytes charged for a conversation, and for each item, beside the content.
_ROW_BYTES = 512
_ITEM_BYTES = 256


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """The bounds of stored conversations.

    Attributes:
        ttl_s: seconds from the last change of a conversation until it is deleted.
        max_items: items of one conversation.
        max_bytes: bytes that one conversation takes up, its items included.
    """

    ttl_s: float
    max_items: int
    max_bytes: int


def conversation_size(notes: bytes) -> int:
    """Return the bytes that are charged for a conversation without its items."""
    return _ROW_BYTES + len(notes)


def items_size(count: int, json_bytes: int) -> int:
    """Return the bytes that are charged for so many items whose JSON has so many bytes."""
    return _ITEM_BYTES * count + json_bytes


def check_size(limits: ConversationLimits, count: int, size: int) -> None:
    """Check that a conversation may have so many items and take up so many bytes.

    Raises:
        GatewayError: too_large.
    """
    if count > limits.max_items:
        raise GatewayError(
            errors_pb2.REASON_TOO_LARGE,
            f"conversation: has at most {limits.max_items:,} items",
            param="conversation",
            limit="memory.max_conversation_items",
        )
    if size > limits.max_bytes:
        raise GatewayError(
            errors_pb2.REASON_TOO_LARGE,
            f"conversation: takes up at most {limits.max_bytes:,} bytes",
            param="conversation",
            limit="limits.max_body_bytes",
        )


def conversation_not_found(conversation_id: str) -> GatewayError:
    """Return the 404 error of a caller without a conversation of that id."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        f"conversation_id: you have no conversation {quoted(conversation_id)}",
        param="conversation_id",
    )


def item_not_found(item_id: str) -> GatewayError:
    """Return the 404 error of a caller whose conversation has no item of that id."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        f"id: the conversation has no item {quoted(item_id)}",
        param="id",
    )


def storage_exceeded(max_bytes: int) -> GatewayError:
    """Return the 403 error of an owner who has stored as much as the plan allows."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
        f"items: your memories, stored responses and conversations may take up {max_bytes} bytes "
        "in all, and this does not fit; to delete some of them frees what they take up",
        param="items",
        limit="memory.storage",
    )
