"""Errors in the envelope of document editing, and their numbers.

`{"code": …, "message": …, "data": {}}` with a true HTTP status; the code is the status
times 100 and a number. The service numbers its own errors; here are those of requests
that do not reach it.
"""

from enum import IntEnum

import orjson

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError


class Code(IntEnum):
    """Numbers of errors that are found without the document."""

    BODY = 40001
    PATH = 40002
    SCHEMA = 40003
    FIELDS = 40004


# Where a failure carries no number of its own. Status times 100 plus 1 but for two: 40101 is
# a key that is missing, and 40401 a session that nobody has, which another 404 is not.
_BY_STATUS = {401: 40102, 404: 40400}


def render_error(error: GatewayError) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error."""
    status = error.http_status
    code = error.article_code or _BY_STATUS.get(status, status * 100 + 1)
    return status, orjson.dumps({"code": code, "message": error.message, "data": {}})


def request_error(code: Code, pointer: str, problem: str) -> GatewayError:
    """Return the 400 of a request that is wrong at `pointer`."""
    message = f"{pointer or 'the body'}: {problem}"
    return GatewayError(
        errors_pb2.REASON_INVALID_REQUEST, message, param=pointer, article_code=code
    )
