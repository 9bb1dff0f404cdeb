"""Translation of errors of the blob store into errors for callers."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors.v1.errors_pb2 import REASON_STORAGE_FULL, REASON_STORAGE_UNAVAILABLE
from services.common.errors import GatewayError

_RETRY_AFTER_S = 5
_FULL_RETRY_AFTER_S = 30

log = logging.getLogger(__name__)


class BlobMissingError(Exception):
    """Error raised when there is no blob under a key."""


def storage_unavailable() -> GatewayError:
    """Return the 503 error for a store that does not work."""
    return GatewayError(
        REASON_STORAGE_UNAVAILABLE,
        "the file store is unavailable; try again",
        retry_after_s=_RETRY_AFTER_S,
    )


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of a blob store into errors for callers.

    Raises:
        BlobMissingError: there is no such blob.
        GatewayError: storage_full; storage_unavailable.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise BlobMissingError from error
    except Exception as error:
        if not isinstance(error, (OSError, _store_error())):
            raise
        if _is_full(error):
            log.error("the disk is full", extra={"store": str(error)})
            raise _storage_full() from error
        log.error("the file store is unavailable", extra={"store": str(error)})
        raise storage_unavailable() from error


def _is_full(error: Exception) -> bool:
    # The library for blobs includes the errno of an error only in its text.
    return any(
        getattr(error, "errno", None) == number or f"(os error {number})" in str(error)
        for number in (errno.ENOSPC, errno.EDQUOT)
    )


def _storage_full() -> GatewayError:
    return GatewayError(
        REASON_STORAGE_FULL,
        "the gateway's disk is full; try again later",
        retry_after_s=_FULL_RETRY_AFTER_S,
    )


def _store_error() -> type[Exception]:
    """Return the base class of the library's errors; imported only after an error."""
    from obstore.exceptions import BaseError

    return BaseError
