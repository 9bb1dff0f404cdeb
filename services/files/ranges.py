"""Byte ranges of a file (RFC 9110, section 14.1.2)."""

from typing import NamedTuple

from gateway.errors.v1.errors_pb2 import REASON_RANGE_NOT_SATISFIABLE
from gateway.files.v1.files_pb2 import ReadFileRequest
from services.common.errors import GatewayError, invalid


class Range(NamedTuple):
    """`length` bytes from the byte `first` on."""

    first: int
    length: int


def check_range(request: ReadFileRequest) -> None:
    """Check the range of a request as far as possible without the file.

    Raises:
        GatewayError: invalid_request, when the fields contradict each other.
    """
    if request.HasField("suffix"):
        if request.HasField("first") or request.HasField("last"):
            raise invalid("suffix", "suffix: cannot be combined with first or last")
        if request.suffix == 0:
            raise invalid("suffix", "suffix: must be at least 1")
    if request.HasField("last") and request.last < request.first:
        raise invalid("last", "last: must not be less than first")


def resolve_range(request: ReadFileRequest, size: int) -> Range:
    """Return the range of a checked request in a file of `size` bytes.

    Raises:
        GatewayError: range_not_satisfiable, when the range begins past the end of the file.
    """
    if request.HasField("suffix"):
        length = min(request.suffix, size)
        return Range(size - length, length)
    has_range = request.HasField("first") or request.HasField("last")
    if has_range and request.first >= size:
        raise GatewayError(
            REASON_RANGE_NOT_SATISFIABLE,
            f"range: the first byte must be less than {size}, the size of the file",
            param="range",
        )
    end = min(request.last + 1, size) if request.HasField("last") else size
    return Range(request.first, end - request.first)
