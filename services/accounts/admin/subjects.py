"""What the administrations of keys, users, teams and admin keys have in common.

A subject is a row of a table, with an id. Each change and its entry in the audit log are written in
one transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from sqlalchemy import ColumnElement, Select, Table, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import Actor, Record, Subject, record
from services.accounts.names import is_id
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.storage.database import reading_once


class Identified(Protocol):
    """A subject, with its id."""

    @property
    def id(self) -> str:
        """The id, unique among all subjects."""


Item = TypeVar("Item", bound=Identified)


class SubjectAdministration(ABC, Generic[Item]):
    """Administration of the subjects of one kind in the database.

    Every method raises `unavailable` when the database does not answer.

    Attributes:
        kind: the kind of subject, one of `SUBJECT_KINDS` of the audit log.
        table: the table with a row for each subject.
    """

    kind: ClassVar[str]
    table: ClassVar[Table]

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock or Clock()
        self._new_id = new_id

    @abstractmethod
    def _select(self) -> Select[Any]:
        """Return a query for all subjects, whose rows `_from_row` converts."""

    @abstractmethod
    def _from_row(self, row: Mapping[str, Any]) -> Item:
        """Return the subject of a row."""

    @abstractmethod
    def _to_record(self, subject: Item) -> Record:
        """Return the state of a subject for the audit log."""

    def _not_found(self) -> GatewayError:
        field = f"{self.kind}_id"
        return GatewayError(
            errors_pb2.REASON_NOT_FOUND, f"{field}: no such {self.kind}", param=field
        )

    async def get(self, subject_id: str) -> Item:
        """Return a subject.

        Raises:
            GatewayError: not_found.
        """
        async with reading_once(self._engine) as connection:
            return await self._find(connection, subject_id)

    async def _find(self, connection: AsyncConnection, subject_id: str) -> Item:
        """Return a subject.

        Raises:
            GatewayError: the error of `_not_found`.
        """
        row = None
        if is_id(subject_id):
            query = self._select().where(self.table.c.id == subject_id)
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise self._not_found()
        return self._from_row(row._mapping)

    async def _list(
        self, *conditions: ColumnElement[bool], limit: int | None = None
    ) -> Sequence[Item]:
        """Return the oldest subjects that meet all conditions."""
        query = self._select().where(*conditions).order_by(self.table.c.id).limit(limit)
        async with reading_once(self._engine) as connection:
            return [self._from_row(row._mapping) for row in await connection.execute(query)]

    async def _page(
        self, page_size: int, after_id: str, *filters: tuple[ColumnElement[str], str]
    ) -> Sequence[Item]:
        """Return the oldest subjects after an id.

        Each filter is a column and the value that it must have; "" selects all values.
        """
        conditions = [column == value for column, value in filters if value]
        return await self._list(self.table.c.id > after_id, *conditions, limit=page_size)

    async def _created(self, connection: AsyncConnection, subject_id: str, actor: Actor) -> Item:
        """Record the creation of a subject, whose row has been inserted; return the subject."""
        after = await self._find(connection, subject_id)
        await self._record(connection, actor, "create", subject_id, None, self._to_record(after))
        return after

    async def _change(
        self,
        connection: AsyncConnection,
        before: Item,
        values: Mapping[str, object],
        actor: Actor,
        action: str = "update",
        **noted: str,
    ) -> Item:
        """Change the row of a subject; return the changed subject.

        Args:
            connection: a connection of `writing_alone`.
            before: the subject.
            values: the new values of columns.
            actor: author of the change.
            action: the action in the audit log.
            noted: further fields of the new state in the audit log.
        """
        change = update(self.table).where(self.table.c.id == before.id).values(**values)
        await connection.execute(change)
        return await self._changed(connection, before, actor, action, **noted)

    async def _changed(
        self,
        connection: AsyncConnection,
        before: Item,
        actor: Actor,
        action: str = "update",
        **noted: str,
    ) -> Item:
        """Record a change that has been made; see `_change`."""
        after = await self._find(connection, before.id)
        state = {**self._to_record(after), **noted}
        await self._record(connection, actor, action, before.id, self._to_record(before), state)
        return after

    async def _deleted(
        self, connection: AsyncConnection, before: Item, actor: Actor, **noted: object
    ) -> None:
        """Record the deletion of a subject; `noted` are further fields of the old state."""
        state = {**self._to_record(before), **noted}
        await self._record(connection, actor, "delete", before.id, state, None)

    async def _record(
        self,
        connection: AsyncConnection,
        actor: Actor,
        action: str,
        subject_id: str,
        before: Record | None,
        after: Record | None,
    ) -> None:
        await record(
            connection,
            self._clock,
            self._new_id,
            actor,
            f"{self.kind}.{action}",
            Subject(self.kind, subject_id),
            before=before,
            after=after,
        )
