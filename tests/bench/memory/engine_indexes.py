"""Prototypes of an archive on the engines' own full-text indexes, to compare its postings with.

Both index exactly the terms of `services.memory.archive`: SQLite FTS5 has them joined by spaces,
PostgreSQL in a `tsvector` with positions, as these count as frequencies. The engine ranks
candidates, and one pass scores these and their neighbours by the archive's BM25F. One table holds
all memories, as it would in the product, so a term of its memory is added to each turn.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import log1p

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.storage.database import reading, writing
from services.memory.archive import dates, postings, words
from services.memory.archive.bm25f import K1, NEXT, PREVIOUS, B
from services.memory.archive.index import ArchivedTurn

_CANDIDATES = 256
_MAX_POSTINGS = 30_000

# The tokens and the count of terms of a turn.
Held = tuple[Counter[str], int]


class EngineIndex(ABC):
    """An index of turns by an engine's own means, after `create`.

    Attributes:
        schema: the statements that create it.
        index: the table or index that stands in place of the archive's postings.
    """

    schema: Sequence[str]
    index: str

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._counts = defaultdict[str, Counter[str]](Counter)

    async def create(self) -> None:
        """Create the tables."""
        async with writing(self._engine) as connection:
            for statement in self.schema:
                await connection.execute(text(statement))

    async def add(self, memory: str, turns: Sequence[ArchivedTurn]) -> None:
        """Index turns in one transaction."""
        held: dict[int, Held] = {}
        for turn in turns:
            term_counts = Counter(_token(term) for term in words.terms(turn.text))
            length = term_counts.total()
            term_counts.update(_token(term) for term in dates.date_terms(turn.created_at_ms))
            held[turn.number] = term_counts, length
            self._counts[memory].update(turns=1, terms=length)
        async with writing(self._engine) as connection:
            await self._insert(connection, memory, held)

    async def search(self, memory: str, question: str, now_ms: int, limit: int) -> list[int]:
        """Return the turns that match a question best, the best first."""
        named = dates.dates_in_question(question, now_ms)
        asked = sorted({_token(term) for term in (*words.terms(question), *named)})
        async with reading(self._engine) as connection:
            frequencies = {term: await self._frequency(connection, memory, term) for term in asked}
            having = {
                number: (term, size) for number, (term, size) in enumerate(frequencies.items())
            }
            rarest = postings.select_rarest(
                {number: size for number, (_, size) in having.items() if size}, _MAX_POSTINGS
            )
            chosen = dict(having[number] for number in rarest)
            if not chosen:
                return []
            near = await self._candidates(connection, memory, list(chosen))
            turns = sorted({turn + step for turn in near for step in (-1, 0, 1)})
            held = await self._held(connection, memory, turns)
        return _best(held, chosen, self._counts[memory])[:limit]

    async def _held(
        self, connection: AsyncConnection, memory: str, turns: Sequence[int]
    ) -> dict[int, Held]:
        numbers = ",".join(map(str, turns))
        rows = await connection.execute(
            text(
                "SELECT turn, tokens, length FROM probe_turns WHERE memory = :memory"
                f" AND turn IN ({numbers})"
            ),
            {"memory": memory},
        )
        return {row.turn: (Counter(row.tokens.split()), row.length) for row in rows}

    @abstractmethod
    async def _insert(
        self, connection: AsyncConnection, memory: str, held: Mapping[int, Held]
    ) -> None:
        """Insert turns."""

    @abstractmethod
    async def _frequency(self, connection: AsyncConnection, memory: str, term: str) -> int:
        """Return how many turns of a memory have a term."""

    @abstractmethod
    async def _candidates(
        self, connection: AsyncConnection, memory: str, terms: Sequence[str]
    ) -> Sequence[int]:
        """Return the turns that the engine ranks highest."""


class SqliteIndex(EngineIndex):
    """SQLite FTS5 over the tokens of a table."""

    schema = (
        "CREATE TABLE probe_turns (id INTEGER PRIMARY KEY, memory TEXT, turn INTEGER,"
        " length INTEGER, tokens TEXT, UNIQUE (memory, turn))",
        "CREATE VIRTUAL TABLE probe_index USING fts5"
        " (tokens, content='probe_turns', content_rowid='id', tokenize='ascii')",
    )
    index = "probe_index%"

    async def _insert(
        self, connection: AsyncConnection, memory: str, held: Mapping[int, Held]
    ) -> None:
        last = await connection.scalar(text("SELECT coalesce(max(id), 0) FROM probe_turns")) or 0
        rows = [
            {
                "id": last + place,
                "memory": memory,
                "turn": turn,
                "length": length,
                "tokens": " ".join((memory, *term_counts.elements())),
            }
            for place, (turn, (term_counts, length)) in enumerate(held.items(), start=1)
        ]
        await connection.execute(
            text("INSERT INTO probe_turns VALUES (:id, :memory, :turn, :length, :tokens)"), rows
        )
        await connection.execute(
            text("INSERT INTO probe_index (rowid, tokens) VALUES (:id, :tokens)"), rows
        )

    async def _frequency(self, connection: AsyncConnection, memory: str, term: str) -> int:
        query = text("SELECT count(*) FROM probe_index WHERE probe_index MATCH :match")
        return await connection.scalar(query, {"match": f"{memory} AND {term}"}) or 0

    async def _candidates(
        self, connection: AsyncConnection, memory: str, terms: Sequence[str]
    ) -> Sequence[int]:
        query = text(
            "SELECT turn FROM probe_turns WHERE id IN (SELECT rowid FROM probe_index"
            " WHERE probe_index MATCH :match ORDER BY rank LIMIT :limit)"
        )
        match = f"{memory} AND ({' OR '.join(terms)})"
        candidates = await connection.scalars(query, {"match": match, "limit": _CANDIDATES})
        return candidates.all()


class PostgresIndex(EngineIndex):
    """PostgreSQL's `tsvector` with a GIN index."""

    schema = (
        "CREATE TABLE probe_turns (memory text, turn bigint, length integer, tokens text,"
        " vector tsvector, PRIMARY KEY (memory, turn))",
        "CREATE INDEX probe_index ON probe_turns USING gin (vector)",
    )
    index = "probe_index"

    async def _insert(
        self, connection: AsyncConnection, memory: str, held: Mapping[int, Held]
    ) -> None:
        rows = [
            {
                "memory": memory,
                "turn": turn,
                "length": length,
                "tokens": " ".join(term_counts.elements()),
                "vector": " ".join((memory, *_lexemes(term_counts))),
            }
            for turn, (term_counts, length) in held.items()
        ]
        statement = (
            "INSERT INTO probe_turns VALUES"
            " (:memory, :turn, :length, :tokens, CAST(CAST(:vector AS text) AS tsvector))"
        )
        await connection.execute(text(statement), rows)

    async def _frequency(self, connection: AsyncConnection, memory: str, term: str) -> int:
        query = text(
            "SELECT count(*) FROM probe_turns WHERE vector @@ CAST(CAST(:match AS text) AS tsquery)"
        )
        return await connection.scalar(query, {"match": f"{memory} & {term}"}) or 0

    async def _candidates(
        self, connection: AsyncConnection, memory: str, terms: Sequence[str]
    ) -> Sequence[int]:
        query = text(
            "SELECT turn FROM probe_turns, CAST(CAST(:match AS text) AS tsquery) AS asked"
            " WHERE vector @@ asked ORDER BY ts_rank(vector, asked) DESC LIMIT :limit"
        )
        match = f"{memory} & ({' | '.join(terms)})"
        candidates = await connection.scalars(query, {"match": match, "limit": _CANDIDATES})
        return candidates.all()


def _token(term: str) -> str:
    return f"t{words.term_key(term):x}"


def _lexemes(term_counts: Counter[str]) -> list[str]:
    """Return tokens with as many positions as they occur, which a `tsvector` counts."""
    lexemes, position = [], 1
    for term, count in term_counts.items():
        places = range(position, position + count)
        lexemes.append(f"{term}:{','.join(map(str, places))}")
        position += count
    return lexemes


def _best(
    held: Mapping[int, Held], frequencies: Mapping[str, int], counts: Mapping[str, int]
) -> list[int]:
    """Return turns by BM25F over their neighbours, as `bm25f.score_turns`.

    A term is taken to reach three turns for each that has it, where that is not more than all.
    """
    mean_length = max(1, counts["terms"]) / counts["turns"]
    scores = defaultdict[int, float](float)
    for term, size in frequencies.items():
        own = {
            turn: term_counts[term] / (1 - B + B * length / mean_length)
            for turn, (term_counts, length) in held.items()
            if term in term_counts
        }
        having = min(3 * size, counts["turns"])
        rarity = log1p((counts["turns"] - having + 0.5) / (having + 0.5))
        for turn in held:
            weighted = (
                own.get(turn, 0.0) + PREVIOUS * own.get(turn - 1, 0) + NEXT * own.get(turn + 1, 0)
            )
            scores[turn] += rarity * weighted / (K1 + weighted)
    return sorted(scores, key=lambda turn: (scores[turn], turn), reverse=True)
