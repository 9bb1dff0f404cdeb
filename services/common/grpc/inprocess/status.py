"""The errors that callers get for the status of a call."""

from collections.abc import Sequence
from typing import Any

import grpc

Metadata = Sequence[tuple[str, str | bytes]]


def status_error(code: grpc.StatusCode, text: str, trailing: Metadata = ()) -> grpc.aio.AioRpcError:
    """Return the error that a caller gets for a status."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), text, text)


def size_error(message: Any, limit: int) -> grpc.aio.AioRpcError:
    """Return the error of a message that has more bytes than the limit."""
    text = f"Sent message larger than max ({message.ByteSize()} vs. {limit})"
    return status_error(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
