"""Erasure of what workers have stored about the use of a user's limits."""

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.limits.repository import delete_end_user_limits
from services.accounts.limits.rules import SubjectKind
from services.accounts.limits.tables import allowances, notifications
from services.common.storage.database import write
from services.common.storage.erasing import CountErased


class LimitErasure:
    """Removes a user's allowances and notifications.

    Workers may write them until they know of the erasure.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove the rows, which are few; return their number, which is not counted.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """

        async def remove(connection: AsyncConnection) -> int:
            removed = 0
            for table in (allowances, notifications):
                theirs = table.c.subject_id == user_id
                of_users = table.c.subject_kind == SubjectKind.USER.value
                removed += (
                    await connection.execute(delete(table).where(of_users, theirs))
                ).rowcount
            return removed + await delete_end_user_limits(connection, user_id)

        return await write(self._engine, remove)
