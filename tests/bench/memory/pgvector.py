"""Compare vector search in one large archive with pgvector.

`python -m tests.bench.memory.pgvector`: a PostgreSQL with the extension gets an archive of short
turns with vectors of a mixture of clusters, and the same vectors in a table of pgvector. Printed
are CPU times of the gateway and of the server for a search, how many of the ten nearest it returns,
and sizes.
"""

import argparse
import asyncio
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # it brings no types
import numpy as np
from numpy.typing import NDArray
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine, write
from services.common.storage.migrations.runner import migrate
from services.memory.archive import index
from services.memory.archive.archive import Archive, QuestionVector
from services.memory.archive.index import ArchivedTurn
from tests.bench import processes
from tests.databases import postgresql_server

OWNER, STORE, MODEL = "usr_ada", "vs_large", "m/e"
# What a search of the gateway takes of the nearest turns.
CANDIDATES = 128
CLUSTERS, QUESTIONS, AT_ONCE = 500, 40, 500

Vectors = NDArray[np.float32]
Search = Callable[[Vectors], Awaitable[Sequence[int]]]


def clustered(count: int, dimensions: int) -> tuple[Vectors, Vectors]:
    """Return vectors of length 1, and those of questions, which are near to some of them."""
    random = np.random.default_rng(7)
    centers = random.standard_normal((CLUSTERS, dimensions), dtype=np.float32)
    vectors = centers[random.integers(0, CLUSTERS, count)]
    vectors += random.standard_normal((count, dimensions), dtype=np.float32)
    questions = vectors[random.integers(0, count, QUESTIONS)]
    questions = questions + random.standard_normal((QUESTIONS, dimensions), dtype=np.float32)
    for each in (vectors, questions):
        each /= np.linalg.norm(each, axis=1, keepdims=True)
    return vectors, questions


async def fill_archive(engine: AsyncEngine, vectors: Vectors) -> None:
    """Index a turn for each vector, as jobs do."""
    for start in range(0, len(vectors), AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, len(vectors)))
        turns = [ArchivedTurn(number, f"t{number}", 0).with_terms() for number in numbers]
        by_number = {number: vectors[number].tolist() for number in numbers}

        async def add(
            connection: AsyncConnection,
            turns: Sequence[ArchivedTurn],
            by_number: dict[int, list[float]],
        ) -> None:
            await index.add(connection, OWNER, STORE, turns)
            await index.add_vectors(connection, STORE, MODEL, by_number)

        await write(engine, partial(add, turns=turns, by_number=by_number))


async def fill_pgvector(connection: "asyncpg.Connection", vectors: Vectors) -> None:
    """Copy vectors into a table of pgvector."""
    dimensions = vectors.shape[1]
    await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    await connection.execute(
        "CREATE TABLE near (store_id text NOT NULL, turn bigint NOT NULL, "
        f"v vector({dimensions}) NOT NULL, PRIMARY KEY (store_id, turn))"
    )
    size = 4 + 4 * dimensions
    head = struct.pack(">hi", 3, len(STORE)) + STORE.encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"PGCOPY\n\xff\r\n\0" + bytes(8)
        for turn, vector in enumerate(vectors):
            row = struct.pack(">iqiHH", 8, turn, size, dimensions, 0)
            yield head + row + vector.astype(">f4").tobytes()
        yield b"\xff\xff"

    await connection.copy_to_table("near", source=pieces(), format="binary")
    await connection.execute("ANALYZE near")


async def measure(
    name: str, search: Search, questions: Vectors, exact: Sequence[set[int]], server: int
) -> None:
    """Print the CPU milliseconds of a search, here and in the server, and its recall."""
    await search(questions[0])
    own, theirs, began = time.process_time(), processes_cpu(server), time.perf_counter()
    hits = 0
    for question, nearest in zip(questions, exact, strict=True):
        hits += len(nearest.intersection(await search(question)))
    count = len(questions)
    print(
        f"{name:34}{1000 * (time.process_time() - own) / count:9.1f}"
        f"{1000 * (processes_cpu(server) - theirs) / count:9.1f}"
        f"{1000 * (time.perf_counter() - began) / count:9.1f}{hits / (10 * count):9.3f}",
        flush=True,
    )


def processes_cpu(server: int) -> float:
    """Return the CPU seconds of the server's processes."""
    return processes.cpu_seconds(processes.family(server))


async def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--hnsw", action="store_true", help="also build an index, for minutes")
    options = parser.parse_args()
    vectors, questions = clustered(options.size, options.dimensions)
    exact = [set(np.argsort(-(vectors @ each))[:10].tolist()) for each in questions]
    with postgresql_server() as server:
        engine = open_engine(Storage(data_dir=Path("."), database_url=server.url))
        await migrate(engine)
        connection = await asyncpg.connect(server.url)
        # The CPU time of processes that have ended is not counted.
        await connection.execute("SET max_parallel_workers_per_gather = 0")
        postmaster = await connection.fetchval(
            "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int"
        )
        began = time.perf_counter()
        await fill_archive(engine, vectors)
        print(f"archive filled in {time.perf_counter() - began:.0f} s", flush=True)
        began = time.perf_counter()
        await fill_pgvector(connection, vectors)
        print(f"pgvector filled in {time.perf_counter() - began:.0f} s", flush=True)
        archive = Archive(engine, Clock())

        async def own(question: Vectors) -> Sequence[int]:
            asked = QuestionVector(MODEL, question.tolist())
            passages = await archive.search_ranges(
                OWNER, {STORE: [(0, options.size)]}, "", limit=10, vector=asked, alpha=1.0
            )
            return [passage.turn for passage in passages]

        async def in_database(question: Vectors) -> Sequence[int]:
            rows = await connection.fetch(
                "SELECT turn FROM near WHERE store_id = $1 ORDER BY v <=> $2::text::vector "
                f"LIMIT {CANDIDATES}",
                STORE,
                str(question.tolist()),
            )
            return [row["turn"] for row in rows[:10]]

        print(f"{'':34}{'here':>9}{'server':>9}{'wall ms':>9}{'recall':>9}")
        await measure("gateway", own, questions, exact, postmaster)
        await measure("pgvector, exact", in_database, questions, exact, postmaster)
        if options.hnsw:
            await connection.execute("SET maintenance_work_mem = '1GB'")
            began, cpu_s = time.perf_counter(), processes_cpu(postmaster)
            await connection.execute("CREATE INDEX ON near USING hnsw (v vector_cosine_ops)")
            print(
                f"HNSW built in {processes_cpu(postmaster) - cpu_s:.0f} s of CPU time, "
                f"{time.perf_counter() - began:.0f} s"
            )
            await connection.execute(f"SET hnsw.ef_search = {CANDIDATES}")
            await measure("pgvector, HNSW", in_database, questions, exact, postmaster)
        for table in ("memory_archive_vectors", "memory_archive_signatures", "near"):
            size = await connection.fetchval("SELECT pg_total_relation_size($1::regclass)", table)
            print(f"{table:34}{size / 1e6:9.0f} MB")
        await connection.close()
        await engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
