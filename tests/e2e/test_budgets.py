"""Budgets of a real gateway with two workers: at most one request exceeds one."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import orjson
import pytest

from tests.e2e.test_limits_killed import Callers, limited
from tests.faults import actions
from tests.faults.upstream import Action, Exchange
from tests.waiting import until

SOON_S = 60.0
SETTINGS = """
[[models]]
name = "dear"
provider = "openai"
upstream = "quick"
max_output_tokens = 20_000
price = { input = 3, output = 100 }

[[models]]
name = "reading"
provider = "openai"
upstream = "quick"
price = { input = 3, output = 0 }

[usage]
write_every_s = 0.3
"""


def answers_at(gate: asyncio.Event, read: int, written: int) -> Action:
    """Return an action that answers once `gate` is set, and reports its tokens."""

    async def action(exchange: Exchange) -> None:
        await gate.wait()
        message = {"role": "assistant", "content": "Hello"}
        answer = {
            "id": "chat_1",
            "object": "chat.completion",
            "created": 1,
            "model": exchange.model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            },
        }
        exchange.answer(orjson.dumps(answer))

    return action


async def spent_by(callers: Callers) -> tuple[Decimal, Decimal]:
    """Return the day's money of the budget and of the usage, once nothing is reserved."""
    while True:
        me = await callers.get("/beta/v1/usage/me")
        [day] = [one for one in me["limits"] if one["name"] == "spend_per_day"]
        if not Decimal(day["reserved"]):
            return Decimal(day["used"]), Decimal(me["usage"]["day"]["cost"])
        await asyncio.sleep(0.1)


async def all_refused(asking: Sequence[asyncio.Task[int]], but: int) -> None:
    """Wait until all but some of the requests have been answered."""
    await until(lambda: sum(task.done() for task in asking) == len(asking) - but, within_s=SOON_S)


async def test_of_40_answers_of_two_dollars_one_passes(tmp_path: Path) -> None:
    async with limited(tmp_path, SETTINGS, spend_per_day="1") as callers:
        gate = asyncio.Event()
        callers.upstream.plays("quick", answers_at(gate, 10, 20_000))
        asking = [asyncio.create_task(callers.ask("dear")) for _ in range(40)]
        await all_refused(asking, but=1)
        assert callers.passed() == 1
        gate.set()
        assert Counter(await asyncio.gather(*asking)) == {200: 1, 429: 39}
        # It cost two dollars, and nothing is left.
        again = await asyncio.gather(*(callers.ask("dear") for _ in range(10)))
        assert Counter(again) == {429: 10}
        assert callers.passed() == 1
        expected = Decimal(10 * 3 + 20_000 * 100) / 10**6

        async def is_recorded() -> bool:
            return await spent_by(callers) == (expected, expected)

        await until(is_recorded, within_s=SOON_S)


@pytest.mark.soak
async def test_of_five_prompts_beyond_the_budget_one_passes(tmp_path: Path) -> None:
    async with limited(tmp_path, SETTINGS, spend_per_day="0.45") as callers:
        gate = asyncio.Event()
        callers.upstream.plays("quick", answers_at(gate, 300_000, 1))
        # Estimated at 350,000 tokens.
        prompt = {"messages": [{"role": "user", "content": "word " * 200_000}]}
        asking = [asyncio.create_task(callers.ask("reading", **prompt)) for _ in range(5)]
        await all_refused(asking, but=1)
        gate.set()
        assert Counter(await asyncio.gather(*asking)) == {200: 1, 429: 4}
        assert await callers.ask("reading", **prompt) == 429
        assert callers.passed() == 1


async def test_cheap_requests_reach_the_budget_exactly(tmp_path: Path) -> None:
    async with limited(tmp_path, SETTINGS, spend_per_day="1") as callers:
        gate = asyncio.Event()
        gate.set()
        # Each reserves 15 cents, and costs 10.
        callers.upstream.plays("quick", answers_at(gate, 0, 1_000))
        passed = 0
        for _ in range(12):
            statuses = await asyncio.gather(
                *(callers.ask("dear", max_tokens=1_500) for _ in range(12))
            )
            passed += Counter(statuses)[200]
        assert passed == callers.passed() == 10


async def test_what_a_killed_worker_had_reserved_stays_spent(tmp_path: Path) -> None:
    async with limited(tmp_path, SETTINGS, spend_per_day="1") as callers:
        gate = asyncio.Event()
        callers.upstream.plays("quick", answers_at(gate, 10, 20_000))
        asking = asyncio.create_task(callers.ask("dear"))
        await until(lambda: callers.passed() == 1, within_s=SOON_S)
        for worker in callers.workers():
            os.kill(worker, signal.SIGKILL)
        assert await asking == 0
        await until(lambda: len(callers.workers()) == 2, within_s=SOON_S)
        gate.set()
        # The first answers come once a new worker listens.
        assert await until(lambda: callers.ask("dear"), within_s=SOON_S) == 429
        statuses = Counter(await asyncio.gather(*(callers.ask("dear") for _ in range(10))))
        assert statuses[200] == 0
        assert callers.passed() == 1


@pytest.mark.soak
async def test_a_stream_whose_caller_leaves_costs_what_is_recorded(tmp_path: Path) -> None:
    async with limited(tmp_path, SETTINGS, spend_per_day="10") as callers:
        callers.upstream.plays("quick", actions.dawdles(1e6))
        asking = asyncio.create_task(callers.ask("dear", stream=True))
        await until(lambda: callers.passed() == 1, within_s=SOON_S)
        await until(lambda: callers.upstream.busy == 1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

        async def agrees() -> bool:
            budget, usage = await spent_by(callers)
            return 0 < budget == usage

        await until(agrees, within_s=SOON_S)
        used = (await callers.get("/beta/v1/usage/me"))["usage"]["day"]
        assert (used["requests"], used["estimated"], used["unpriced"]) == (1, 1, 0)
        assert used["input_tokens"] > 0


async def test_a_stream_cut_by_a_stop_costs_what_was_delivered(tmp_path: Path) -> None:
    # The settings before end with [limits].
    settings = "drain_s = 1\n" + SETTINGS
    async with limited(tmp_path, settings, spend_per_day="10") as callers:
        callers.upstream.plays("quick", actions.dawdles(1e6))
        chunks = callers.stream("dear", max_tokens=1_000)
        assert b'"content"' in await anext(chunks)
        stopping = asyncio.create_task(asyncio.to_thread(callers.at.process.stop))
        cut = b"".join([chunk async for chunk in chunks])
        assert b'"error"' in cut and b"[DONE]" not in cut
        assert await stopping == 0
    async with limited(tmp_path, settings, spend_per_day="10") as callers:
        budget, usage = await spent_by(callers)
        used = (await callers.get("/beta/v1/usage/me"))["usage"]["day"]
    assert (used["requests"], used["estimated"], used["unpriced"]) == (1, 1, 0)
    assert used["input_tokens"] > 0
    # Not what was reserved: some words.
    assert 0 < used["output_tokens"] < 100
    assert 0 < budget == usage
