"""A page of a long list costs what a page of a short one costs."""

import statistics
import time
from typing import Any

import pytest
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.files.v1.files_pb2 import PURPOSE_BATCH, ListFilesRequest
from services.common.clock import Clock
from services.common.storage.database import writing
from services.files.repository import FileRepository, files, usage

OWNER = "user_ada"
NOW_S = 1_700_000_000
FEW, MANY = 1_000, 1_000_000
PAGES = 60
# A million rows measured 1.0 to 1.1 times a thousand; a scan would be hundreds of times.
TIMES_AT_MOST = 3


async def _fill(engine: AsyncEngine, begin: int, end: int) -> None:
    async with writing(engine) as connection:
        for start in range(begin, end, 20_000):
            await connection.execute(
                insert(files),
                [
                    {
                        "id": f"file-{number:026}",
                        "owner_id": OWNER,
                        "filename": "a.txt",
                        "purpose": "batch",
                        "size_bytes": 1,
                        "mime_type": "text/plain",
                        "created_at_s": NOW_S + number // 2,
                        "expires_at_s": NOW_S * 2,
                        "sha256": "0" * 64,
                    }
                    for number in range(start, min(start + 20_000, end))
                ],
            )
        await connection.execute(text("ANALYZE files"))


async def _page_ms(repository: FileRepository, fields: dict[str, Any]) -> float:
    """Return what a page of 20 costs, the median of many."""
    took = []
    for _ in range(PAGES):
        begun = time.perf_counter()
        page, more = await repository.page(OWNER, ListFilesRequest(limit=20, **fields))
        took.append((time.perf_counter() - begun) * 1000)
        assert (len(page), more) == (20, True)
    return statistics.median(took)


@pytest.mark.soak
async def test_a_page_costs_the_same_with_a_million_files(engine: AsyncEngine) -> None:
    repository = FileRepository(engine, Clock(now=lambda: NOW_S))
    async with writing(engine) as connection:
        await connection.execute(insert(usage).values(owner_id=OWNER, files=0, size_bytes=0))
    cost: dict[str, list[float]] = {}
    filled = 0
    for size in (FEW, MANY):
        await _fill(engine, filled, size)
        filled = size
        middle = f"file-{size // 2:026}"
        for name, fields in {
            "newest": {},
            "after": {"after_id": middle},
            "before": {"before_id": middle},
            "of a purpose": {"after_id": middle, "purpose": PURPOSE_BATCH},
        }.items():
            cost.setdefault(name, []).append(await _page_ms(repository, fields))
    for name, (few, many) in cost.items():
        print(f"{engine.dialect.name}, {name}: {few:.2f} ms of {FEW}, {many:.2f} ms of {MANY}")
        assert many < few * TIMES_AT_MOST, name
