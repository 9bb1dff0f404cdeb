"""The archives of all memories in a database.

::

    archive = Archive(engine, clock)
    async with writing(engine) as connection:
        await archive.add(connection, owner_id, entity_id, turns)
    snippets = await archive.search(owner_id, entity_id, "Where did I…?", before_turn=91)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.storage.database import read, reading_once
from services.common.storage.database_threads import Compute, run_in_thread
from services.common.text.texts import elide_middle
from services.memory.archive import dates, index, words
from services.memory.archive.index import ArchivedTurn
from services.memory.archive.lookup import WITHOUT_VECTORS, Lookup, Ranges
from services.memory.archive.score_fusion import ALPHA, fuse_scores
from services.memory.archive.signature_cache import SignatureCache
from services.memory.archive.snippets import cut_to_budget

LIMIT = 16
MAX_TOKENS = 2000

# Characters and terms of a long question that are used: half from its beginning, half from its
# end.
_MAX_QUESTION = 4000
_MAX_TERMS = 512
# The bonus of the newest turn over the first if the question asks for the newest.
_RECENCY = 3.0
# Size of the cache of quantized vectors: those of 600,000 turns by a model of 384 dimensions.
_CACHED_BYTES = 32 << 20


def excerpt(question: str) -> str:
    """Return the beginning and the end of a long question, or all of a short one."""
    return elide_middle(question, _MAX_QUESTION, " ")


class QuestionVector(NamedTuple):
    """The vector of a question, and the embedding model that made it."""

    model: str
    values: Sequence[float]


class Snippet(NamedTuple):
    """A turn that a search found.

    Attributes:
        turn: number of the turn.
        text: its text, possibly truncated, with "…" at each cut.
        created_at_ms: Unix milliseconds.
        score: its relevance, comparable within one search only.
    """

    turn: int
    text: str
    created_at_ms: int
    score: float


class Passage(NamedTuple):
    """A turn that a search of ranges found.

    Attributes:
        entity_id: its archive.
        turn: its number.
        text: its text.
        score: its relevance, from 0 to 1, comparable within one search only.
    """

    entity_id: str
    turn: int
    text: str
    score: float


# An archive, and the number of a turn in it.
_Place = tuple[str, int]


class Archive:
    """The archived turns of all memories.

    Every method raises `unavailable` when the database does not answer.
    """

    # The changes of `index`, in the caller's transaction.
    add = staticmethod(index.add)
    add_vectors = staticmethod(index.add_vectors)
    remove_from = staticmethod(index.remove_from)
    remove = staticmethod(index.remove)

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._signatures = SignatureCache(_CACHED_BYTES)

    async def without_vectors(
        self, owner_id: str, entity_id: str, model: str, *, after_turn: int, limit: int
    ) -> list[ArchivedTurn]:
        """Return the first archived turns after `after_turn` without a vector of a model."""
        ids = {"owner_id": owner_id, "entity_id": entity_id}
        chosen = {"model": model, "after_turn": after_turn, "limit": limit}
        async with reading_once(self._engine) as connection:
            rows = await connection.execute(WITHOUT_VECTORS, ids | chosen)
            return [ArchivedTurn(*row) for row in rows]

    async def search(
        self,
        owner_id: str,
        entity_id: str,
        question: str,
        *,
        before_turn: int,
        limit: int = LIMIT,
        max_tokens: int = MAX_TOKENS,
        vector: QuestionVector | None = None,
    ) -> list[Snippet]:
        """Return the archived turns that are relevant to a question, the best first.

        Args:
            owner_id: the user; nothing is found in the memory of another user.
            entity_id: the memory.
            question: any text. Dates in it ("last week") are relative to now.
            before_turn: that turn and later ones are left out.
            limit: maximum number of turns.
            max_tokens: maximum size of all texts together; long texts are truncated.
            vector: the question's vector, if an embedding model is configured.
        """
        ids = {"owner_id": owner_id, "entity_id": entity_id}
        question = excerpt(question)
        named = dates.dates_in_question(question, self._clock.now_ms())
        terms = _terms(question) | frozenset(named)

        def find(connection: Connection, compute: Compute) -> list[Snippet]:
            lookup = Lookup(connection, compute, self._signatures, ids)
            found = lookup.score(
                [words.term_key(term) for term in terms],
                vector,
                before_turn=before_turn,
                recency=_RECENCY if dates.asks_for_latest(question) else 0.0,
            )
            scores = fuse_scores(found.lexical, found.cosine)
            ranked = sorted(scores, key=lambda turn: (scores[turn], turn), reverse=True)
            archived = lookup.archived(ranked, limit)
            texts = compute(cut_to_budget, [turn.text for turn in archived], terms, max_tokens)
            return [
                Snippet(turn.number, text, turn.created_at_ms, scores[turn.number])
                for turn, text in zip(archived, texts, strict=True)
                if text
            ]

        return await read(self._engine, lambda connection: run_in_thread(connection, find))

    async def search_ranges(
        self,
        owner_id: str,
        ranges: Mapping[str, Ranges],
        question: str,
        *,
        limit: int,
        vector: QuestionVector | None = None,
        alpha: float = ALPHA,
    ) -> list[Passage]:
        """Return the turns of some ranges that are relevant to a question, the best first.

        Args:
            owner_id: the user; nothing is found in the archive of another user.
            ranges: the ranges that are searched, by archive.
            question: any text.
            limit: maximum number of turns.
            vector: the question's vector, if an embedding model is configured.
            alpha: the share of the vectors in the scores.
        """
        question = excerpt(question)
        keys = [words.term_key(term) for term in _terms(question)]

        def find(connection: Connection, compute: Compute) -> list[Passage]:
            lookups = {
                entity_id: Lookup(
                    connection,
                    compute,
                    self._signatures,
                    {"owner_id": owner_id, "entity_id": entity_id},
                )
                for entity_id in ranges
            }
            lexical: dict[_Place, float] = {}
            cosine: dict[_Place, float] = {}
            for entity_id, lookup in lookups.items():
                found = lookup.score(keys, vector, ranges=ranges[entity_id])
                lexical |= {(entity_id, turn): score for turn, score in found.lexical.items()}
                cosine |= {(entity_id, turn): score for turn, score in found.cosine.items()}
            # Of one kind alone, the scores are those of that kind.
            best = 1.0
            if not cosine:
                best = max(lexical.values(), default=1.0)
            elif not lexical:
                best = alpha or 1.0
            scores = fuse_scores(lexical, cosine, alpha)
            ranked = sorted(scores, key=lambda place: (scores[place], place), reverse=True)[:limit]
            texts: dict[_Place, str] = {}
            for entity_id, lookup in lookups.items():
                turns = [turn for archive, turn in ranked if archive == entity_id]
                for archived in lookup.archived(turns, limit):
                    texts[entity_id, archived.number] = archived.text
            return [
                Passage(*place, texts[place], min(1.0, scores[place] / best))
                for place in ranked
                if place in texts
            ]

        return await read(self._engine, lambda connection: run_in_thread(connection, find))


def _terms(question: str) -> frozenset[str]:
    """Return the terms of a question."""
    terms = list(dict.fromkeys(words.terms(question)))
    if len(terms) > _MAX_TERMS:
        terms = terms[: _MAX_TERMS // 2] + terms[-_MAX_TERMS // 2 :]
    return frozenset(terms)
