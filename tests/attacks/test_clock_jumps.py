"""Wall clocks that are set by an hour, both ways, while requests are in progress.

The clock is that of two gateways in the test's process, which share a database as hosts do.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine, reading
from services.memory.storage.tables import claims
from tests.e2e.users import User
from tests.faults import wire
from tests.gateway_in_process import Gateway, running_gateway
from tests.jumping_clock import JumpingClock
from tests.waiting import until

HOUR_S = 3600.0
JUMPS = pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["ahead", "back"])
CHAT = "/beta/v1/chat/completions"
RESPONSES = "/beta/v1/responses"


class HoldingProvider:
    """A provider that answers the model `held` when the test lets it, and others at once.

    Attributes:
        asked: requests so far.
        opened: whether `held` answers.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.opened = asyncio.Event()
        self.app = web.Application()
        self.app.router.add_post("/v1/chat/completions", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked += 1
        if body["model"] == "held":
            await self.opened.wait()
        text = body["messages"][-1]["content"]
        return web.Response(
            body=wire.whole("openai", body["model"], f"to {text}"), content_type="application/json"
        )


class Hosts:
    """Two gateways with one database and one clock."""

    def __init__(
        self,
        gateways: Sequence[Gateway],
        clock: JumpingClock,
        provider: HoldingProvider,
        engine: AsyncEngine,
    ) -> None:
        self.one, self.other = gateways
        self.engine = engine
        self.clock = clock
        self.provider = provider

    async def ask(
        self, at: Gateway, path: str, headers: dict[str, str] | None = None, **body: Any
    ) -> tuple[int, Any, Any]:
        """Return the status, the body and the headers of an answer."""
        asked = {"fallback": "disabled", **body}
        headers = headers or at.bearer()
        async with at.http.post(at.url + path, json=asked, headers=headers) as answer:
            return answer.status, await answer.json(), answer.headers

    async def chat(self, at: Gateway, text: str, **fields: Any) -> tuple[int, Any, Any]:
        """Ask for a chat completion."""
        body = {"model": "openai/quick", "messages": [{"role": "user", "content": text}]}
        return await self.ask(at, CHAT, **{**body, **fields})

    async def limited(self, limits: UsageLimits) -> dict[str, str]:
        """Return the headers of a new caller with limits."""
        accounts = AccountRepository(self.engine)
        key = await accounts.create_key("limited")
        owner = await accounts.identify(key)
        await LimitRepository(self.engine, Clock()).set(SubjectKind.USER, owner.user_id, limits)
        return {"Authorization": f"Bearer {key}"}

    async def claims(self, count: int) -> bool:
        """Return whether there are so many claims on memories."""
        async with reading(self.engine) as connection:
            return await connection.scalar(select(func.count()).select_from(claims)) == count

    async def renewed_claims(self) -> int:
        """Return the number of claims once all of them were renewed since the clock was set."""
        async with reading(self.engine) as connection:
            ends_ms = list(await connection.scalars(select(claims.c.ends_at_ms)))
        are_new = (abs(end_ms - self.clock.now_ms()) < HOUR_S * 500 for end_ms in ends_ms)
        return len(ends_ms) if all(are_new) else 0

    async def serve(self) -> None:
        """Assert that both serve."""
        for gateway in (self.one, self.other):
            async with gateway.http.get(f"{gateway.url}/healthz") as answer:
                assert answer.status == 200
            status, body, _ = await self.chat(gateway, "hello")
            assert status == 200, body


@pytest.fixture
async def hosts(tmp_path: Path) -> AsyncIterator[Hosts]:
    clock: Any = JumpingClock()
    provider = HoldingProvider()
    async with AsyncExitStack() as stack:
        upstream: Any = provider.app
        gateways: list[Gateway] = []
        for _ in range(2):
            started = await stack.enter_async_context(
                running_gateway(tmp_path, upstream, clock=clock, limits={"lease_every_s": 0.1})
            )
            gateways.append(started)
            upstream = started.upstream
        engine = open_engine(Storage(data_dir=tmp_path))
        stack.push_async_callback(engine.dispose)
        yield Hosts(gateways, clock, provider, engine)
        provider.opened.set()


@JUMPS
async def test_no_lock_is_stolen_from_its_holder(hosts: Hosts, jump_s: float) -> None:
    remembered = {"memory_id": "shared"}
    assert (await hosts.chat(hosts.one, "zero", **remembered))[0] == 200
    first = asyncio.create_task(hosts.chat(hosts.one, "first", model="openai/held", **remembered))
    await until(lambda: hosts.provider.asked == 2)
    second = asyncio.create_task(hosts.chat(hosts.other, "second", **remembered))
    await until(lambda: hosts.claims(2))
    hosts.clock.ahead_s += jump_s
    # Both renew their claims at the new time: the one that waits has looked at the other by then.
    assert await until(lambda: hosts.renewed_claims()) == 2
    hosts.provider.opened.set()
    for answer in (await first, await second):
        assert answer[0] == 200, answer
    async with hosts.one.http.get(
        f"{hosts.one.url}/beta/v1/memories/shared/turns", headers=hosts.one.api_key()
    ) as listed:
        listing = await listed.text()
    for text in ("to zero", "to first", "to second"):
        assert text in listing
    await hosts.serve()


@JUMPS
async def test_a_background_response_goes_on(hosts: Hosts, jump_s: float) -> None:
    asked = {"model": "openai/held", "input": "hi", "background": True}
    status, queued, _ = await hosts.ask(hosts.one, RESPONSES, **asked)
    assert status == 200, queued
    await until(lambda: hosts.provider.asked == 1)
    hosts.clock.ahead_s += jump_s

    async def state() -> str:
        url = f"{hosts.other.url}{RESPONSES}/{queued['id']}"
        async with hosts.other.http.get(url, headers=hosts.other.bearer()) as answer:
            return str((await answer.json())["status"])

    assert await state() == "in_progress"
    hosts.provider.opened.set()
    assert await until(lambda: _unless_in_progress(state())) == "completed"
    await hosts.serve()


async def _unless_in_progress(state: Coroutine[Any, Any, str]) -> str:
    result = await state
    return "" if result == "in_progress" else result


@JUMPS
async def test_slots_are_neither_multiplied_nor_lost(hosts: Hosts, jump_s: float) -> None:
    caller = await hosts.limited(UsageLimits(concurrent_requests=1))
    held = asyncio.create_task(hosts.chat(hosts.one, "first", model="openai/held", headers=caller))
    await until(lambda: hosts.provider.asked == 1)
    hosts.clock.ahead_s += jump_s
    for _ in range(3):
        status, body, _ = await hosts.chat(hosts.other, "second", headers=caller)
        assert status == 429, body
    hosts.provider.opened.set()
    assert (await held)[0] == 200

    async def is_answered() -> bool:
        return (await hosts.chat(hosts.other, "third", headers=caller))[0] == 200

    assert await until(is_answered, every_s=0.2)
    await hosts.serve()


@JUMPS
async def test_a_limit_per_minute_is_for_a_minute(hosts: Hosts, jump_s: float) -> None:
    caller = await hosts.limited(UsageLimits(requests_per_minute=2))
    statuses = []
    for _ in range(2):
        # Either two are answered, or a minute has begun.
        for _ in range(8):
            status, body, headers = await hosts.chat(hosts.one, "hello", headers=caller)
            statuses.append(status)
            if status == 429:
                assert 1 <= int(headers["retry-after"]) <= 60, body
        assert statuses[-1] == 429
        hosts.clock.ahead_s += jump_s
    assert statuses.count(200) <= 8
    await hosts.serve()


async def test_no_expired_session_is_revived(hosts: Hosts) -> None:
    user = User(hosts.one.http, hosts.one.url, hosts.one.key)
    document = await user.create_document()
    session = await user.open_document(document)
    hosts.clock.ahead_s += HOUR_S
    expired = await user.insert(session, "late")
    assert expired.code == 41001, expired
    hosts.clock.ahead_s -= HOUR_S
    assert (await user.insert(session, "late")).code == 41001
    assert await user.open_document(document) != session
    await hosts.serve()
