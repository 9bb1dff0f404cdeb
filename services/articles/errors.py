"""Errors of document editing, with the error numbers of its HTTP API.

A number is the HTTP status times 100, plus a running number. The numbers of errors of edits are in
`services.articles.tree.errors.Code`.
"""

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

BODY = 40001
SCHEMA = 40003
FIELDS = 40004
NO_RIGHT = 40301
NO_GRANT = 40302
QUOTA = 40303
SESSION = 40401
DOCUMENT = 40402
BLOCK = 40403
GROUP = 40406
IMAGE = 40407
MEMBER = 40409
COMMENT = 40410
SUGGESTION = 40411
STALE = 40901
NOTHING_TO_REVERSE = 40904
REQUEST_DIFFERS = 40905
GROUP_IN_USE = 40906
HISTORY = 40408
FILE = 40409
SESSION_EXPIRED = 41001
DOCUMENT_DELETED = 41002
TOO_MANY_SESSIONS = 42901
NOT_INSTALLED = 50101

_REASONS = {
    400: errors_pb2.REASON_INVALID_REQUEST,
    403: errors_pb2.REASON_PERMISSION_DENIED,
    404: errors_pb2.REASON_NOT_FOUND,
    409: errors_pb2.REASON_CONFLICT,
    410: errors_pb2.REASON_GONE,
    501: errors_pb2.REASON_NOT_IMPLEMENTED,
}


def failure(code: int, pointer: str, message: str) -> GatewayError:
    """Return the error with a number.

    Args:
        code: one of the numbers above, or of `services.articles.tree.errors.Code`.
        pointer: JSON pointer (RFC 6901) into the request, or "" for all of it.
        message: human-readable description of the problem at the pointer, without the pointer.
    """
    return GatewayError(
        _REASONS[code // 100],
        f"{pointer}: {message}" if pointer else message,
        param=pointer,
        article_code=code,
    )


def no_session() -> GatewayError:
    """Return the 404 error for a session that does not exist or belongs to another user."""
    return failure(SESSION, "/sessionId", "no such session; open one with session/create")


def session_expired() -> GatewayError:
    """Return the 410 error for a session of the caller that has expired."""
    return failure(
        SESSION_EXPIRED, "/sessionId", "the session has expired; open a new one with session/create"
    )


def document_deleted() -> GatewayError:
    """Return the 410 error for a session whose document was deleted."""
    return failure(DOCUMENT_DELETED, "/sessionId", "the document was deleted")


def no_document(pointer: str = "/docId") -> GatewayError:
    """Return the 404 error for a document that does not exist or that the caller may not read."""
    return failure(DOCUMENT, pointer, "no such document")


def no_group() -> GatewayError:
    """Return the 404 error for a group that does not exist or that the caller is not in."""
    return failure(GROUP, "/group", "no such group, or you are not a member")


def no_comment() -> GatewayError:
    """Return the 404 error for a comment that the document does not have."""
    return failure(COMMENT, "/commentId", "no comment with this id in the document")


def no_suggestion() -> GatewayError:
    """Return the 404 error for a suggestion that the document does not have."""
    problem = "no suggestion with this id in the document; it may have been accepted or rejected"
    return failure(SUGGESTION, "/suggestionId", problem)


def stale(revision: int) -> GatewayError:
    """Return the 409 error for an edit of a revision that is not the current one."""
    return failure(STALE, "/ifRevision", f"the document is at revision {revision}; read it again")


def block_changed(revision: int) -> GatewayError:
    """Return the 409 error for an edit of a block that has changed, or may have."""
    return failure(
        STALE,
        "/ifBlockRevision",
        f"the block may have changed since; the document is at revision {revision}: read it again",
    )


def nothing_to_reverse(word: str) -> GatewayError:
    """Return the 409 error for a caller without an edit to undo or redo, which `word` names."""
    return failure(NOTHING_TO_REVERSE, "", f"there is no edit of yours to {word}")


def request_differs() -> GatewayError:
    """Return the 409 error for a request with the id of another one."""
    problem = "you sent another request with this id; give each request an id of its own"
    return failure(REQUEST_DIFFERS, "/requestId", problem)


def no_history(pointer: str) -> GatewayError:
    """Return the 404 error for a revision that the log does not reach, or that is yet to come."""
    return failure(HISTORY, pointer, "no such revision, or its history is no longer available")


def quota_reached(message: str, limit: str) -> GatewayError:
    """Return the 403 error for an owner whose documents reach a limit of the plan."""
    return GatewayError(
        errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED, message, article_code=QUOTA, limit=limit
    )


def too_many_sessions(max_sessions: int, retry_after_s: int) -> GatewayError:
    """Return the 429 error for a user who has the maximum number of sessions."""
    return GatewayError(
        errors_pb2.REASON_RATE_LIMITED,
        f"you have {max_sessions} open sessions, the maximum; end some with session/destroy, or "
        "wait until some expire",
        retry_after_s=retry_after_s,
        article_code=TOO_MANY_SESSIONS,
        limit="articles.max_sessions",
    )
