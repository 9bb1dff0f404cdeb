"""Queries on the index of one memory, for one user, over one connection."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, Table, Text, bindparam, cast, func, over, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from services.common.storage.database_threads import Compute
from services.memory.archive import binary_quantization, bm25f, postings
from services.memory.archive.bm25f import Collection
from services.memory.archive.index import ArchivedTurn
from services.memory.archive.signature_cache import SignatureCache, Version
from services.memory.storage import tables

# Bytes of the postings that are read for a question: those of the rarest terms.
_MAX_POSTINGS = 30_000 * postings.SIZE
# Turns that each search contributes. With 256 the vectors of the embedded model have a recall of
# .835 instead of .823, but miss one more of 36 questions across languages, at 10 % more CPU time.
_CANDIDATES = 128

# An embedding model, and a vector made by it.
_Vector = tuple[str, Sequence[float]]
# Ranges of turns, in ascending order; see `top_k.are_within`.
Ranges = Sequence[tuple[int, int]]
# Above the numbers of all turns.
ALL_TURNS = 1 << 32


class Scores(NamedTuple):
    """The scores of turns by words, and their cosine similarities to a vector."""

    lexical: Mapping[int, float]
    cosine: Mapping[int, float]


class _IsAmong(FunctionElement[bool]):
    """Whether a number is in a JSON array: binding each number would take longer than the read."""

    inherit_cache = True


@compiles(_IsAmong)
def _compile_is_among(element: _IsAmong, compiler: SQLCompiler, **options: Any) -> str:
    number, array = (compiler.process(clause, **options) for clause in element.clauses)
    if compiler.dialect.name == "postgresql":
        return f"{number} = ANY (CAST(translate({array}, '[]', '{{}}') AS BIGINT[]))"
    return f"{number} IN (SELECT value FROM json_each({array}))"


class _Joined(FunctionElement[bytes]):
    """The concatenated bytes of a group's rows: a row costs SQLAlchemy more than the database."""

    inherit_cache = True


@compiles(_Joined)
def _compile_joined(element: _Joined, compiler: SQLCompiler, **options: Any) -> str:
    packed = compiler.process(element.clauses, **options)
    if compiler.dialect.name == "postgresql":
        return f"string_agg({packed}, ''::bytea)"
    return f"CAST(group_concat({packed}, '') AS BLOB)"


def _json_array(numbers: Any) -> Any:
    """Return the numbers of all rows of a group as a JSON array."""
    return "[" + func.aggregate_strings(cast(numbers, Text), ",") + "]"


def _select(table: Table, *columns: Any) -> Select[Any]:
    """Return a SELECT of rows of a memory; it finds none if the memory is another user's."""
    archives = tables.archives
    return select(*columns).where(
        archives.c.entity_id == bindparam("entity_id"),
        archives.c.owner_id == bindparam("owner_id"),
        table.c.entity_id == archives.c.entity_id,
    )


# The queries are built once: building one takes as long as executing it.
_archives, _turns, _postings = tables.archives.c, tables.archived_turns.c, tables.postings.c
_vectors, _signatures = tables.vectors.c, tables.signatures.c
_ARCHIVED = _select(tables.archived_turns, _turns.turn, _turns.text, _turns.created_at_ms)
_block = _postings.postings
_sizes = (
    _select(tables.postings, _postings.term, func.sum(func.length(_block)).label("size"))
    .where(_IsAmong(_postings.term, bindparam("terms", type_=Text)))
    .group_by(_postings.term)
    .subquery()
)
# The size of a term and of all rarer ones.
_total = over(func.sum(_sizes.c.size), order_by=(_sizes.c.size, _sizes.c.term)).label("total")
_totals = select(_sizes, _total).subquery().c
# The terms that are read, as a JSON array; the rarest is read however many postings it has.
_RAREST = (
    select(_json_array(_totals.term))
    .where((_totals.total <= bindparam("max_bytes")) | (_totals.total == _totals.size))
    .scalar_subquery()
)
_IS_READ = (_postings.entity_id == _archives.entity_id) & _IsAmong(_postings.term, _RAREST)
# A row for each term that is read, and at least one if the memory is the user's. The order makes
# the sums of scores the same with both engines.
_MATCHES = (
    _select(tables.archives, _archives.turns, _archives.terms, _archives.epoch, _Joined(_block))
    .outerjoin_from(tables.archives, tables.postings, _IS_READ)
    .group_by(_archives.entity_id, _postings.term)
    .order_by(_postings.term)
)
_SIGNATURES = (
    _select(tables.signatures, _signatures.signatures)
    .where(
        _signatures.model == bindparam("model"),
        _signatures.dimensions == bindparam("dimensions"),
    )
    .order_by(_signatures.block)
)
_VECTORS = _select(tables.vectors, _json_array(_vectors.turn), _Joined(_vectors.vector)).where(
    _vectors.model == bindparam("model"),
    _IsAmong(_vectors.turn, bindparam("turns", type_=Text)),
    func.length(_vectors.vector) == bindparam("size"),
)
_TURNS = _ARCHIVED.where(_IsAmong(_turns.turn, bindparam("turns", type_=Text)))
WITHOUT_VECTORS = (
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
    """Queries on one archive; each of them checks that it is the user's.

    `ids` contains its `entity_id` and the `owner_id`. `compute` calls the functions that use numpy,
    whose import takes a tenth of a second.
    """

    def __init__(
        self, connection: Connection, compute: Compute, cache: SignatureCache, ids: dict[str, str]
    ) -> None:
        self._connection = connection
        self._compute = compute
        self._cache = cache
        self._ids = ids

    def score(
        self,
        terms: Sequence[int],
        vector: _Vector | None,
        *,
        before_turn: int = ALL_TURNS,
        recency: float = 0.0,
        ranges: Ranges | None = None,
    ) -> Scores:
        """Return the scores of the turns that match a question best.

        `terms` are the keys of its terms, of which the rarest are read, and `vector` is its vector,
        if there is an embedding model. For the other arguments see `bm25f.score_turns`.
        """
        rows = self._rows(_MATCHES, terms=json.dumps(terms), max_bytes=_MAX_POSTINGS)
        if not rows or not rows[0].turns:
            return Scores({}, {})
        turns, count, epoch, _ = rows[0]
        scores: dict[int, float] = self._compute(
            bm25f.score_turns,
            [packed for *_, packed in rows if packed is not None],
            Collection(turns, count),
            before_turn=before_turn,
            recency=recency,
            most=_CANDIDATES,
            ranges=ranges,
        )
        if not vector:
            return Scores(scores, {})
        version = Version(epoch, turns)
        return Scores(scores, self._cosines(vector, version, scores, before_turn, ranges))

    def _cosines(
        self,
        vector: _Vector,
        version: Version,
        among: Iterable[int],
        before_turn: int,
        ranges: Ranges | None,
    ) -> dict[int, float]:
        """Return the cosine similarities to a vector of the nearest turns and of those `among`."""
        model, values = vector
        near = self._compute(
            binary_quantization.nearest_by_hamming,
            self._quantized(model, len(values), version),
            values,
            before_turn=before_turn,
            most=_CANDIDATES,
            ranges=ranges,
        )
        [(turns, packed)] = self._rows(
            _VECTORS,
            model=model,
            turns=json.dumps(sorted({*near, *among})),
            size=binary_quantization.VALUE_BYTES * len(values),
        )
        if packed is None:
            return {}
        cosines = self._compute(binary_quantization.cosine_similarities, packed, values)
        return dict(zip(json.loads(turns), cosines, strict=True))

    def _quantized(self, model: str, dimensions: int, version: Version) -> Sequence[bytes]:
        """Return the quantized vectors of a model, as `binary_quantization.transpose` does."""
        key = self._ids["entity_id"], model, dimensions
        columns = self._cache.get(key, version)
        if columns is None:
            rows = self._rows(_SIGNATURES, model=model, dimensions=dimensions)
            blocks = [row.signatures for row in rows]
            columns = self._compute(binary_quantization.transpose, blocks, dimensions)
            # Otherwise vectors are missing, and may be added in the same version.
            if len(columns[0]) // 8 == version.turns:
                self._cache.put(key, version, columns)
        return columns

    def archived(self, turns: Sequence[int], limit: int) -> list[ArchivedTurn]:
        """Return the first of some turns that are archived, in the given order.

        A turn without text is not archived, but may have a score from its neighbours.
        """
        archived: list[ArchivedTurn] = []
        for first in range(0, len(turns), limit):
            batch = turns[first : first + limit]
            rows = self._rows(_TURNS, turns=json.dumps(batch))
            by_number = {row.turn: ArchivedTurn(*row) for row in rows}
            archived += [by_number[turn] for turn in batch if turn in by_number]
            if len(archived) >= limit:
                break
        return archived[:limit]

    def _rows(self, query: Select[Any], **values: Any) -> Sequence[Any]:
        return self._connection.execute(query, {**self._ids, **values}).all()
