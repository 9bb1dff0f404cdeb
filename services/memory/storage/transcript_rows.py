"""The stored transcript of a memory: rows with parts of turns, and rows with message keys.

Functions that change it require that the caller has locked the memory's row in the transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    LargeBinary,
    bindparam,
    cast,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.memory.v1.memory_pb2 import Turn
from services.common.process.offload import offload_if
from services.common.storage.database import execute_many
from services.memory.storage.memory_records import CONTENT_FACTOR
from services.memory.storage.messages import KEY_SIZE, message_key
from services.memory.storage.stored_turns import StoredTurn, have_many_messages, pending_call_ids
from services.memory.storage.tables import keys, parts

# Bytes charged for a part and for each of its messages besides the content: the row and the keys.
_PART_BYTES = 512
_MESSAGE_BYTES = 64
# Bytes of memory charged for each byte of content that is read: the row, the messages, the context
# made of them, their copies in the request, and the body that is sent to a provider.
TURN_COST = 6

# Keys in a row. A memory of 100,000 turns has some 200 rows, and a commit writes one or two.
CHUNK = 1024

# Built once: that takes longer than to execute them.
_LIVE = (parts.c.entity_id == bindparam("of_memory")) & parts.c.superseded_at_ms.is_(None)
_OF_TURNS = _LIVE & parts.c.turn.between(bindparam("first_turn"), bindparam("last_turn"))
_TURNS = select(parts).where(_OF_TURNS).order_by(parts.c.turn, parts.c.first_message)
_SIZE_OF_TURNS = select(func.coalesce(func.sum(func.length(parts.c.content)), 0)).where(_OF_TURNS)
_PART_OF = (
    select(parts)
    .where(_LIVE, parts.c.first_message <= bindparam("message"))
    .order_by(parts.c.first_message.desc())
    .limit(1)
)
_OF_TURN = _LIVE & (parts.c.turn == bindparam("number"))
_SET_OPEN = (
    update(parts)
    .where(
        _OF_TURN,
        parts.c.first_message
        == select(func.max(parts.c.first_message)).where(_OF_TURN).scalar_subquery(),
        parts.c.open != bindparam("is_open"),
    )
    .values(open=bindparam("is_open"))
)
_INSERT_PARTS = insert(parts)
_INSERT_KEYS = insert(keys)
_LENGTHEN_KEYS = (
    update(keys)
    .where(keys.c.entity_id == bindparam("of_memory"), keys.c.chunk == bindparam("in_chunk"))
    # In SQLite the operator || returns text.
    .values(packed=cast(keys.c.packed.op("||")(bindparam("added", type_=LargeBinary)), LargeBinary))
)


async def measure_turns(connection: AsyncConnection, entity_id: str, first: int, last: int) -> int:
    """Return the bytes of the live turns from `first` to `last`, both included."""
    return await _measure(connection, entity_id, first, last)


async def measure_turn_of(connection: AsyncConnection, entity_id: str, message: int) -> int:
    """Return the bytes of the live turn that contains a message of the transcript."""
    part = (
        await connection.execute(_PART_OF, {"of_memory": entity_id, "message": message})
    ).one_or_none()
    if part is None:
        return 0
    return await _measure(connection, entity_id, part.turn, part.turn)


async def read_turns(
    connection: AsyncConnection, entity_id: str, first: int, last: int
) -> list[StoredTurn]:
    """Return the live turns from `first` to `last`, both included, in order."""
    return await _read(connection, entity_id, first, last)


async def read_turn_of(
    connection: AsyncConnection, entity_id: str, message: int
) -> StoredTurn | None:
    """Return the live turn that contains a message of the transcript; None past its end."""
    part = (
        await connection.execute(_PART_OF, {"of_memory": entity_id, "message": message})
    ).one_or_none()
    if part is None or part.first_message + part.messages <= message:
        return None
    turns = await _read(connection, entity_id, part.turn, part.turn)
    return turns[0]


async def append(
    connection: AsyncConnection,
    entity_id: str,
    epoch: int,
    length: int,
    turns: Iterable[StoredTurn],
) -> tuple[int, int]:
    """Append to a transcript of `length` messages those messages of turns that follow them.

    Returns:
        The new count of messages in the transcript, and the bytes charged for the appended ones.
    """
    turns = list(turns)
    for turn in turns:
        if not turn.messages[length - turn.first_message :]:
            await _set_open(connection, entity_id, turn.number, turn.open)
    rows, added = await offload_if(
        have_many_messages(turns), _part_rows, entity_id, epoch, length, turns
    )
    if rows:
        await execute_many(connection, _INSERT_PARTS, rows)
        await _append_keys(connection, entity_id, length, added)
    return length + sum(row["messages"] for row in rows), sum(map(_size, rows))


def _part_rows(
    entity_id: str, epoch: int, length: int, turns: Iterable[StoredTurn]
) -> tuple[list[dict[str, Any]], bytes]:
    """Return the rows and the keys of the messages that turns add after the first `length`."""
    at = length
    rows: list[dict[str, Any]] = []
    added = bytearray()
    for turn in turns:
        new = turn.messages[at - turn.first_message :]
        if not new:
            continue
        rows.append(
            {
                "entity_id": entity_id,
                "first_message": at,
                "epoch": epoch,
                "messages": len(new),
                "turn": turn.number,
                "created_at_ms": turn.created_at_ms,
                "open": turn.open,
                "content": Turn(messages=new).SerializeToString(),
            }
        )
        added += b"".join(map(message_key, new))
        at += len(new)
    return rows, bytes(added)


async def truncate(
    connection: AsyncConnection, entity_id: str, epoch: int, length: int, now_ms: int
) -> tuple[int, int, int]:
    """Supersede all messages after the first `length`; there has to be at least one.

    A part that is cut in two is superseded too, and its beginning is written as a part of the new
    epoch.

    Returns:
        The number of the turn that contains the first removed message, the number of the last turn
        after the cut, and the bytes charged for the part that was written.
    """
    cut_part = (
        await connection.execute(_PART_OF, {"of_memory": entity_id, "message": length})
    ).one()
    await connection.execute(
        update(parts)
        .where(_LIVE, parts.c.first_message >= cut_part.first_message)
        .values(superseded_at_ms=now_ms),
        {"of_memory": entity_id},
    )
    size = 0
    kept = Turn.FromString(cut_part.content).messages[: length - cut_part.first_message]
    if kept:
        beginning = {
            **cut_part._mapping,
            "epoch": epoch,
            "messages": len(kept),
            "content": Turn(messages=kept).SerializeToString(),
        }
        await connection.execute(insert(parts).values(beginning))
        size = _size(beginning)
    await _cut_keys(connection, entity_id, length)
    last = (
        await connection.execute(_PART_OF, {"of_memory": entity_id, "message": length - 1})
    ).one_or_none()
    if last is None:
        return cut_part.turn, 0, size
    if last.turn == cut_part.turn:
        [left] = await read_turns(connection, entity_id, last.turn, last.turn)
        await _set_open(connection, entity_id, last.turn, bool(pending_call_ids(left.messages)))
    return cut_part.turn, last.turn, size


async def read_last_key(connection: AsyncConnection, entity_id: str, length: int) -> bytes:
    """Return the key of the last of `length` messages; `length` is at least 1."""
    chunk, place = divmod(length - 1, CHUNK)
    key = func.substr(keys.c.packed, place * KEY_SIZE + 1, KEY_SIZE)
    last_key: bytes | None = await connection.scalar(
        select(cast(key, LargeBinary)).where(keys.c.entity_id == entity_id, keys.c.chunk == chunk)
    )
    return last_key or b""


async def read_keys(connection: AsyncConnection, entity_id: str) -> bytes:
    """Return the keys of all messages, `KEY_SIZE` bytes each."""
    chunks = await connection.scalars(
        select(keys.c.packed).where(keys.c.entity_id == entity_id).order_by(keys.c.chunk)
    )
    return b"".join(chunks)


async def delete_transcript(connection: AsyncConnection, entity_id: str) -> None:
    """Erase the transcript of a memory."""
    await connection.execute(delete(keys).where(keys.c.entity_id == entity_id))
    await connection.execute(delete(parts).where(parts.c.entity_id == entity_id))


def _size(part: Mapping[str, Any]) -> int:
    """Return the bytes charged for a part."""
    return (
        _PART_BYTES + _MESSAGE_BYTES * int(part["messages"]) + CONTENT_FACTOR * len(part["content"])
    )


async def _measure(connection: AsyncConnection, entity_id: str, first: int, last: int) -> int:
    size = await connection.scalar(_SIZE_OF_TURNS, _turns(entity_id, first, last))
    return int(size or 0)


def _turns(entity_id: str, first: int, last: int) -> Mapping[str, Any]:
    """Return the parameters of statements about the turns from `first` to `last`."""
    return {"of_memory": entity_id, "first_turn": first, "last_turn": last}


async def _read(
    connection: AsyncConnection, entity_id: str, first: int, last: int
) -> list[StoredTurn]:
    rows = await connection.execute(_TURNS, _turns(entity_id, first, last))
    return [_to_turn(list(group)) for _, group in groupby(rows.all(), attrgetter("turn"))]


def _to_turn(rows: Sequence[Any]) -> StoredTurn:
    return StoredTurn(
        number=rows[0].turn,
        messages=tuple(
            message for row in rows for message in Turn.FromString(row.content).messages
        ),
        created_at_ms=rows[0].created_at_ms,
        open=rows[-1].open,
        first_message=rows[0].first_message,
    )


async def _set_open(
    connection: AsyncConnection, entity_id: str, number: int, is_open: bool
) -> None:
    """Record in the last part of a turn whether tool results are pending."""
    await connection.execute(
        _SET_OPEN, {"of_memory": entity_id, "number": number, "is_open": is_open}
    )


async def _append_keys(
    connection: AsyncConnection, entity_id: str, length: int, added: bytes
) -> None:
    chunk, filled = divmod(length, CHUNK)
    if filled:
        fitting = (CHUNK - filled) * KEY_SIZE
        await connection.execute(
            _LENGTHEN_KEYS,
            {"of_memory": entity_id, "in_chunk": chunk, "added": added[:fitting]},
        )
        added, chunk = added[fitting:], chunk + 1
    size = CHUNK * KEY_SIZE
    rows = [
        {"entity_id": entity_id, "chunk": chunk + at // size, "packed": added[at : at + size]}
        for at in range(0, len(added), size)
    ]
    if rows:
        await connection.execute(_INSERT_KEYS, rows)


async def _cut_keys(connection: AsyncConnection, entity_id: str, length: int) -> None:
    chunk, filled = divmod(length, CHUNK)
    behind = keys.c.chunk >= chunk + bool(filled)
    await connection.execute(delete(keys).where(keys.c.entity_id == entity_id, behind))
    if filled:
        await connection.execute(
            update(keys)
            .where(keys.c.entity_id == entity_id, keys.c.chunk == chunk)
            .values(packed=func.substr(keys.c.packed, 1, filled * KEY_SIZE))
        )
