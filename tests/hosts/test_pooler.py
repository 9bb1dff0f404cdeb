"""PgBouncer in transaction mode between a gateway and PostgreSQL, where this machine has one."""

import asyncio
from pathlib import Path

import pytest

from tests.databases import postgresql_server
from tests.e2e.users import User
from tests.gateway_in_process import running_gateway
from tests.hosts.callers import RETRIABLE, Caller
from tests.poolers import newer, older, pooler
from tests.waiting import until

CALLERS = 4
KILLS = 2


@pytest.mark.parametrize(
    ("keeps_statements", "option"),
    [
        pytest.param(True, "", marks=newer),
        pytest.param(False, "?statement_cache_size=0", marks=older),
    ],
    ids=["newer", "older"],
)
async def test_a_killed_pooler_loses_nothing(
    tmp_path: Path, keeps_statements: bool, option: str
) -> None:
    with (
        postgresql_server() as server,
        pooler(server, keeps_statements=keeps_statements) as between,
    ):
        storage = {"data_dir": str(tmp_path), "database_url": between.url + option}
        async with running_gateway(tmp_path, storage=storage) as gateway:
            user = User(gateway.http, gateway.url, gateway.key)
            callers = [await Caller.open(f"caller {number}", user) for number in range(CALLERS)]
            ending = asyncio.Event()
            running = [asyncio.create_task(caller.run(ending)) for caller in callers]
            try:
                for _ in range(KILLS):
                    await rounds(callers, running)
                    before = [len(caller.failures) for caller in callers]
                    between.kill()
                    await until(
                        lambda before=before: all(
                            len(caller.failures) > count
                            for caller, count in zip(callers, before, strict=True)
                        )
                    )
                    between.start()
                await rounds(callers, running)
            finally:
                ending.set()
                await asyncio.gather(*running)
            for caller in callers:
                # What held a memory when the pooler went may have lost it: 409.
                assert {one.status for one in caller.failures} <= RETRIABLE | {409}
                await caller.check()


async def rounds(callers: list[Caller], running: list["asyncio.Task[None]"]) -> None:
    """Wait until each caller has finished two more rounds."""
    before = [len(caller.began_at) for caller in callers]

    def have_finished() -> bool:
        assert not any(task.done() for task in running), running
        return all(
            len(caller.began_at) >= count + 2 for caller, count in zip(callers, before, strict=True)
        )

    await until(have_finished)
