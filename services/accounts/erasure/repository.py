"""Repository of erasures, and of the reports of what they have removed."""

from collections.abc import Sequence

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.admin_pb2 import ErasedItems, Erasure
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import Actor, Subject, record
from services.accounts.erasure.schedule import next_pass_ms
from services.accounts.erasure.tables import erased_items, erasures
from services.accounts.names import is_id
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.storage.database import insert_into, reading, reading_once, write
from services.common.storage.erasing import CountErased

# The author of the entry that an erasure writes to the audit log when it is finished.
_ERASURE = Actor("erasure")


class ErasureRepository:
    """Erasures in the database.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(
        self, engine: AsyncEngine, clock: Clock, *, new_id: ids.IdGenerator = ids.new_id
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id

    async def get(self, user_id: str) -> Erasure:
        """Return the erasure of a user.

        Raises:
            GatewayError: not_found, when there is none.
        """
        async with reading(self._engine) as connection:
            erasure = await find_erasure(connection, user_id)
        if erasure is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND, "user_id: no such erasure", param="user_id"
            )
        return erasure

    async def due(self, at_most: int) -> Sequence[str]:
        """Return the users whose erasures are due, the longest due first."""
        query = (
            select(erasures.c.user_id)
            .where(erasures.c.due_at_ms <= self._clock.now_ms())
            .order_by(erasures.c.due_at_ms)
            .limit(at_most)
        )
        async with reading_once(self._engine) as connection:
            return (await connection.scalars(query)).all()

    async def unfinished(self) -> int:
        """Return the number of erasures that are not finished."""
        query = select(func.count()).where(erasures.c.finished_at_ms.is_(None))
        async with reading_once(self._engine) as connection:
            return await connection.scalar(query) or 0

    def counting(self, user_id: str) -> CountErased:
        """Return the function that adds to the report of a user's erasure."""

        async def count(
            connection: AsyncConnection, kind: str, items: int, size_bytes: int = 0
        ) -> None:
            if items:
                await add_to_report(connection, user_id, kind, items, size_bytes)

        return count

    async def end_pass(self, user_id: str) -> None:
        """Record a pass that found nothing: the first one finishes the erasure."""
        now_ms = self._clock.now_ms()

        async def transact(connection: AsyncConnection) -> None:
            finish = (
                update(erasures)
                .where(erasures.c.user_id == user_id, erasures.c.finished_at_ms.is_(None))
                .values(finished_at_ms=now_ms)
            )
            is_first = (await connection.execute(finish)).rowcount == 1
            erasure = await find_erasure(connection, user_id)
            if erasure is None:
                return
            due_at_ms = next_pass_ms(erasure.finished_at_ms, now_ms)
            await connection.execute(
                update(erasures).where(erasures.c.user_id == user_id).values(due_at_ms=due_at_ms)
            )
            if is_first:
                report = {
                    one.kind: {"items": one.items, "bytes": one.size_bytes}
                    for one in erasure.erased
                }
                await record(
                    *(connection, self._clock, self._new_id, _ERASURE, "user.erased"),
                    Subject("user", user_id),
                    after={"erased": report},
                )

        await write(self._engine, transact)

    async def remove_older(self, than_s: float, at_most: int) -> int:
        """Delete reports of erasures that were finished more than `than_s` seconds ago.

        Returns:
            The number of deleted reports, at most `at_most`.
        """
        until_ms = self._clock.now_ms() - int(than_s * 1000)
        query = select(erasures.c.user_id).where(
            erasures.c.finished_at_ms < until_ms, erasures.c.due_at_ms.is_(None)
        )

        async with reading_once(self._engine) as connection:
            user_ids = (await connection.scalars(query.limit(at_most))).all()
        if not user_ids:
            return 0

        async def remove(connection: AsyncConnection) -> None:
            for table in (erased_items, erasures):
                await connection.execute(delete(table).where(table.c.user_id.in_(user_ids)))

        await write(self._engine, remove)
        return len(user_ids)


async def begin_erasure(connection: AsyncConnection, user_id: str, now_ms: int) -> None:
    """Insert the erasure of a user, due now."""
    values = {"user_id": user_id, "requested_at_ms": now_ms, "due_at_ms": now_ms}
    await connection.execute(insert(erasures).values(**values))


async def add_to_report(
    connection: AsyncConnection, user_id: str, kind: str, items: int, size_bytes: int = 0
) -> None:
    """Add removed things to the report of a user's erasure."""
    counts = {"items": items, "size_bytes": size_bytes}
    statement = insert_into(connection, erased_items).values(user_id=user_id, kind=kind, **counts)
    added = {name: erased_items.c[name] + statement.excluded[name] for name in counts}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["user_id", "kind"], set_=added)
    )


async def find_erasure(connection: AsyncConnection, user_id: str) -> Erasure | None:
    """Return the erasure of a user with its report, or None."""
    if not is_id(user_id):
        return None
    query = select(erasures).where(erasures.c.user_id == user_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    items = select(erased_items).where(erased_items.c.user_id == user_id)
    erased = await connection.execute(items.order_by(erased_items.c.kind))
    return Erasure(
        user_id=user_id,
        requested_at_ms=row.requested_at_ms,
        finished_at_ms=row.finished_at_ms,
        erased=[
            ErasedItems(kind=one.kind, items=one.items, size_bytes=one.size_bytes) for one in erased
        ],
    )
