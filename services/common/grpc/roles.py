"""Roles of people who sign in, and the methods that each of them permits."""

from typing import Final

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

VIEWER: Final = "viewer"
USER: Final = "user"
TEAM_ADMIN: Final = "team_admin"
ADMIN: Final = "admin"
# Each permits what those before it permit.
ROLES: Final = (VIEWER, USER, TEAM_ADMIN, ADMIN)

# Methods of viewers: names that begin so change nothing.
_READING = ("Get", "List", "Read", "Find", "Search", "Identify", "Export", "StreamResults")
# A session of document editing is needed to read, and a session of the console is ended.
_ALSO_OF_VIEWERS = frozenset(
    {
        "/gateway.articles.v1.ArticleEditorService/CreateSession",
        "/gateway.articles.v1.ArticleEditorService/DestroySession",
        "/gateway.articles.v1.ArticleEditorService/KeepSessionAlive",
        "/gateway.articles.v1.ArticleEditorService/FormatReferences",
        "/gateway.accounts.v1.SessionService/EndSession",
    }
)


def check_role(role: str, method: str) -> None:
    """Raise an error unless a role permits a method that is not one of administration.

    Args:
        role: one of `ROLES`.
        method: full name of the method, `/package.Service/Method`.

    Raises:
        GatewayError: permission_denied.
    """
    if role != VIEWER or method in _ALSO_OF_VIEWERS:
        return
    if not method.rpartition("/")[2].startswith(_READING):
        raise GatewayError(
            errors_pb2.REASON_PERMISSION_DENIED,
            "your role is viewer, which reads data and changes nothing; an administrator can give "
            "you the role user",
        )
