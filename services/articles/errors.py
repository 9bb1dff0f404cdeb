"""The failures of document editing, by the numbers that its HTTP API shows.

A number is the HTTP status times 100 and a running number. Those that the tree refuses
with are `services.articles.tree.errors.Code`; here are the ones beside them.
"""

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

BODY = 40001
SCHEMA = 40003
NO_RIGHT = 40301
NO_GRANT = 40302
QUOTA = 40303
SESSION = 40401
DOCUMENT = 40402
BLOCK = 40403
GROUP = 40406
STALE = 40901
SESSION_EXPIRED = 41001
DOCUMENT_DELETED = 41002
TOO_MANY_SESSIONS = 42901

_REASONS = {
    400: errors_pb2.REASON_INVALID_REQUEST,
    403: errors_pb2.REASON_PERMISSION_DENIED,
    404: errors_pb2.REASON_NOT_FOUND,
    409: errors_pb2.REASON_CONFLICT,
    410: errors_pb2.REASON_GONE,
}


def failure(code: int, pointer: str, message: str) -> GatewayError:
    """Return the failure with that number; `message` says what is wrong at `pointer`.

    Args:
        code: one of the numbers above, or of the tree's.
        pointer: JSON pointer (RFC 6901) into the request, or "" for all of it.
        message: for people; what the place takes, without naming the place.
    """
    return GatewayError(
        _REASONS[code // 100],
        f"{pointer}: {message}" if pointer else message,
        param=pointer,
        article_code=code,
    )


def no_session() -> GatewayError:
    """The caller has no such session, whatever the cause."""
    return failure(SESSION, "/sessionId", "you have no such session; open one with session/create")


def session_expired() -> GatewayError:
    """The session was the caller's and is over."""
    return failure(SESSION_EXPIRED, "/sessionId", "the session has expired; open another")


def document_deleted() -> GatewayError:
    """The session is the caller's, and its document was deleted."""
    return failure(DOCUMENT_DELETED, "/sessionId", "the document was deleted")


def no_document(pointer: str = "/docId") -> GatewayError:
    """There is no such document, or the caller may not read it."""
    return failure(DOCUMENT, pointer, "you have no such document")


def no_group() -> GatewayError:
    """There is no such group, or the caller is not in it."""
    return failure(GROUP, "/group", "you are in no such group")


def stale(revision: int) -> GatewayError:
    """The document has changed since the caller saw it."""
    return failure(STALE, "/ifRevision", f"the document is at revision {revision}; read it again")


def quota_reached(message: str, limit: str) -> GatewayError:
    """Return the 403 of an owner whose documents take up all that their plan has."""
    return GatewayError(
        errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED, message, article_code=QUOTA, limit=limit
    )


def too_many_sessions(most: int, retry_after_s: int) -> GatewayError:
    """Return the 429 of a user who has as many documents open as one may."""
    return GatewayError(
        errors_pb2.REASON_RATE_LIMITED,
        f"you have {most} documents open, as many as you may; end sessions with session/destroy, "
        "or wait until some expire",
        retry_after_s=retry_after_s,
        article_code=TOO_MANY_SESSIONS,
        limit="articles.max_sessions",
    )
