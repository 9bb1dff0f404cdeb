"""Storage usage of each owner's documents, and the quotas on it.

The size of a document is the size of its log: every operation and its inverse; or that of its
snapshot, once so much of the log is removed. It is charged to the user who created the document,
whoever edits it. An owner's row is updated in the transaction of
the change that it counts. The statement that adds to it also checks the quota, so that concurrent
processes cannot exceed it together. A log is charged in blocks, so that few edits update the row. A
transaction locks owners' rows after sessions, and before documents and operations.

Deleting a document frees its bytes at once. Deleted documents stay on disk until they are
purged, so live and deleted ones together are limited to twice the quota; the sweeper purges
the oldest deleted documents of an owner who has more than the quota in all.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, case, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import Update

from services.articles.errors import quota_reached
from services.articles.tables import articles, usage
from services.common.errors import GatewayError
from services.common.settings import Articles, PlanLimits
from services.common.storage.database import insert_into

# Bytes charged for the rows and keys of a document and of an operation, besides their content.
DOCUMENT_BYTES = 1024
OPERATION_BYTES = 256
# Bytes of a document's log that are charged at a time.
BLOCK = 16 << 10

_PLANS = tuple(PlanLimits.model_fields)

_ADDED = bindparam("added", type_=articles.c.size_bytes.type)
# Built once, as building it takes longer than running it.
_ADD_TO_DOCUMENT = (
    update(articles)
    .where(articles.c.id == bindparam("article"), articles.c.deleted_at_ms.is_(None))
    .values(
        size_bytes=articles.c.size_bytes + _ADDED,
        charged_bytes=articles.c.charged_bytes + _ADDED,
    )
)


class Account(NamedTuple):
    """The usage of one owner.

    Attributes:
        plan: name of the owner's plan.
        documents: number of documents, without deleted ones.
        size_bytes: size of those documents.
        deleted_bytes: size of deleted documents that are not purged yet.
    """

    plan: str
    documents: int
    size_bytes: int
    deleted_bytes: int


def length_of(connection: AsyncConnection) -> Any:
    """Return the SQL function for the length of a value in bytes."""
    return func.octet_length if connection.dialect.name == "postgresql" else func.length


def size_of(operation: bytes, inverse: bytes) -> int:
    """Return the size in bytes of an operation in its document's log."""
    return len(operation) + len(inverse) + OPERATION_BYTES


def blocks_for(size: int) -> int:
    """Return a size rounded up to whole blocks, in bytes."""
    return max(0, -(-size // BLOCK) * BLOCK)


class OwnerUsage:
    """The usage of all owners; every method works in the caller's transaction."""

    def __init__(self, settings: Articles) -> None:
        self._quota = settings.quota
        self._documents = settings.documents
        added = bindparam("added", type_=usage.c.size_bytes.type)
        self._charge = (
            update(usage)
            .where(usage.c.owner_id == bindparam("owner"), self._fits(added))
            .values(size_bytes=usage.c.size_bytes + added)
        )

    async def account(self, connection: AsyncConnection, owner_id: str) -> Account:
        """Return an owner's account, or an empty one of the smallest plan if there is none."""
        query = select(
            usage.c.plan, usage.c.documents, usage.c.size_bytes, usage.c.deleted_bytes
        ).where(usage.c.owner_id == owner_id)
        row = (await connection.execute(query)).one_or_none()
        return Account(*row) if row else Account(_PLANS[0], 0, 0, 0)

    async def set_plan(self, connection: AsyncConnection, owner_id: str, plan: str) -> None:
        """Store the plan of an owner who has documents, if it has changed."""
        await connection.execute(
            update(usage)
            .where(usage.c.owner_id == owner_id, usage.c.plan != plan)
            .values(plan=plan)
        )

    async def add_document(self, connection: AsyncConnection, owner_id: str, plan: str) -> None:
        """Charge an owner for a new, empty document.

        Raises:
            GatewayError: 40303, when the owner has reached the number or the size of documents
                that the plan allows.
        """
        account = insert_into(connection, usage).values(
            owner_id=owner_id, plan=plan, documents=0, size_bytes=0, deleted_bytes=0
        )
        await connection.execute(
            account.on_conflict_do_update(
                index_elements=[usage.c.owner_id], set_={"plan": account.excluded.plan}
            )
        )
        added = await connection.execute(
            update(usage)
            .where(
                usage.c.owner_id == owner_id,
                usage.c.documents < _by_plan(self._documents),
                self._fits(literal(DOCUMENT_BYTES, usage.c.size_bytes.type)),
            )
            .values(
                documents=usage.c.documents + 1,
                size_bytes=usage.c.size_bytes + DOCUMENT_BYTES,
            )
        )
        if not added.rowcount:
            raise await self.refusal(connection, owner_id, DOCUMENT_BYTES)

    async def charge(self, connection: AsyncConnection, sizes: Mapping[str, int]) -> bool:
        """Charge owners for blocks of logs, all or none of them.

        Returns:
            Whether all of them fit. If not, the charges of the others must not be committed.
        """
        return await _update_each(connection, self._charge, "owner", sizes)

    async def refusal(self, connection: AsyncConnection, owner_id: str, size: int) -> GatewayError:
        """Return the error for `size` more bytes, or for one more document, beyond a limit."""
        account = await self.account(connection, owner_id)
        quota = getattr(self._quota, account.plan)
        if account.size_bytes + size <= quota:
            documents = getattr(self._documents, account.plan)
            if account.documents >= documents:
                return quota_reached(
                    f"the owner's plan allows {documents} documents; delete some, or ask the "
                    "operator of the gateway for a higher limit",
                    "articles.documents",
                )
            return quota_reached(
                "deleted documents that are still being purged use as much storage as the owner's "
                "plan allows; try again in a few minutes",
                "articles.quota",
            )
        return quota_reached(
            f"the owner's plan allows {quota} bytes of documents, which this edit would exceed; "
            "delete documents, or ask the operator of the gateway for a higher limit",
            "articles.quota",
        )

    async def move(
        self, connection: AsyncConnection, owner_id: str, size: int, *, deleted: bool
    ) -> None:
        """Move a document's size between an owner's live and deleted documents."""
        sign = 1 if deleted else -1
        await connection.execute(
            update(usage)
            .where(usage.c.owner_id == owner_id)
            .values(
                documents=usage.c.documents - sign,
                size_bytes=usage.c.size_bytes - sign * size,
                deleted_bytes=usage.c.deleted_bytes + sign * size,
            )
        )

    async def free(
        self, connection: AsyncConnection, owner_id: str, *, live: int = 0, deleted: int = 0
    ) -> None:
        """Subtract the bytes of removed operations or purged documents from an owner's usage."""
        await connection.execute(
            update(usage)
            .where(usage.c.owner_id == owner_id)
            .values(
                size_bytes=usage.c.size_bytes - live,
                deleted_bytes=usage.c.deleted_bytes - deleted,
            )
        )

    def has_too_much_deleted(self) -> ColumnElement[bool]:
        """Return the condition that live and deleted documents exceed the quota."""
        total = usage.c.size_bytes + usage.c.deleted_bytes
        return and_(usage.c.deleted_bytes > 0, total > _by_plan(self._quota))

    def has_much_history(self) -> ColumnElement[bool]:
        """Return the condition that a row of `usage` has more than half of the quota."""
        return 2 * usage.c.size_bytes > _by_plan(self._quota)

    def _fits(self, added: ColumnElement[int]) -> ColumnElement[bool]:
        quota = _by_plan(self._quota)
        live = usage.c.size_bytes + added
        return and_(live <= quota, live + usage.c.deleted_bytes <= 2 * quota)


async def lock(connection: AsyncConnection, owner_id: str) -> None:
    """Lock an owner's row until the end of the transaction."""
    await connection.execute(
        select(usage.c.owner_id).where(usage.c.owner_id == owner_id).with_for_update()
    )


async def add_to_documents(connection: AsyncConnection, sizes: Mapping[str, int]) -> bool:
    """Add sizes to documents by their ids; return whether all of them still exist."""
    return await _update_each(connection, _ADD_TO_DOCUMENT, "article", sizes)


async def _update_each(
    connection: AsyncConnection, statement: Update, key: str, sizes: Mapping[str, int]
) -> bool:
    """Add sizes to rows by a statement; return whether it changed all of them.

    It is executed for one row after another, nearly always for one; in the same order everywhere,
    so that two transactions never deadlock.
    """
    for name, size in sorted(sizes.items()):
        updated = await connection.execute(statement, {key: name, "added": size})
        if not updated.rowcount:
            return False
    return True


def _by_plan(limits: PlanLimits) -> ColumnElement[int]:
    """Return the SQL expression of the limit of a row's plan."""
    return case(
        {plan: literal(getattr(limits, plan), usage.c.size_bytes.type) for plan in _PLANS},
        value=usage.c.plan,
    )
