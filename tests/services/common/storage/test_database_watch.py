"""Whether the database answers, and what is counted of its uses."""

from urllib.parse import parse_qs, urlsplit

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import text

from services.common.errors import GatewayError
from services.common.settings import Storage
from services.common.storage.database import open_engine, reading
from services.common.storage.database_watch import SILENT_S, DatabaseWatch
from tests.attacks.stalling_proxy import stalling_proxy
from tests.databases import PostgreSQL
from tests.manual_clock import ManualClock
from tests.waiting import until


@pytest.fixture
def behind_proxy(postgresql: PostgreSQL, tmp_path):
    folder = parse_qs(urlsplit(postgresql.url).query)["host"][0]
    name = ".s.PGSQL.5432"
    with stalling_proxy(path=f"{folder}/{name}", at=tmp_path / name) as proxy:
        yield proxy, postgresql.url.replace(folder, str(tmp_path))


async def test_a_silent_database_is_reported_until_it_answers(behind_proxy):
    proxy, url = behind_proxy
    clock, reported = ManualClock(), []
    engine = open_engine(Storage(database_url=url))

    async def report(answers: bool) -> None:
        reported.append(answers)

    registry = CollectorRegistry()
    watch = DatabaseWatch(engine, 15, registry, report, clock.monotonic)
    async with reading(engine) as connection:
        await connection.execute(text("SELECT 1"))
        await watch.check()
        assert registry.get_sample_value("gateway_database_connections", {"state": "in_use"}) == 1
    await watch.check()
    assert registry.get_sample_value("gateway_database_connections", {"state": "idle"}) == 1
    assert registry.get_sample_value("gateway_database_max_connections") == 15
    assert registry.get_sample_value("gateway_database_wait_seconds_count") == 1
    proxy.stall()
    clock.now_s += 6
    await watch.check()  # asks
    clock.now_s += SILENT_S - 1
    await watch.check()
    assert reported == []
    clock.now_s += 1
    await watch.check()
    assert reported == [False]
    proxy.resume()

    async def is_reported() -> bool:
        await watch.check()
        return reported == [False, True]

    await until(is_reported)
    await engine.dispose()


async def test_an_idle_database_is_asked_and_stays_ready(behind_proxy):
    clock, reported = ManualClock(), []
    engine = open_engine(Storage(database_url=behind_proxy[1]))

    async def report(answers: bool) -> None:
        reported.append(answers)

    watch = DatabaseWatch(engine, 15, CollectorRegistry(), report, clock.monotonic)
    for _ in range(4):
        clock.now_s += 60
        await watch.check()
        await until(lambda: watch._asking is None)
    await watch.check()
    assert reported == []
    await engine.dispose()


async def test_failed_uses_are_counted_by_their_reason():
    engine = open_engine(Storage(database_url="postgresql://nobody@127.0.0.1:9/gateway"))

    async def report(answers: bool) -> None: ...

    registry = CollectorRegistry()
    DatabaseWatch(engine, 15, registry, report)
    with pytest.raises(GatewayError):
        async with reading(engine):
            pass
    counted = {"reason": "unavailable"}
    assert registry.get_sample_value("gateway_database_errors_total", counted) == 1
    await engine.dispose()
