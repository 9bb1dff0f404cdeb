"""The stored responses of all users in the database.

A response that is generated in the background is leased to a process. The end of the response is
written in one transaction, and only while the process holds the lease. A response whose lease has
expired, or whose process has died, is interrupted, and is not written to any more.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.responses_pb2 import (
    NewResponse,
    ResponseContent,
    ResponseItem,
    StoredResponse,
)
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.process.byte_budget import UNCHARGED, Admit
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import reading_once, write
from services.common.storage.leased_rows import LeasedRows, holder_prefix, is_held_by_process
from services.common.storage.owners import charge, stored_bytes
from services.responses import response_rows
from services.responses.committer import ResponseCommitter
from services.responses.packing import (
    PackedContent,
    pack_items,
    unpack_items,
    unpack_response,
)
from services.responses.records import (
    RUN_BYTES,
    RUNNING,
    LeasedResponse,
    ResponseLimits,
    StoredState,
    lease_lost_error,
    not_found,
    not_in_background,
    storage_exceeded,
    too_large,
)
from services.responses.response_rows import NewRow
from services.responses.tables import contents, responses

PREFIX = "response_"

_HOLDER = "response"
_AT_ONCE = 500  # ids in an SQL statement
# Number of owners whose stored size is cached, and for how long.
_MAX_KNOWN = 10_000
_KNOWN_S = 5.0
_IS_RUNNING = responses.c.state.in_(RUNNING)


class CapacityExceededError(Exception):
    """Error raised when the owner's quota or the conversation has no room for a response."""


class ResponseRepository:
    """Stored responses; every method raises `unavailable` when the database does not answer.

    `max_bytes` is the storage quota of a user for memories and responses together.

    Args:
        engine: the database.
        clock: the clock.
        limits: the bounds.
        processes: the processes of this machine, if their deaths can be detected.
        new_id: makes the ids of responses and of their holders.

    Attributes:
        limits: the bounds.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        limits: ResponseLimits,
        processes: ProcessRegistry | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self.limits = limits
        self._rows = LeasedRows(responses, clock, limits.lease_s)
        self._committer = ResponseCommitter(engine, limits)
        # By owner: the stored bytes, and the time until which this value is used.
        self._stored: dict[str, tuple[int, float]] = {}
        self._holder = new_id(holder_prefix(_HOLDER, processes.name if processes else ""))
        if processes:
            processes.on_death.append(self.interrupt_of_process)

    async def check_capacity(self, owner_id: str, max_bytes: int, input_bytes: int) -> None:
        """Check that a response with an input of `input_bytes` bytes could be stored.

        The owner's stored size is cached for some seconds; storing the response checks it again.

        Raises:
            GatewayError: too_large; memory_storage_exceeded.
        """
        size = PackedContent(b"", b"", b"").size(input_bytes)
        if size > self.limits.max_bytes:
            raise too_large(self.limits.max_bytes)
        now = self._clock.monotonic()
        stored, until = self._stored.get(owner_id, (0, 0.0))
        if now < until and stored + size <= max_bytes:
            return
        stored = await stored_bytes(self._engine, owner_id)
        self._remember(owner_id, stored)
        if stored + size > max_bytes:
            raise storage_exceeded(max_bytes)

    async def create(
        self, owner_id: str, max_bytes: int, new: NewResponse, *, append: bool = False
    ) -> None:
        """Store a response that has ended.

        Args:
            owner_id: the user.
            max_bytes: the storage quota.
            new: the response.
            append: whether its items are appended to its conversation.

        Raises:
            GatewayError: conflict, the user has a response of that id; too_large;
                memory_storage_exceeded.
        """
        row, _ = await self._new_row(owner_id, new, StoredState.ENDED, append=append)
        self._remember(owner_id, await self._committer.store(row, max_bytes))

    async def create_leased(
        self, owner_id: str, max_bytes: int, new: NewResponse
    ) -> LeasedResponse:
        """Store a queued response, leased to this process; raises the errors of `create`."""
        row, leased = await self._new_row(owner_id, new, StoredState.QUEUED)
        await self._committer.store(row, max_bytes)
        return leased

    async def start(self, leased: LeasedResponse) -> None:
        """Record that a queued response is being generated.

        Raises:
            GatewayError: conflict, this process does not hold it any more.
        """
        start = update(responses).where(self._is_held(leased)).values(state=StoredState.IN_PROGRESS)
        started = await write(self._engine, lambda connection: connection.execute(start))
        if not started.rowcount:
            raise lease_lost_error()

    async def finish(
        self,
        leased: LeasedResponse,
        max_bytes: int,
        content: ResponseContent,
        substitute_body: bytes,
        *,
        append: bool = False,
    ) -> bool:
        """Record the end of a response; return whether its content fitted.

        Otherwise the body `substitute_body` is stored.

        Args:
            leased: the response.
            max_bytes: the storage quota.
            content: the generated content.
            substitute_body: the body to store if the content does not fit.
            append: whether the items of the response are appended to its conversation.

        Raises:
            GatewayError: conflict, this process does not hold it any more.
        """
        packed = await PackedContent.of(content)
        if packed.size(leased.input_bytes) <= self.limits.max_bytes:
            output = list(content.output) if append else None
            try:
                await self._write_end(leased, packed, max_bytes, output)
            except CapacityExceededError:
                pass
            else:
                return True
        await self._write_end(leased, PackedContent(substitute_body, b"", b""), None, None)
        return False

    async def _write_end(
        self,
        leased: LeasedResponse,
        packed: PackedContent,
        max_bytes: int | None,
        output: Sequence[ResponseItem] | None,
    ) -> None:
        """Write the end of a response, and append its input and `output` to its conversation.

        Raises:
            GatewayError: conflict, this process does not hold it any more.
            CapacityExceededError: its owner would have more than `max_bytes`, or its conversation
                is full.
        """

        async def transact(connection: AsyncConnection) -> None:
            charged = await connection.scalar(
                select(responses.c.size_bytes).where(self._is_held(leased)).with_for_update()
            )
            if charged is None:
                raise lease_lost_error()
            size = packed.size(leased.input_bytes)
            added = size - charged
            if output is not None and leased.conversation_id:
                added += await self._append(connection, leased, output)
            total = await charge(connection, leased.owner_id, added)
            if max_bytes is not None and total > max_bytes and added > 0:
                raise CapacityExceededError
            await response_rows.write_end(connection, leased.id, leased.owner_id, packed, size)

        await write(self._engine, transact)

    async def _append(
        self, connection: AsyncConnection, leased: LeasedResponse, output: Sequence[ResponseItem]
    ) -> int:
        """Append the input and the output of a response; see `append_of_response`.

        Raises:
            CapacityExceededError: its conversation is full.
        """
        packed_input = await connection.scalar(
            select(contents.c.input).where(contents.c.id == leased.id)
        )
        items = [*(await unpack_items([packed_input or b""])).items, *output]
        try:
            return await response_rows.append_of_response(
                connection,
                leased.owner_id,
                leased.conversation_id,
                items,
                self._clock.now_ms(),
                self.limits.conversations,
            )
        except GatewayError as error:
            if error.reason != errors_pb2.REASON_TOO_LARGE:
                raise
            raise CapacityExceededError from error

    async def renew(self, leased: Collection[LeasedResponse]) -> Collection[LeasedResponse]:
        """Renew the leases of responses; return those that this process still holds."""
        which = and_(
            responses.c.id.in_([lease.id for lease in leased]),
            responses.c.holder == self._holder,
            _IS_RUNNING,
        )
        rows = await write(
            self._engine, lambda connection: self._rows.hold(connection, which), is_lasting=False
        )
        renewed = {row.id for row in rows}
        return [lease for lease in leased if lease.id in renewed]

    async def interrupt(self, leased: LeasedResponse) -> None:
        """Mark a response as interrupted, unless it has ended."""
        await self._end(self._is_held(leased), StoredState.INTERRUPTED)

    async def interrupt_expired(self) -> int:
        """Interrupt all responses whose lease has expired; return their number."""
        return await self._interrupt(self._rows.has_expired())

    async def interrupt_of_process(self, process: str) -> None:
        """Interrupt all responses of a process that has died."""
        await self._interrupt(is_held_by_process(responses.c.holder, _HOLDER, process))

    async def find(
        self,
        owner_id: str,
        response_id: str,
        *,
        with_events: bool = False,
        admit: Admit | None = None,
    ) -> StoredResponse:
        """Return a response.

        `admit` is called with the bytes of a large response before its content is read.

        Raises:
            GatewayError: not_found; as `admit`.
        """
        if admit is not None:
            row = await self._read(
                owner_id, response_id, with_events=with_events, max_bytes=UNCHARGED
            )
            if row.content_bytes > UNCHARGED:
                await admit(row.content_bytes)
                row = await self._read(owner_id, response_id, with_events=with_events)
        else:
            row = await self._read(owner_id, response_id, with_events=with_events)
        if row.state in RUNNING and self._rows.is_expired(row.ends_at_ms):
            await self.interrupt_expired()
            row = await self._read(owner_id, response_id, with_events=with_events)
        return await unpack_response(row, with_events=with_events)

    async def cancel(self, owner_id: str, response_id: str) -> StoredResponse:
        """Cancel a response that has not ended, and return it.

        Raises:
            GatewayError: not_found; invalid_request, it was not generated in the background.
        """
        response = await self.find(owner_id, response_id)
        if not response.background:
            raise not_in_background(response_id)
        await self._end(and_(_is_owned(owner_id, response_id), _IS_RUNNING), StoredState.CANCELLED)
        return await self.find(owner_id, response_id)

    async def delete(self, owner_id: str, response_id: str) -> None:
        """Delete a response.

        Raises:
            GatewayError: not_found.
        """
        which = and_(_is_owned(owner_id, response_id), self._is_alive())
        if not await write(
            self._engine,
            lambda connection: response_rows.delete_responses(connection, which, limit=1),
        ):
            raise not_found(response_id)

    async def delete_expired(self, limit: int) -> int:
        """Delete at most `limit` expired responses; return their number."""
        which = and_(responses.c.expires_at_ms <= self._clock.now_ms(), ~_IS_RUNNING)
        deleted = await write(
            self._engine,
            lambda connection: response_rows.delete_responses(
                connection, which, limit=limit, skip_locked=True
            ),
        )
        return len(deleted)

    async def _new_row(
        self, owner_id: str, new: NewResponse, state: StoredState, *, append: bool = False
    ) -> tuple[NewRow, LeasedResponse]:
        """Return the row of a new response, and its handle.

        Raises:
            GatewayError: too_large.
        """
        packed, packed_input = await PackedContent.of(new.content), await pack_items(new.input)
        origin = new.conversation if new.HasField("conversation") else None
        leased = LeasedResponse(
            self._new_id(PREFIX), owner_id, new.id, len(packed_input), origin.id if origin else ""
        )
        size = packed.size(leased.input_bytes)
        if size > self.limits.max_bytes:
            raise too_large(self.limits.max_bytes)
        is_running = state in RUNNING
        now_ms = self._clock.now_ms()
        row = {
            "id": leased.id,
            "owner_id": owner_id,
            "response_id": new.id,
            "previous_id": new.previous_id,
            "state": state,
            "background": is_running,
            "created_at_ms": now_ms,
            "expires_at_ms": now_ms + int(self.limits.ttl_s * 1000),
            "holder": self._holder if is_running else response_rows.FREE,
            "ends_at_ms": self._rows.ends_at_ms() if is_running else 0,
            "size_bytes": size + (RUN_BYTES if is_running else 0),
        }
        if origin is None:
            return NewRow(row, packed_input, packed), leased
        appended = [*new.input, *new.content.output] if append else ()
        return NewRow(row, packed_input, packed, origin, appended), leased

    def _remember(self, owner_id: str, stored: int) -> None:
        """Cache an owner's stored size for some seconds."""
        if len(self._stored) >= _MAX_KNOWN:
            self._stored.clear()
        self._stored[owner_id] = stored, self._clock.monotonic() + _KNOWN_S

    async def _interrupt(self, which: ColumnElement[bool]) -> int:
        """Interrupt leased responses; without any, nothing is written."""
        query = select(responses.c.id).where(response_rows.IS_HELD, which)
        async with reading_once(self._engine) as connection:
            response_ids = list(await connection.scalars(query))
        ended = 0
        for start in range(0, len(response_ids), _AT_ONCE):
            is_in_batch = responses.c.id.in_(response_ids[start : start + _AT_ONCE])
            ended += await self._end(
                and_(is_in_batch, response_rows.IS_HELD, which), StoredState.INTERRUPTED
            )
        return ended

    async def _end(self, which: ColumnElement[bool], state: StoredState) -> int:
        return await write(
            self._engine, lambda connection: response_rows.end_running(connection, which, state)
        )

    async def _read(
        self, owner_id: str, response_id: str, *, with_events: bool, max_bytes: int | None = None
    ) -> Row[Any]:
        """Return the row of a response; content of more than `max_bytes` bytes is left empty."""
        columns: list[ColumnElement[bytes]] = [contents.c.body, contents.c.output]
        if with_events:
            columns.append(contents.c.events)
        size: ColumnElement[int] = literal(0)
        for column in columns:
            size = size + func.length(column)
        if max_bytes is not None:
            columns = [
                case((size <= max_bytes, column), else_=literal(b"")).label(column.name)
                for column in columns
            ]
        query = (
            select(responses, *columns, size.label("content_bytes"))
            .join(contents, contents.c.id == responses.c.id)
            .where(_is_owned(owner_id, response_id), self._is_alive())
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise not_found(response_id)
        return row

    def _is_alive(self) -> ColumnElement[bool]:
        return or_(responses.c.expires_at_ms > self._clock.now_ms(), _IS_RUNNING)

    def _is_held(self, leased: LeasedResponse) -> ColumnElement[bool]:
        return and_(responses.c.id == leased.id, responses.c.holder == self._holder, _IS_RUNNING)


def _is_owned(owner_id: str, response_id: str) -> ColumnElement[bool]:
    return and_(responses.c.owner_id == owner_id, responses.c.response_id == response_id)
