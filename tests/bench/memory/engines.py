"""Compares the archive's postings with the engines' own full-text indexes.

Run as `python -m tests.bench.memory --engines`. Searches take turns, so that other work on the
machine falls on both; ratios are of medians.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from types import MappingProxyType

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import is_sqlite, open_engine, reading, writing
from services.common.storage.migrations.runner import migrate
from services.memory.archive.archive import Archive
from services.memory.archive.index import ArchivedTurn
from tests.bench.load import percentile
from tests.bench.memory.conversations import NOW_MS, TURNS, Conversation
from tests.bench.memory.engine_indexes import EngineIndex, PostgresIndex, SqliteIndex
from tests.bench.memory.latency import made_up_texts

SIZES = (1_000, 10_000, 100_000)
_OWNER = "usr_bench"
_SEARCHES = 50
_ASKED = 12
_A_BATCH = 500
# Turns that are archived together in use: those of a summary.
_A_SUMMARY = 5
_FOUND = 10

Search = Callable[[str, str], Awaitable[list[int]]]


@dataclass(frozen=True)
class EngineFigures:
    """The figures of one way to index.

    Attributes:
        way: the name of the way.
        recall_at_5: of the questions about made-up conversations.
        recall_at_10: the same.
        ms: median and 95th percentile of a search, by the turns of the memory.
        cpu_ms: the median of the time that this process computed, which has all of a search on
            SQLite, and a small part of it on PostgreSQL.
        write_ms: to archive the turns of a summary in the largest memory.
        bytes_a_turn: of the index, without the turns' texts.
    """

    way: str
    recall_at_5: float
    recall_at_10: float
    ms: MappingProxyType[int, tuple[float, float]]
    cpu_ms: MappingProxyType[int, float]
    write_ms: float
    bytes_a_turn: float


async def compare(
    conversations: Sequence[Conversation], database_url: str, sizes: Sequence[int]
) -> list[EngineFigures]:
    """Measure the archive and the engine's own index in one database."""
    with TemporaryDirectory(prefix="gw-") as folder:
        storage = Storage(data_dir=Path(folder), database_url=database_url)
        engine = open_engine(storage)
        await migrate(engine)
        on_sqlite = is_sqlite(storage)
        own = SqliteIndex(engine) if on_sqlite else PostgresIndex(engine)
        await own.create()
        ways = {
            "postings": _Archive(engine),
            "FTS5" if on_sqlite else "tsvector": _Own(own),
        }
        recalls = {way: await _recalls(one, conversations) for way, one in ways.items()}
        chance = Random(1)
        texts = made_up_texts(chance)
        for size in sizes:
            for first in range(1, size, _A_BATCH):
                batch = _turns(texts, first, min(_A_BATCH, size - first + 1))
                for one in ways.values():
                    await one.add(f"m{size}", batch)
        if not on_sqlite:
            async with writing(engine) as connection:
                await connection.execute(text("ANALYZE"))
        ms, cpu_ms = await _search_ms(ways, texts, sizes)
        written = await _write_ms(ways, texts, max(sizes))
        turns = TURNS * len(conversations) + sum(sizes)
        indexes = {"postings": "memory_archive_postings"}
        figures = [
            EngineFigures(
                way,
                *recalls[way],
                MappingProxyType({size: ms[way, size] for size in sizes}),
                MappingProxyType({size: cpu_ms[way, size] for size in sizes}),
                written[way],
                await _size(engine, indexes.get(way, own.index), on_sqlite) / turns,
            )
            for way in ways
        ]
        await engine.dispose()
    return figures


class _Archive:
    """The product's archive."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._archive = Archive(engine, Clock(now=lambda: NOW_MS / 1000))

    async def add(self, memory: str, turns: Sequence[ArchivedTurn]) -> None:
        async with writing(self._engine) as connection:
            await self._archive.add(connection, _OWNER, memory, turns)

    async def search(self, memory: str, question: str) -> list[int]:
        snippets = await self._archive.search(
            _OWNER, memory, question, before_turn=1 << 30, limit=_FOUND
        )
        return [snippet.turn for snippet in snippets]


class _Own:
    """An engine's own index, read as the product would."""

    def __init__(self, index: EngineIndex) -> None:
        self._index = index

    async def add(self, memory: str, turns: Sequence[ArchivedTurn]) -> None:
        await self._index.add(memory, turns)

    async def search(self, memory: str, question: str) -> list[int]:
        return await self._index.search(memory, question, NOW_MS, _FOUND)


_Way = _Archive | _Own


async def _recalls(way: _Way, conversations: Sequence[Conversation]) -> tuple[float, float]:
    at_5, at_10 = [], []
    for place, conversation in enumerate(conversations):
        await way.add(f"c{place}", conversation.turns)
        for question in conversation.questions:
            turns = await way.search(f"c{place}", question.text)
            at_5.append(question.recall(turns[:5]))
            at_10.append(question.recall(turns))
    return fmean(at_5), fmean(at_10)


async def _search_ms(
    ways: dict[str, _Way], texts: Iterable[str], sizes: Sequence[int]
) -> tuple[dict[tuple[str, int], tuple[float, float]], dict[tuple[str, int], float]]:
    figures, computed = {}, {}
    for size in sizes:
        times: dict[str, list[float]] = {way: [] for way in ways}
        cpu: dict[str, list[float]] = {way: [] for way in ways}
        for _, material_text in zip(range(_SEARCHES), texts, strict=False):
            question = " ".join(material_text.split()[:_ASKED])
            for way, one in ways.items():
                began = time.process_time()
                async with _timed(times[way]):
                    await one.search(f"m{size}", question)
                cpu[way].append((time.process_time() - began) * 1000)
        for way, taken in times.items():
            figures[way, size] = percentile(taken, 0.5), percentile(taken, 0.95)
            computed[way, size] = percentile(cpu[way], 0.5)
    return figures, computed


async def _write_ms(ways: dict[str, _Way], texts: Iterable[str], size: int) -> dict[str, float]:
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(_SEARCHES):
        batch = _turns(texts, size + 1 + number * _A_SUMMARY, _A_SUMMARY)
        for way, one in ways.items():
            async with _timed(times[way]):
                await one.add(f"m{size}", batch)
    return {way: percentile(taken, 0.5) for way, taken in times.items()}


@asynccontextmanager
async def _timed(times: list[float]) -> AsyncIterator[None]:
    began = time.perf_counter()
    yield
    times.append((time.perf_counter() - began) * 1000)


async def _size(engine: AsyncEngine, index: str, on_sqlite: bool) -> float:
    query = (
        "SELECT sum(pgsize) FROM dbstat WHERE name LIKE :index"
        if on_sqlite
        else "SELECT pg_total_relation_size(CAST(CAST(:index AS text) AS regclass))"
    )
    async with reading(engine) as connection:
        return float(await connection.scalar(text(query), {"index": index}) or 0)


def _turns(texts: Iterable[str], first: int, count: int) -> list[ArchivedTurn]:
    numbered_texts = zip(range(first, first + count), texts, strict=False)
    return [ArchivedTurn(number, one, number * 600_000) for number, one in numbered_texts]
