"""The order in which many requests of one user begin."""

import asyncio

import pytest

from facade.requests_in_progress import RequestsInProgress
from services.common.errors import GatewayError

# Requests of a user that begin without waiting, and in an iteration of the event loop after that.
AT_ONCE, PER_ITERATION = 8, 4


def begin(requests: RequestsInProgress, user: str, began: list[str]) -> asyncio.Task[None]:
    async def serve() -> None:
        turn = requests.count_for(user)
        if turn is not None:
            await turn
        began.append(user)

    return asyncio.create_task(serve())


async def test_few_requests_begin_at_once() -> None:
    requests = RequestsInProgress(100)
    assert [requests.count_for("many") for _ in range(AT_ONCE)] == [None] * AT_ONCE
    assert requests.count_for("many") is not None
    assert requests.count_for("one") is None


async def test_others_begin_between_those_of_a_crowd() -> None:
    began: list[str] = []
    requests = RequestsInProgress(100)
    crowd = [begin(requests, "many", began) for _ in range(60)]
    await asyncio.sleep(0)
    await asyncio.gather(*crowd, begin(requests, "one", began))
    assert began.index("one") <= AT_ONCE + 2 * PER_ITERATION
    assert began.count("many") == 60


async def test_one_that_leaves_its_turn_holds_nobody_up() -> None:
    began: list[str] = []
    requests = RequestsInProgress(AT_ONCE + 2)
    for _ in range(AT_ONCE):
        requests.count_for("many")
    leaving, following = (begin(requests, "many", began) for _ in range(2))
    await asyncio.sleep(0)
    with pytest.raises(GatewayError, match="requests are in progress"):
        requests.count_for("many")
    leaving.cancel()
    await asyncio.wait([leaving, following])
    assert began == ["many"]
