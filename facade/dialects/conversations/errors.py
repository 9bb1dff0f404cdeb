"""Errors about stored conversations, with OpenAI's messages."""

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.text.texts import cut

_LONGEST_ID = 128


def conversation_error(error: GatewayError, conversation_id: str) -> GatewayError:
    """Convert an error to one about the conversation that a request names."""
    if error.reason != errors_pb2.REASON_NOT_FOUND:
        return error
    name = cut(conversation_id, _LONGEST_ID)
    return GatewayError(
        error.reason, f"Conversation with id '{name}' not found.", param="conversation_id"
    )


def capacity_error(error: GatewayError) -> GatewayError:
    """Convert an error to one about items of a response that do not fit in a conversation."""
    if error.reason != errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED:
        return error
    return GatewayError(
        error.reason,
        "conversation: the items exceed your plan's storage quota for "
        "memories, stored responses and conversations",
        param="conversation",
        limit=error.limit,
    )


def item_error(error: GatewayError, conversation_id: str, item_id: str) -> GatewayError:
    """Convert an error to one about the conversation item that a path names."""
    if error.reason != errors_pb2.REASON_NOT_FOUND or error.param != "id":
        return conversation_error(error, conversation_id)
    name, where = cut(item_id, _LONGEST_ID), cut(conversation_id, _LONGEST_ID)
    return GatewayError(
        error.reason,
        f"Item with id '{name}' not found in the conversation with id '{where}'.",
        param="item_id",
    )
