"""The callers of document editing: their rights, their sessions, and the names of users."""

from collections.abc import Awaitable, Callable, Collection, Mapping

from services.articles.errors import NO_GRANT, failure, no_session
from services.articles.groups import GroupRepository
from services.articles.sessions import SessionRef
from services.common.grpc.authentication import caller

_MAX_SESSION_ID = 64  # characters

# Returns the names of those users, by their ids, that exist.
UserNames = Callable[[Collection[str]], Awaitable[Mapping[str, str]]]


class Callers:
    """The callers of the current tasks; without `grants`, every user may edit documents."""

    def __init__(self, grants: GroupRepository | None) -> None:
        self._grants = grants

    async def user_id(self) -> str:
        """Return the id of the caller.

        Raises:
            GatewayError: 40302, the caller may not edit documents.
        """
        user_id = caller.get().user_id
        if self._grants is not None and not await self._grants.has_grant(user_id):
            raise failure(NO_GRANT, "", "editing documents requires a grant; ask the operator")
        return user_id

    async def session(self, session_id: str) -> SessionRef:
        """Return a session that the caller names, of whichever user it is.

        Raises:
            GatewayError: 40401, no session can have this id; 40302.
        """
        session = SessionRef(session_id, await self.user_id())
        if len(session_id) > _MAX_SESSION_ID or not (
            session_id.isascii() and session_id.isprintable()
        ):
            raise no_session()
        return session
