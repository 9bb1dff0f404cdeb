"""Queries on the index of one memory, for one user, over one connection."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.memory.archive import binary_quantization, bm25f, postings, tables
from services.memory.archive.bm25f import Collection
from services.memory.archive.index import ArchivedTurn

# About how many postings are read for a question; the rarest terms come first.
_MAX_POSTINGS = 30_000
# Turns that each search contributes.
_CANDIDATES = 256


class Lookup:
    """Queries on one memory; each of them checks that the memory is the user's."""

    def __init__(self, connection: AsyncConnection, owner_id: str, entity_id: str) -> None:
        self._connection = connection
        self._owner_id = owner_id
        self._entity_id = entity_id

    async def collection(self) -> Collection | None:
        """Return the size of the archive; None when it is empty."""
        archives = tables.archives
        found = await self._connection.execute(
            self._select(archives, archives.c.turns, archives.c.terms)
        )
        row = found.one_or_none()
        return Collection(row.turns, row.terms) if row and row.turns else None

    async def score_by_terms(
        self,
        terms: Sequence[int],
        collection: Collection,
        *,
        before_turn: int,
        recency: float,
    ) -> dict[int, float]:
        """Return the turns that match terms best, given by their keys, the best first.

        See `bm25f.score_turns`.
        """
        table = tables.postings
        counted = await self._connection.execute(
            self._select(table, table.c.term, func.sum(func.length(table.c.postings)))
            .where(table.c.term.in_(terms))
            .group_by(table.c.term)
        )
        found = {term: int(size) // postings.SIZE for term, size in counted}
        chosen = postings.select_rarest(found, _MAX_POSTINGS)
        blocks = defaultdict[int, list[bytes]](list)
        read = await self._connection.execute(
            self._select(table, table.c.term, table.c.postings).where(table.c.term.in_(chosen))
        )
        for term, block in read:
            blocks[term].append(block)
        # In a thread, like everything with numpy, whose import takes a tenth of a second.
        return await asyncio.to_thread(
            bm25f.score_turns,
            [blocks[term] for term in chosen],
            collection,
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
        signed, kept = tables.signatures, tables.vectors
        blocks = await self._connection.scalars(
            self._select(signed, signed.c.signatures)
            .where(signed.c.model == model, signed.c.dimensions == len(values))
            .order_by(signed.c.block)
        )
        near = await asyncio.to_thread(
            binary_quantization.nearest_by_hamming,
            list(blocks),
            values,
            before_turn=before_turn,
            most=_CANDIDATES,
        )
        vectors = await self._connection.execute(
            self._select(kept, kept.c.turn, kept.c.vector)
            .where(kept.c.model == model, kept.c.turn.in_({*near, *among}))
            .order_by(kept.c.turn)
        )
        packed = {turn: vector for turn, vector in vectors}
        return await asyncio.to_thread(binary_quantization.cosine_similarities, packed, values)

    async def known(self, turns: Iterable[int]) -> set[int]:
        """Return which of some turns are archived."""
        table = tables.turns
        there = self._select(table, table.c.turn).where(table.c.turn.in_(list(turns)))
        return set(await self._connection.scalars(there))

    async def archived(self, turns: Iterable[int]) -> dict[int, ArchivedTurn]:
        """Return archived turns by their numbers."""
        table = tables.turns
        found = await self._connection.execute(
            self._select(table, table.c.turn, table.c.text, table.c.created_at_ms).where(
                table.c.turn.in_(list(turns))
            )
        )
        return {row.turn: ArchivedTurn(*row) for row in found}

    async def without_vectors(
        self, model: str, *, after_turn: int, limit: int
    ) -> list[ArchivedTurn]:
        """Return the first turns after one that have no vector of a model."""
        table, vectors = tables.turns, tables.vectors
        has = select(vectors.c.turn).where(
            vectors.c.entity_id == table.c.entity_id,
            vectors.c.model == model,
            vectors.c.turn == table.c.turn,
        )
        found = await self._connection.execute(
            self._select(table, table.c.turn, table.c.text, table.c.created_at_ms)
            .where(table.c.turn > after_turn, ~has.exists())
            .order_by(table.c.turn)
            .limit(limit)
        )
        return [ArchivedTurn(*row) for row in found]

    def _select(self, table: Table, *columns: Any) -> Select[Any]:
        archives = tables.archives
        query = select(*columns).where(
            archives.c.entity_id == self._entity_id, archives.c.owner_id == self._owner_id
        )
        if table is archives:
            return query
        return query.where(table.c.entity_id == archives.c.entity_id)
