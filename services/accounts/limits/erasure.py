"""Erasure of what workers have stored about the use of a user's limits."""

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.rules import SubjectKind
from services.accounts.limits.tables import allowances
from services.common.storage.database import write
from services.common.storage.erasing import CountErased


class AllowanceErasure:
    """Removes a user's allowances, which workers may write until they know of the erasure."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove the allowances, which are a few rows; return their number, which is not counted.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        removal = delete(allowances).where(
            allowances.c.subject_kind == SubjectKind.USER.value, allowances.c.subject_id == user_id
        )
        removed = await write(self._engine, lambda connection: connection.execute(removal))
        return removed.rowcount
