"""Limits that several workers hold to together."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path

import aiohttp
import orjson
import pytest
from sqlalchemy import select

from services.accounts.limits.rules import ACCOUNTS, SubjectKind, UsageLimits
from services.accounts.limits.tables import allowances
from services.common.settings import Storage
from services.inference.allowances import assembly
from services.inference.allowances.admission import Admission
from tests.limited_callers import CHAT, limited_gateways, post
from tests.waiting import until

CHATS = "/beta/v1/chat/completions"


async def test_of_1000_requests_over_two_workers_100_pass(tmp_path: Path, storage: Storage) -> None:
    async with limited_gateways(tmp_path, storage, 2) as shared:
        caller = await shared.caller(SubjectKind.TEAM, UsageLimits(requests_per_minute=100))
        body = orjson.dumps(CHAT)
        headers = {**caller, "content-type": "application/json"}
        connector = aiohttp.TCPConnector(limit=250)
        async with aiohttp.ClientSession(connector=connector) as http:

            async def ask(number: int) -> tuple[int, str | None]:
                url = shared.gateways[number % 2].url + CHATS
                async with http.post(url, data=body, headers=headers) as answer:
                    await answer.read()
                    return answer.status, answer.headers.get("Retry-After")

            answers = Counter(await asyncio.gather(*map(ask, range(1_000))))
            assert answers == {(200, None): 100, (429, "20"): 900}
            shared.clock.now_s += 20
            # A worker may hold a sixteenth of what is left for its next requests.
            answers = Counter(await asyncio.gather(*map(ask, range(150))))
            assert 93 <= answers[200, None] <= 100
            assert answers[200, None] + answers[429, "60"] == 150


async def test_one_request_at_a_time_moves_between_workers(
    tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_is_leased() -> bool:
        async with shared.engine.connect() as connection:
            return not any(await connection.scalars(select(allowances.c.amount)))

    async def until_returned(_pause_s: float) -> None:
        # The pause suffices for a database that answers soon, which this one need not do.
        await until(none_is_leased)

    monkeypatch.setattr(assembly, "Admission", partial(Admission, pause=until_returned))
    async with limited_gateways(tmp_path, storage, 2) as shared:
        caller = await shared.caller(SubjectKind.KEY, UsageLimits(concurrent_requests=1))
        for number in range(6):
            status, _, _ = await post(shared.gateways[number % 2], CHATS, CHAT, caller)
            assert status == 200


async def test_a_worker_that_stops_returns_what_it_has_not_used(
    tmp_path: Path, storage: Storage
) -> None:
    limits = UsageLimits(requests_per_minute=3, concurrent_requests=1)
    async with limited_gateways(tmp_path, storage) as first:
        caller = await first.caller(SubjectKind.USER, limits)
        for _ in range(2):
            assert (await post(first.gateways[0], CHATS, CHAT, caller))[0] == 200
    async with limited_gateways(tmp_path, storage) as second:
        statuses = [(await post(second.gateways[0], CHATS, CHAT, caller))[0] for _ in range(2)]
        assert statuses == [200, 429]


@pytest.mark.parametrize("kind", ACCOUNTS)
async def test_callers_of_other_subjects_are_not_limited(
    tmp_path: Path, storage: Storage, kind: SubjectKind
) -> None:
    async with limited_gateways(tmp_path, storage) as one:
        limited = await one.caller(kind, UsageLimits(requests_per_minute=1), team="math")
        other = await one.caller(SubjectKind.USER, UsageLimits(), team="math")
        [gateway] = one.gateways
        assert (await post(gateway, CHATS, CHAT, limited))[0] == 200
        assert (await post(gateway, CHATS, CHAT, limited))[0] == 429
        status, body, headers = await post(gateway, CHATS, CHAT, other)
        if kind is SubjectKind.TEAM:
            assert status == 429
            assert orjson.loads(body)["error"]["message"].startswith("the limit of the team, 1 ")
        else:
            assert (status, "x-ratelimit-limit-requests" in headers) == (200, False)


async def test_of_40_requests_over_two_workers_one_exceeds_a_budget(
    tmp_path: Path, storage: Storage
) -> None:
    # Each token costs a dollar.
    price = {"input": 1_000_000, "output": 1_000_000}
    dear = {"name": "dear", "provider": "sandbox", "upstream": "echo", "price": price}
    async with limited_gateways(tmp_path, storage, 2, models=[dear]) as shared:
        budget = UsageLimits(spend_per_day_pusd=10**12)
        caller = await shared.caller(SubjectKind.TEAM, budget)
        body = {**CHAT, "model": "dear", "max_tokens": 50}
        answers = await asyncio.gather(
            *(post(shared.gateways[number % 2], CHATS, body, caller) for number in range(40))
        )
        assert Counter(status for status, _, _ in answers) == {200: 1, 429: 39}
        again = [(await post(one, CHATS, body, caller))[0] for one in shared.gateways]
        assert again == [429, 429]
