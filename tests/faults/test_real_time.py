"""The one case that waits: the clock of all others is no figment."""

import time

import pytest

from tests.faults import actions
from tests.faults.scenario import CHAT, request_body

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_retry_after_is_kept_in_real_time(at):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(429, retry_after="1"), actions.answers())
    began = time.monotonic()
    answer = await at.ask(CHAT, request_body(CHAT, "auto", models, stream=True))
    assert answer.whole == actions.TEXT
    assert 0.9 < time.monotonic() - began < 30
