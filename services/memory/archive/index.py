"""Changes to the index of archived turns, in the caller's transaction."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    ColumnElement,
    Row,
    Table,
    and_,
    cast,
    delete,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.process.offload import offload_if
from services.common.storage.database import execute_many, insert_if_absent, insert_into
from services.memory.archive import binary_quantization, dates, postings, words
from services.memory.storage import tables

# Characters of a turn that are stored and indexed, from its beginning: about 5,000 tokens, more
# than twice the budget of a search.
MAX_TEXT = 20_000
# Terms whose postings are read at once.
_TERMS_AT_ONCE = 500
# The tables of an archive, each before those that it refers to.
_ARCHIVE = (tables.signatures, tables.postings, tables.vectors, tables.archived_turns)


class ArchivedTurn(NamedTuple):
    """A turn to archive.

    Attributes:
        number: number of the turn, below 2³².
        text: the text of user and assistant.
        created_at_ms: Unix milliseconds; 0 for text without a date.
        terms: how often each term of the text is in it; None until they are needed.
    """

    number: int
    text: str
    created_at_ms: int
    terms: Counter[str] | None = None

    def with_terms(self) -> Self:
        """Return the turn with its terms; stemming those of a few turns may take 0.1 s."""
        return self if self.terms else self._replace(terms=Counter(words.terms(_kept(self.text))))


async def add(
    connection: AsyncConnection, owner_id: str, entity_id: str, turns: Sequence[ArchivedTurn]
) -> None:
    """Index turns; turns that are indexed already are skipped.

    The text of a turn is truncated to `MAX_TEXT`; NUL becomes U+FFFD, since PostgreSQL refuses
    NUL.

    Raises:
        ValueError: the memory is another user's.
    """
    archives = tables.archives
    empty = {"entity_id": entity_id, "owner_id": owner_id, "turns": 0, "terms": 0, "epoch": 0}
    await insert_if_absent(connection, archives, empty)
    if await _lock_archive(connection, entity_id) != owner_id:
        raise ValueError(f"{entity_id} belongs to another user")
    numbers = [turn.number for turn in turns]
    there = await connection.scalars(
        _select(tables.archived_turns, entity_id, tables.archived_turns.c.turn).where(
            tables.archived_turns.c.turn.in_(numbers)
        )
    )
    known = set(there)
    new = sorted({turn.number: turn for turn in turns if turn.number not in known}.values())
    if not new:
        return
    rows, blocks = await offload_if(True, _index_rows, entity_id, new)
    await connection.execute(insert_into(connection, tables.archived_turns), rows)
    await _append_to_blocks(connection, tables.postings.c.postings, blocks)
    await connection.execute(
        update(archives)
        .where(archives.c.entity_id == entity_id)
        .values(
            turns=archives.c.turns + len(rows),
            terms=archives.c.terms + sum(row["terms"] for row in rows),
        )
    )


def _kept(text: str) -> str:
    """Return what is stored of the text of a turn."""
    return text[:MAX_TEXT].replace("\0", "\ufffd")


def _index_rows(
    entity_id: str, turns: Sequence[ArchivedTurn]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of turns, given in ascending order, and of their postings."""
    rows: list[dict[str, Any]] = []
    packed = defaultdict[tuple[int, int], bytes](bytes)
    for turn in turns:
        counts = Counter(turn.with_terms().terms)
        length = counts.total()
        if turn.created_at_ms:
            counts.update(dates.date_terms(turn.created_at_ms))
        for term, count in counts.items():
            place = words.term_key(term), turn.number // postings.BLOCK
            packed[place] += postings.pack(turn.number, count, length)
        rows.append(
            {
                "entity_id": entity_id,
                "turn": turn.number,
                "created_at_ms": turn.created_at_ms,
                "terms": length,
                "text": _kept(turn.text),
            }
        )
    blocks = [
        {"entity_id": entity_id, "term": term, "block": block, "postings": held}
        for (term, block), held in sorted(packed.items())
    ]
    return rows, blocks


async def add_vectors(
    connection: AsyncConnection,
    entity_id: str,
    model: str,
    vectors: Mapping[int, Sequence[float]],
) -> None:
    """Store the vectors of an embedding model for archived turns, by their numbers.

    Turns that are not archived, or already have a vector of that model, are skipped.
    """
    await _lock_archive(connection, entity_id)
    archived, kept = tables.archived_turns.c.turn, tables.vectors.c
    known = _select(tables.vectors, entity_id, kept.turn).where(kept.model == model)
    there = await connection.scalars(
        _select(tables.archived_turns, entity_id, archived)
        .where(archived.in_(list(vectors)), archived.not_in(known))
        .order_by(archived)
    )
    missing = {turn: vectors[turn] for turn in there}
    if not missing:
        return
    rows, blocks = await offload_if(True, _vector_rows, entity_id, model, missing)
    await connection.execute(insert_into(connection, tables.vectors), rows)
    await _append_to_blocks(connection, tables.signatures.c.signatures, blocks)


def _vector_rows(
    entity_id: str, model: str, vectors: Mapping[int, Sequence[float]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of vectors, and of the blocks of quantized vectors."""
    ids = {"entity_id": entity_id, "model": model}
    rows: list[dict[str, Any]] = []
    signed = defaultdict[tuple[int, int], bytes](bytes)
    for turn, values in vectors.items():
        vector = binary_quantization.pack(values)
        rows.append({**ids, "turn": turn, "vector": vector})
        place = len(values), turn // postings.BLOCK
        signed[place] += binary_quantization.quantize(turn, vector)
    blocks = [
        {**ids, "dimensions": dimensions, "block": block, "signatures": held}
        for (dimensions, block), held in sorted(signed.items())
    ]
    return rows, blocks


async def remove_from(connection: AsyncConnection, entity_id: str, first_turn: int) -> None:
    """Remove a turn and all later ones."""
    await _lock_archive(connection, entity_id)
    gone = tables.archived_turns.c.turn >= first_turn
    counted = await connection.execute(
        _select(
            tables.archived_turns, entity_id, func.count(), func.sum(tables.archived_turns.c.terms)
        ).where(gone)
    )
    turns, terms = counted.one()
    if not turns:
        return
    await connection.execute(
        _delete(tables.vectors, entity_id, tables.vectors.c.turn >= first_turn)
    )
    await connection.execute(_delete(tables.archived_turns, entity_id, gone))
    cut = connection, entity_id, first_turn
    await _truncate_blocks(*cut, tables.postings.c.postings, _posting_size)
    await _truncate_blocks(*cut, tables.signatures.c.signatures, _signature_size)
    await _count_removed(connection, entity_id, turns, terms)


async def remove_between(
    connection: AsyncConnection, entity_id: str, first_turn: int, end: int, most: int
) -> int:
    """Remove the first `most` turns from `first_turn` on, below `end`; return how many there were.

    The terms of their texts say which postings are changed, so that no others are read.
    """
    await _lock_archive(connection, entity_id)
    archived = tables.archived_turns.c
    query = _select(
        tables.archived_turns, entity_id, archived.turn, archived.text, archived.created_at_ms
    ).where(archived.turn >= first_turn, archived.turn < end)
    found = (await connection.execute(query.order_by(archived.turn).limit(most))).all()
    if not found:
        return 0
    rows, blocks = await offload_if(
        True, _index_rows, entity_id, [ArchivedTurn(*row) for row in found]
    )
    gone = frozenset(row["turn"] for row in rows)
    for table in (tables.vectors, tables.archived_turns):
        await connection.execute(_delete(table, entity_id, table.c.turn.in_(gone)))
    kept = tables.postings.c
    terms = sorted({block["term"] for block in blocks})
    is_changed = kept.block.in_({block["block"] for block in blocks})
    for start in range(0, len(terms), _TERMS_AT_ONCE):
        which = and_(is_changed, kept.term.in_(terms[start : start + _TERMS_AT_ONCE]))
        await _filter_blocks(connection, entity_id, kept.postings, which, gone, _posting_size)
    signed = tables.signatures.c
    which = signed.block.in_({turn // postings.BLOCK for turn in gone})
    await _filter_blocks(connection, entity_id, signed.signatures, which, gone, _signature_size)
    await _count_removed(connection, entity_id, len(rows), sum(row["terms"] for row in rows))
    return len(rows)


async def remove_part(connection: AsyncConnection, entity_id: str, most: int) -> int:
    """Remove up to `most` rows of an archive; return how many there were, 0 at its end."""
    for table in (*_ARCHIVE, tables.archives):
        keys = list(table.primary_key.columns)
        some = _select(table, entity_id, *keys).order_by(*keys).limit(most)
        gone = await connection.execute(_delete(table, entity_id, tuple_(*keys).in_(some)))
        if gone.rowcount:
            return gone.rowcount
    return 0


async def remove(connection: AsyncConnection, entity_id: str) -> None:
    """Remove the archive of a memory."""
    for table in (*_ARCHIVE, tables.archives):
        await connection.execute(_delete(table, entity_id))


async def _lock_archive(connection: AsyncConnection, entity_id: str) -> str | None:
    """Lock an archive until the transaction ends; return its owner's id."""
    owner_id: str | None = await connection.scalar(
        _select(tables.archives, entity_id, tables.archives.c.owner_id).with_for_update()
    )
    return owner_id


async def _append_to_blocks(
    connection: AsyncConnection, packed: Any, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Append records to the blocks that they belong to."""
    table = packed.table
    statement = insert_into(connection, table)
    both = packed.op("||")(statement.excluded[packed.name])
    # In SQLite the operator || returns text.
    joined = {packed.name: cast(both, packed.type)}
    appending = statement.on_conflict_do_update(
        index_elements=table.primary_key.columns, set_=joined
    )
    await execute_many(connection, appending, rows)


async def _truncate_blocks(
    connection: AsyncConnection,
    entity_id: str,
    first_turn: int,
    packed: Any,
    size: Callable[[Row[Any]], int],
) -> None:
    """Delete the records of a turn and later ones; `size` returns the size of a row's records."""
    table, block = packed.table, first_turn // postings.BLOCK
    last = _select(table, entity_id, table).where(table.c.block == block)
    rows = (await connection.execute(last)).all()
    await connection.execute(_delete(table, entity_id, table.c.block >= block))
    shortened = []
    for row in rows:
        if records := postings.keep_before(row._mapping[packed.name], first_turn, size(row)):
            shortened.append(dict(row._mapping) | {packed.name: records})
    if shortened:
        await connection.execute(insert_into(connection, table), shortened)


async def _filter_blocks(
    connection: AsyncConnection,
    entity_id: str,
    packed: Any,
    which: ColumnElement[bool],
    gone: Set[int],
    size: Callable[[Row[Any]], int],
) -> None:
    """Delete the records of some turns from blocks; `size` returns the size of a row's records."""
    table = packed.table
    keys = list(table.primary_key.columns)
    for row in (await connection.execute(_select(table, entity_id, table).where(which))).all():
        records = row._mapping[packed.name]
        remaining = postings.without(records, gone, size(row))
        if len(remaining) == len(records):
            continue
        is_row = and_(*(key == row._mapping[key.name] for key in keys))
        change = update(table).values({packed.name: remaining}) if remaining else delete(table)
        await connection.execute(change.where(is_row))


def _posting_size(row: Row[Any]) -> int:
    return postings.SIZE


def _signature_size(row: Row[Any]) -> int:
    return binary_quantization.record_size(row.dimensions)


async def _count_removed(
    connection: AsyncConnection, entity_id: str, turns: int, terms: int
) -> None:
    """Subtract removed turns and their terms from the counts of an archive."""
    archives = tables.archives.c
    await connection.execute(
        update(tables.archives)
        .where(archives.entity_id == entity_id)
        .values(turns=archives.turns - turns, terms=archives.terms - terms)
        .values(epoch=archives.epoch + 1)
    )


def _select(table: Table, entity_id: str, *columns: Any) -> Any:
    return select(*columns).where(table.c.entity_id == entity_id)


def _delete(table: Table, entity_id: str, *where: Any) -> Any:
    return delete(table).where(table.c.entity_id == entity_id, *where)
