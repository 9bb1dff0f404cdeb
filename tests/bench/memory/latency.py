"""Times searches in archives of several sizes that lie in the same tables."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine, writing
from services.common.storage.migrations.runner import migrate
from services.memory.archive.archive import Archive, QuestionVector
from services.memory.archive.index import ArchivedTurn
from tests.bench import processes
from tests.bench.load import percentile

SIZES = (1_000, 10_000, 100_000)
_SEARCHES = 200
_A_BATCH = 500
_APART_MS = 600_000
# Words of a question.
_ASKED = 12
_DIMENSIONS = 384
_WORDS = 30_000
_OWNER = "usr_bench"
_MODEL = "bench/random-384"


@dataclass(frozen=True)
class Latency:
    """How searches in one archive went.

    Attributes:
        turns: in the archive.
        way: lexical or fused.
        p50_ms: the median.
        p95_ms: the 95th percentile.
        cpu_p95_ms: the same of the time that this process computed, which is what a search takes on
            a core of its own; on PostgreSQL without the server's.
        rss_mb: resident memory of this process after them.
    """

    turns: int
    way: str
    p50_ms: float
    p95_ms: float
    cpu_p95_ms: float
    rss_mb: float


async def measure(database_url: str, sizes: Sequence[int]) -> list[Latency]:
    """Fill archives, on SQLite or in the database at an address, and search each."""
    texts = made_up_texts(Random(1))
    spread = np.random.default_rng(1)
    with TemporaryDirectory(prefix="gw-") as folder:
        engine = open_engine(Storage(data_dir=Path(folder), database_url=database_url))
        await migrate(engine)
        archive = Archive(engine, Clock())
        for size in sizes:
            for first in range(1, size, _A_BATCH):
                numbers = range(first, first + _A_BATCH)
                turns = [ArchivedTurn(n, next(texts), n * _APART_MS) for n in numbers]
                points = spread.standard_normal((_A_BATCH, _DIMENSIONS)).tolist()
                async with writing(engine) as connection:
                    await archive.add(connection, _OWNER, _name(size), turns)
                    await archive.add_vectors(
                        connection, _name(size), _MODEL, dict(zip(numbers, points, strict=True))
                    )
        questions = [" ".join(next(texts).split()[:_ASKED]) for _ in range(_SEARCHES)]
        points = spread.standard_normal((_SEARCHES, _DIMENSIONS)).tolist()
        vectors = [QuestionVector(_MODEL, point) for point in points]
        figures = []
        for size in sizes:
            for way, embedded in (("lexical", [None] * _SEARCHES), ("fused", vectors)):
                asked = list(zip(questions, embedded, strict=True))
                figures.append(await _timed(archive, size, way, asked))
        await engine.dispose()
    return figures


async def _timed(
    archive: Archive, size: int, way: str, asked: Sequence[tuple[str, QuestionVector | None]]
) -> Latency:
    times, computed = [], []
    for question, embedded in asked:
        began, began_cpu = time.perf_counter(), time.process_time()
        await archive.search(_OWNER, _name(size), question, before_turn=size + 1, vector=embedded)
        times.append((time.perf_counter() - began) * 1000)
        computed.append((time.process_time() - began_cpu) * 1000)
    rss_mb = processes.memory([os.getpid()]).rss
    return Latency(
        size,
        way,
        percentile(times, 0.5),
        percentile(times, 0.95),
        percentile(computed, 0.95),
        rss_mb,
    )


def _name(size: int) -> str:
    return f"mem_{size}"


def made_up_texts(chance: Random) -> Iterator[str]:
    """Return texts whose words are as unevenly frequent as those of a language."""
    syllables = [c + v for c in "bcdfglmnprst" for v in "aeiou"]
    lexicon = ["".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(_WORDS)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(_WORDS)))
    while True:
        yield " ".join(chance.choices(lexicon, cum_weights=weights, k=chance.randint(20, 160)))
