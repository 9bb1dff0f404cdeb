"""Errors in the envelope of document editing, and their numbers.

`{"code": …, "message": …, "data": {}}` with the matching HTTP status; the code is the status times
100 plus a number. The service numbers its own errors; this module numbers errors of requests that
do not reach it.
"""

from enum import IntEnum

import orjson

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError


class Code(IntEnum):
    """Codes of errors that are found before the service is called."""

    BODY = 40001
    PATH = 40002
    SCHEMA = 40003
    FIELDS = 40004


# Default codes: the status times 100 plus 1, with two exceptions: 40101 is a missing key, and 40401
# an unknown session.
_BY_STATUS = {401: 40102, 404: 40400}


def render_error(error: GatewayError) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error."""
    status = error.http_status
    code = error.article_code or _BY_STATUS.get(status, status * 100 + 1)
    return status, orjson.dumps({"code": code, "message": error.message, "data": {}})


def request_error(code: Code, pointer: str, problem: str) -> GatewayError:
    """Return a 400 error for the field at `pointer`."""
    message = f"{pointer or 'the body'}: {problem}"
    return GatewayError(
        errors_pb2.REASON_INVALID_REQUEST, message, param=pointer, article_code=code
    )
