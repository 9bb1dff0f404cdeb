"""Stores responses that have ended; calls that wait at the same time share a transaction.

The statements and the fsync of a transaction cost as much for many responses as for one.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.storage.database import write
from services.responses.records import ResponseLimits, storage_exceeded, taken
from services.responses.response_chain import extend_expiry
from services.responses.response_rows import NewRow, insert_responses

_BATCH = 64
_BATCH_BYTES = 8 << 20


@dataclass(eq=False, slots=True)
class _Call:
    """A call that waits for a transaction."""

    new: NewRow
    max_bytes: int
    stored: "asyncio.Future[int]"


class _StorageError(Exception):
    """Error raised when responses exceed a quota together; each alone may fit."""


class ResponseCommitter:
    """Stores responses of one process.

    Args:
        engine: the database.
        limits: the bounds of conversations.
    """

    def __init__(self, engine: AsyncEngine, limits: ResponseLimits) -> None:
        self._engine = engine
        self._limits = limits
        self._waiting: deque[_Call] = deque()
        self._working: asyncio.Task[None] | None = None

    async def store(self, new: NewRow, max_bytes: int) -> int:
        """Store a response; return the new stored size of its owner, in bytes.

        The response is durable when this returns. Cancelling the caller does not stop the write.

        Raises:
            GatewayError: conflict, the owner has a response of that id; memory_storage_exceeded;
                unavailable, when the database does not answer.
        """
        call = _Call(new, max_bytes, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if self._working is None:
            # Of no user: a transaction has the responses of several.
            self._working = asyncio.create_task(self._work(), context=Context())
        return await asyncio.shield(call.stored)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._store_all(self._next())
        finally:
            self._working = None

    def _next(self) -> list[_Call]:
        """Return the calls of the next transaction."""
        batch = [self._waiting.popleft()]
        size = batch[0].new.row["size_bytes"]
        while self._waiting and len(batch) < _BATCH:
            size += self._waiting[0].new.row["size_bytes"]
            if size > _BATCH_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _store_all(self, batch: Sequence[_Call]) -> None:
        try:
            totals = await self._insert(batch)
        except (DBAPIError, GatewayError, _StorageError) as error:
            if len(batch) == 1 or _is_of_all(error):
                for call in batch:
                    _fail(call, _reason(error, call))
                return
            # One response is refused: the others are stored in transactions of their own.
            for call in batch:
                await self._store_all([call])
        except Exception as error:
            for call in batch:
                _fail(call, error)
        else:
            for call, total in zip(batch, totals, strict=True):
                call.stored.set_result(total)

    async def _insert(self, batch: Sequence[_Call]) -> Sequence[int]:
        async def insert(connection: AsyncConnection) -> Sequence[int]:
            for call in batch:
                row = call.new.row
                if row["previous_id"]:
                    await extend_expiry(
                        connection, row["owner_id"], row["previous_id"], row, self._limits
                    )
            charged = await insert_responses(
                connection, [call.new for call in batch], self._limits.conversations
            )
            totals = [charged[call.new.row["owner_id"]] for call in batch]
            if any(total > call.max_bytes for call, total in zip(batch, totals, strict=True)):
                raise _StorageError
            return totals

        return await write(self._engine, insert)


def _is_of_all(error: Exception) -> bool:
    """Return whether an error concerns all responses of a transaction."""
    return isinstance(error, GatewayError) and error.reason != errors_pb2.REASON_TOO_LARGE


def _reason(error: Exception, call: _Call) -> Exception:
    """Return the error for the caller of a refused response."""
    if isinstance(error, IntegrityError):
        return taken()
    return storage_exceeded(call.max_bytes) if isinstance(error, _StorageError) else error


def _fail(call: _Call, error: Exception) -> None:
    call.stored.set_exception(error)
    if not isinstance(error, GatewayError):
        return
    # Mark the exception as retrieved: a cancelled caller does not await it.
    call.stored.exception()
