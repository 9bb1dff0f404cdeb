"""Queries on the index of one memory, for one user, over one connection."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, Table, Text, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from services.memory.archive import binary_quantization, bm25f, postings
from services.memory.archive.bm25f import Collection
from services.memory.archive.index import ArchivedTurn
from services.memory.archive.signature_cache import SignatureCache, Version
from services.memory.storage import tables

# About how many postings are read for a question; the rarest terms come first.
_MAX_POSTINGS = 30_000
# Turns that each search contributes. With 256 vectors find more (.835 for .823 of what the embedded
# model is asked for), but one question of 36 across languages less, for a tenth more of CPU time.
_CANDIDATES = 128


class _IsAmong(FunctionElement[bool]):
    """Whether a number is in a JSON array: a parameter for each takes longer than to read."""

    inherit_cache = True


@compiles(_IsAmong)
def _compile_is_among(element: _IsAmong, compiler: SQLCompiler, **options: Any) -> str:
    number, array = (compiler.process(clause, **options) for clause in element.clauses)
    if compiler.dialect.name == "postgresql":
        return f"{number} = ANY (CAST(translate({array}, '[]', '{{}}') AS BIGINT[]))"
    return f"{number} IN (SELECT value FROM json_each({array}))"


def _select(table: Table, *columns: Any) -> Select[Any]:
    """Return a SELECT of rows of a memory, if that is the user's."""
    archives = tables.archives
    return select(*columns).where(
        archives.c.entity_id == bindparam("entity_id"),
        archives.c.owner_id == bindparam("owner_id"),
        table.c.entity_id == archives.c.entity_id,
    )


# The queries are made once: to make one takes as long as to execute it.
_turns, _postings = tables.archived_turns.c, tables.postings.c
_vectors, _signatures = tables.vectors.c, tables.signatures.c
_ARCHIVED = _select(tables.archived_turns, _turns.turn, _turns.text, _turns.created_at_ms)
_POSTINGS_OF = _IsAmong(_postings.term, bindparam("terms", type_=Text))
_COUNTS = (
    _select(
        tables.postings,
        _postings.term,
        func.sum(func.length(_postings.postings)).label("size"),
        # The same in all rows.
        func.max(tables.archives.c.turns).label("turns"),
        func.max(tables.archives.c.terms).label("terms"),
    )
    .where(_POSTINGS_OF)
    .group_by(_postings.term)
)
_BLOCKS = _select(tables.postings, _postings.term, _postings.postings).where(_POSTINGS_OF)
_SIGNATURES = (
    _select(tables.signatures, _signatures.signatures)
    .where(
        _signatures.model == bindparam("model"),
        _signatures.dimensions == bindparam("dimensions"),
    )
    .order_by(_signatures.block)
)
# See `signature_cache.Version`.
_VERSION = _select(tables.archives, tables.memories.c.epoch, tables.archives.c.turns).outerjoin(
    tables.memories, tables.memories.c.id == tables.archives.c.entity_id
)
_VECTORS = _select(tables.vectors, _vectors.turn, _vectors.vector).where(
    _vectors.model == bindparam("model"), _IsAmong(_vectors.turn, bindparam("turns", type_=Text))
)
_TURNS = _ARCHIVED.where(_IsAmong(_turns.turn, bindparam("turns", type_=Text)))
_WITHOUT_VECTORS = (
    _ARCHIVED.where(
        _turns.turn > bindparam("after_turn"),
        ~select(_vectors.turn)
        .where(
            _vectors.entity_id == _turns.entity_id,
            _vectors.model == bindparam("model"),
            _vectors.turn == _turns.turn,
        )
        .exists(),
    )
    .order_by(_turns.turn)
    .limit(bindparam("limit"))
)


class Lookup:
    """Queries on one memory; each of them checks that the memory is the user's."""

    def __init__(
        self, connection: AsyncConnection, owner_id: str, entity_id: str, cache: SignatureCache
    ) -> None:
        self._connection = connection
        self._cache = cache
        self._memory = {"owner_id": owner_id, "entity_id": entity_id}

    async def score_by_terms(
        self, terms: Sequence[int], *, before_turn: int, recency: float
    ) -> dict[int, float]:
        """Return the turns that match terms best, given by their keys, the best first.

        See `bm25f.score_turns`.
        """
        counted = await self._rows(_COUNTS, terms=json.dumps(terms))
        if not counted:
            return {}
        sizes = {row.term: int(row.size) // postings.SIZE for row in counted}
        chosen = postings.select_rarest(sizes, _MAX_POSTINGS)
        blocks = defaultdict[int, list[bytes]](list)
        for term, block in await self._rows(_BLOCKS, terms=json.dumps(chosen)):
            blocks[term].append(block)
        # In a thread, like everything with numpy, whose import takes a tenth of a second.
        return await asyncio.to_thread(
            bm25f.score_turns,
            [blocks[term] for term in chosen],
            Collection(counted[0].turns, counted[0].terms),
            before_turn=before_turn,
            recency=recency,
            most=_CANDIDATES,
        )

    async def score_by_vector(
        self, model: str, values: Sequence[float], among: Iterable[int], *, before_turn: int
    ) -> dict[int, float]:
        """Return the cosine similarities of turns to a vector of the same model.

        Those of the nearest turns, and of the turns `among` which more are wanted.
        """
        near = await asyncio.to_thread(
            binary_quantization.nearest_by_hamming,
            await self._quantized(model, len(values)),
            values,
            before_turn=before_turn,
            most=_CANDIDATES,
        )
        vectors = await self._rows(_VECTORS, model=model, turns=json.dumps(sorted({*near, *among})))
        packed = {turn: vector for turn, vector in vectors}
        return await asyncio.to_thread(binary_quantization.cosine_similarities, packed, values)

    async def _quantized(self, model: str, dimensions: int) -> Sequence[bytes]:
        """Return the quantized vectors of a model, as `binary_quantization.transpose` does."""
        key = self._memory["entity_id"], model, dimensions
        found = [Version(*row) for row in await self._rows(_VERSION)]
        columns = self._cache.get(key, found[0]) if found else None
        if columns is None:
            rows = await self._rows(_SIGNATURES, model=model, dimensions=dimensions)
            blocks = [block for (block,) in rows]
            columns = await asyncio.to_thread(binary_quantization.transpose, blocks, dimensions)
            # Else vectors may still be added to the same turns.
            if found and len(columns[0]) // 8 == found[0].turns:
                self._cache.put(key, found[0], columns)
        return columns

    async def archived(self, turns: Sequence[int], limit: int) -> list[ArchivedTurn]:
        """Return the first of some turns that are archived, in their order.

        A turn without text is not, though its neighbours may reach it.
        """
        found: list[ArchivedTurn] = []
        for first in range(0, len(turns), limit):
            batch = turns[first : first + limit]
            rows = await self._rows(_TURNS, turns=json.dumps(batch))
            by_number = {row.turn: ArchivedTurn(*row) for row in rows}
            found += [by_number[turn] for turn in batch if turn in by_number]
            if len(found) >= limit:
                break
        return found[:limit]

    async def without_vectors(
        self, model: str, *, after_turn: int, limit: int
    ) -> list[ArchivedTurn]:
        """Return the first turns after one that have no vector of a model."""
        rows = await self._rows(_WITHOUT_VECTORS, model=model, after_turn=after_turn, limit=limit)
        return [ArchivedTurn(*row) for row in rows]

    async def _rows(self, query: Select[Any], **values: Any) -> Sequence[Any]:
        found = await self._connection.execute(query, {**self._memory, **values})
        rows: Sequence[Any] = found.all()
        return rows
