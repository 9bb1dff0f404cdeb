"""Stored responses: their states and limits, and the errors raised about them."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.responses_pb2 import StoredResponse
from services.common.errors import GatewayError
from services.common.text.texts import quoted
from services.responses.conversations.records import ConversationLimits

MAX_ID = 64

# Bytes of memory charged for each byte of a response that is read: the row, the parsed items, the
# message that is returned, and its JSON.
ITEM_COST = 4

# Bytes charged while a response is generated, so that there is room for the body of a failure.
RUN_BYTES = 4096


class StoredState(StrEnum):
    """The state of a response; see `StoredResponse.State`."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    ENDED = "ended"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


RUNNING = (StoredState.QUEUED, StoredState.IN_PROGRESS)

STATE_TO_PROTO = {
    StoredState.QUEUED: StoredResponse.STATE_QUEUED,
    StoredState.IN_PROGRESS: StoredResponse.STATE_IN_PROGRESS,
    StoredState.ENDED: StoredResponse.STATE_ENDED,
    StoredState.CANCELLED: StoredResponse.STATE_CANCELLED,
    StoredState.INTERRUPTED: StoredResponse.STATE_INTERRUPTED,
}


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """The bounds of stored responses.

    Attributes:
        ttl_s: seconds from the last response of a conversation until its responses are deleted.
        lease_s: seconds after which a response is interrupted unless its process renews the lease.
        max_bytes: bytes of one response, its input included.
        max_conversation: number of responses in one conversation.
        max_conversation_bytes: bytes of the items of one conversation.
        conversations: the bounds of stored conversations.
    """

    ttl_s: float
    lease_s: float
    max_bytes: int
    max_conversation: int
    max_conversation_bytes: int
    conversations: ConversationLimits


@dataclass(frozen=True, slots=True)
class LeasedResponse:
    """A response that this process generates.

    Attributes:
        id: the internal id, never reused.
        owner_id: id of the user.
        response_id: the id that the user sees.
        input_bytes: size of its input.
        conversation_id: id of the stored conversation that it belongs to, or "".
    """

    id: str
    owner_id: str
    response_id: str
    input_bytes: int
    conversation_id: str = ""


def is_response_id(name: str) -> bool:
    """Return whether an id is valid for a response."""
    return 1 <= len(name) <= MAX_ID and name.isprintable()


def not_found(response_id: str) -> GatewayError:
    """Return the 404 error for a response that the caller does not have."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        f"id: no response {quoted(response_id)}",
        param="id",
    )


def item_not_found(item_id: str, place: int) -> GatewayError:
    """Return the 404 error for an output item that none of the caller's responses has."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        f"ids[{place}]: no output item {quoted(item_id)} in your responses",
        param=f"ids[{place}]",
    )


def taken() -> GatewayError:
    """Return the 409 error for a new response whose id the caller has used already."""
    return GatewayError(
        errors_pb2.REASON_CONFLICT, "id: a response with this id already exists", param="id"
    )


def lease_lost_error() -> GatewayError:
    """Return the 409 error for a call that generates a response and has lost its lease."""
    return GatewayError(
        errors_pb2.REASON_CONFLICT,
        "id: the response was cancelled or deleted, or another process has marked it as "
        "interrupted",
        param="id",
    )


def still_running(response_id: str) -> GatewayError:
    """Return the 409 error for continuing a response that has not ended."""
    return GatewayError(
        errors_pb2.REASON_CONFLICT,
        f"id: the response {quoted(response_id)} is still running",
        param="id",
    )


def not_in_background(response_id: str) -> GatewayError:
    """Return the 400 error for cancelling a response that was not in the background."""
    return GatewayError(
        errors_pb2.REASON_INVALID_REQUEST,
        f"id: the response {quoted(response_id)} was not created with background: true",
        param="id",
    )


def too_large(max_bytes: int) -> GatewayError:
    """Return the 413 error for a response that exceeds the maximum size."""
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"store: the response and its input exceed {max_bytes:,} bytes; store: false stores "
        "nothing",
        param="store",
        limit="memory.max_response_bytes",
    )


def conversation_too_long(max_responses: int) -> GatewayError:
    """Return the 413 error for a conversation with too many responses."""
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"id: the conversation exceeds {max_responses:,} responses",
        param="id",
        limit="memory.max_conversation",
    )


def conversation_too_large(max_bytes: int) -> GatewayError:
    """Return the 413 error for a conversation with too many bytes."""
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"id: the items of the conversation exceed {max_bytes:,} bytes",
        param="id",
        limit="limits.max_body_bytes",
    )


def storage_exceeded(max_bytes: int) -> GatewayError:
    """Return the 403 error for an owner whose memories and responses reach the plan's quota."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
        f"store: your plan allows {max_bytes} bytes of memories and stored responses, which this "
        "response would exceed; delete some with DELETE /v1/responses/{response_id}, or set "
        "store: false to store nothing",
        param="store",
        limit="memory.storage",
    )
