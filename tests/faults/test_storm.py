"""Many faults at once, of all kinds and in all forms: nothing is left, nothing grows."""

import asyncio
import gc
import os
import random

import pytest

from tests.bench import processes
from tests.faults import actions
from tests.faults.scenario import CHAT, MESSAGES, STREAM_IDLE_S, request_body

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = 50
# Two streams may fall silent in one answer.
ENDS_WITHIN_S = 400 + 2 * STREAM_IDLE_S
FAULTS = [
    actions.answers(),
    actions.fails(429),
    actions.fails(429, retry_after="2"),
    actions.fails(500),
    actions.fails(503),
    actions.fails(401),
    actions.fails(400),
    actions.resets(),
    actions.says_nothing(),
    actions.opens_and_stalls(),
    actions.answers_after(20),
    actions.cuts(),
    actions.cuts(reset=False),
    actions.stalls(),
    actions.malforms(),
    actions.breaks_in_band(),
    actions.ends_early(),
    actions.forgets_marker(),
    actions.too_long(),
    actions.filters(),
    actions.babbles(),
    actions.shows_a_page(),
    actions.refuses_prefill(),
]


async def storm(at, requests: int, seed: int) -> int:
    """Ask with faults drawn by lot, some callers leaving; give how many heard it all."""
    dice = random.Random(seed)
    gate = asyncio.Semaphore(AT_ONCE)
    whole = 0

    async def one() -> None:
        nonlocal whole
        models = at.fresh(dice.choice(["openai", "anthropic"]))
        at.upstream.plays(models.first, *dice.choices(FAULTS, k=2))
        at.upstream.plays(models.second, *dice.choices(FAULTS, k=2))
        path = dice.choice([CHAT, MESSAGES])
        step = {"timeout_ms": 20_000, "retry_policy": {"max_retries": dice.randrange(3)}}
        mode, stream = dice.choice(["auto", "enabled", "strict"]), dice.random() < 0.5
        body = request_body(path, mode, models, stream, first=step, second=step)
        patience = dice.choice([0.01, 0.5, 3]) if dice.random() < 0.2 else ENDS_WITHIN_S
        async with gate:
            try:
                async with asyncio.timeout(patience):
                    answer = await at.ask(path, body)
            except TimeoutError:
                assert patience < ENDS_WITHIN_S, "an answer that never ended"
                return
        assert answer.error is not None or answer.whole == actions.TEXT
        assert actions.TEXT.startswith(answer.text)
        whole += answer.error is None

    async with asyncio.TaskGroup() as group:
        for _ in range(requests):
            group.create_task(one())
    await at.settled()
    at.upstream.forget()
    return whole


async def test_200_faults_leave_nothing_behind(at):
    assert await storm(at, 200, seed=1) > 60


@pytest.mark.soak
async def test_1000_faults_leave_nothing_behind_and_memory_flat(at):
    """Memory is told after a first storm, which fills what is filled once."""
    await storm(at, 200, seed=2)
    gc.collect()
    before = processes.memory([os.getpid()]).rss
    assert await storm(at, 1000, seed=3) > 250
    gc.collect()
    assert processes.memory([os.getpid()]).rss < before + 16
