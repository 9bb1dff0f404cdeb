"""Validation of the properties of a file that callers send."""

from gateway.files.v1.files_pb2 import FileTrailer, Purpose
from services.common.errors import invalid
from services.common.settings import MAX_FILE_LIFETIME_S


def check_purpose(purpose: Purpose.ValueType) -> None:
    """Check that a purpose is one of a file.

    Raises:
        GatewayError: invalid_request.
    """
    if purpose == Purpose.PURPOSE_UNSPECIFIED or purpose not in Purpose.values():
        raise invalid("purpose", "purpose: must be a value of gateway.files.v1.Purpose")


def lifetime_s_of(trailer: FileTrailer, default_s: int) -> int:
    """Return the lifetime of a file in seconds; `default_s` if its trailer names none.

    Raises:
        GatewayError: invalid_request.
    """
    if not trailer.HasField("expires_after_s"):
        return default_s
    if not 1 <= trailer.expires_after_s <= MAX_FILE_LIFETIME_S:
        raise invalid(
            "expires_after.seconds",
            f"expires_after.seconds: must be 1 to {MAX_FILE_LIFETIME_S}",
        )
    return trailer.expires_after_s
