"""The lab: three hosts behind Envoy under a mixed load, and all that happens to hosts.

A host is killed, another hangs and goes on, hosts are stopped one after the other as at an upgrade,
the poolers are killed, and PostgreSQL. Nothing that was acknowledged is lost, usage is recorded
once, and a stop fails no request. `SOAK_SECONDS` is how long it all happens again; 1,200 by
default.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

import aiohttp
import asyncpg  # type: ignore[import-untyped]  # it brings no types
import pytest

from tests.e2e.users import Answer, User
from tests.hosts.callers import GENERATING, Asker, Caller
from tests.hosts.cluster import Administrator, Cluster, Host, start_again
from tests.hosts.ledger import BROKEN, Ledger
from tests.thoroughness import is_soak
from tests.waiting import until

SECONDS = float(os.environ.get("SOAK_SECONDS", "1200"))
# Two of each meet all events; more of them mostly wait for the processors.
CALLERS = 4 if is_soak() else 2
ASKERS = 4 if is_soak() else 2
KEYS_KNOWN_S = 15  # half of `limits.identify_cache_s`
CHATS_MEANWHILE = 50  # while the database is away, at least
LIMIT = 20
# What a failure may be that a caller repeats, as the SDKs do by themselves.
RETRIABLE = {BROKEN, 502, 503, 504}
LOST_MEMORY = 409  # what held a memory lost it


@dataclass
class Lab:
    """The hosts, and who calls them.

    Attributes:
        cluster: the hosts.
        http: connections to them.
        ledger: has all calls.
        callers: those who write.
        askers: those who ask.
        bystander: one who calls only during some events.
        random: chooses hosts.
        longest_outage_s: for how long PostgreSQL or a pooler was away.
    """

    cluster: Cluster
    http: aiohttp.ClientSession
    ledger: Ledger
    callers: list[Caller]
    askers: list[Asker]
    bystander: User
    random: Random = field(default_factory=lambda: Random(7))
    longest_outage_s: float = 0
    _running: list["asyncio.Task[None]"] = field(default_factory=list)

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Call the gateway with all of them within the context."""
        ending = asyncio.Event()
        runs = [one.run(ending) for one in (*self.callers, *self.askers)]
        self._running = [asyncio.create_task(run) for run in runs]
        try:
            yield
        finally:
            ending.set()
            await asyncio.gather(*self._running)

    async def rounds(self) -> None:
        """Wait until each caller has finished a round that begins from now on."""
        now = time.monotonic()
        await self.until(lambda: all(one.began_at > now for one in self.callers))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, while all of them go on."""

        def look() -> bool:
            assert not any(task.done() for task in self._running), self._running
            return holds()

        await until(look, every_s=0.01)

    async def healthy(self, count: int) -> None:
        """Wait until Envoy sends requests to so many hosts."""
        await until(lambda: self.cluster.are_healthy(self.http, count), every_s=0.05)

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Measure for how long something is away."""
        began_at = time.monotonic()
        yield
        self.longest_outage_s = max(self.longest_outage_s, time.monotonic() - began_at)

    @asynccontextmanager
    async def event(self, name: str) -> AsyncIterator[None]:
        """Name what happens meanwhile; it ends once each caller has finished a round after it."""
        self.ledger.event, began_at = name, time.monotonic()
        yield
        await self.healthy(len(self.cluster.hosts))
        await self.rounds()
        self.ledger.event = "between"
        self.ledger.seconds[name] += round(time.monotonic() - began_at)


async def kill_a_host(lab: Lab) -> None:
    """Kill a host; its callers are served by the others."""
    host = lab.random.choice(lab.cluster.hosts)
    before = {one.name: len(one.failures) for one in lab.callers}
    async with lab.event("host killed"):
        host.kill()
        await lab.rounds()
        await start_again(lab.cluster, host)
    for one in lab.callers:
        assert len(one.failures) - before[one.name] <= 1, one.failures


async def pause_a_host(lab: Lab) -> None:
    """Stop a host where it is until Envoy has noticed and the others serve; then it goes on."""
    host = lab.random.choice(lab.cluster.hosts)
    async with lab.event("host paused"):
        host.pause()
        try:
            await lab.healthy(len(lab.cluster.hosts) - 1)
            # All others may wait for the host by now.
            for _ in lab.cluster.hosts:
                assert (await lab.bystander.chat("Hello")).status == 200
        finally:
            host.resume()


async def stop_hosts(lab: Lab, hosts: Sequence[Host]) -> None:
    """Stop hosts in turn as an orchestrator does, which waits for each."""
    async with lab.event("rolling stop"):
        for host in hosts:
            await lab.rounds()
            assert await asyncio.to_thread(host.process.stop) == 0
            await start_again(lab.cluster, host)
            await lab.healthy(len(lab.cluster.hosts))


async def kill_the_poolers(lab: Lab) -> None:
    """Kill what is between hosts and PostgreSQL, and start it again once it was missed."""
    async with lab.event("poolers killed"):
        for pooler in lab.cluster.poolers:
            failed = len(lab.ledger.failures("poolers killed"))
            pooler.kill()
            await lab.until(
                lambda failed=failed: len(lab.ledger.failures("poolers killed")) > failed
            )
            pooler.start()


async def restart_the_database(lab: Lab) -> None:
    """Kill PostgreSQL, and start it again once it was missed; chats of known keys go on."""
    session = await lab.bystander.open_document(await lab.bystander.create_document())
    # This host has no pooler, whose callers wait for the database longer than keys are cached.
    direct = User(lab.http, lab.cluster.hosts[0].url, lab.bystander.key)
    async with lab.event("database killed"):
        with lab.outage():
            await asyncio.to_thread(lab.cluster.database.kill)
            try:
                await needs_the_database(direct, session)
                failed, calls = lab.ledger.failed, len(lab.ledger.calls)
                await lab.until(lambda: lab.ledger.failed > failed)
                await lab.until(lambda: len(lab.ledger.calls) > calls + CHATS_MEANWHILE)
            finally:
                await asyncio.to_thread(lab.cluster.database.start)


async def needs_the_database(bystander: User, session: str) -> None:
    """Check that each endpoint says in its own shape that it cannot be served now."""
    user = bystander
    openai: list[Callable[[], Awaitable[Answer]]] = [
        lambda: user.upload(b"content"),
        lambda: user.files(),
        lambda: user.chat("Hello", memory_id="other"),
        lambda: user.response("Hello"),
        lambda: user.stored_response("resp_" + "0" * 26),
    ]
    for call in openai:
        answer = await call()
        assert answer.status == 503, answer
        assert answer.retry_after_s, answer
        assert answer.body["error"]["type"] == "server_error", answer
        assert answer.body["error"]["code"], answer
    message = await user.message("Hello", memory_id="other")
    assert (message.status, message.body["type"]) == (503, "error"), message
    assert message.body["error"]["type"] == "overloaded_error", message
    assert message.retry_after_s
    edited = await user.insert(session, "text")
    assert (edited.status, edited.code) == (503, 50301), edited
    stranger = await user.with_key("gw-" + "z" * 43).chat("Hello")
    assert stranger.status == 503, stranger


async def opened(cluster: Cluster, admin: Administrator, name: str) -> Lab:
    """Return a lab with users of its own."""
    ledger = Ledger()
    limited = await admin.user(f"{name}-limited", requests_per_minute=LIMIT)
    names = [f"{name}-{number}" for number in range(CALLERS)]
    callers = [await Caller.open(one, await admin.user(one), ledger, limited) for one in names]
    askers = [
        Asker(f"{name}-asker-{number}", await admin.user(f"{name}-asker-{number}"), ledger)
        for number in range(ASKERS)
    ]
    return Lab(cluster, admin.http, ledger, callers, askers, await admin.user(f"{name}-bystander"))


async def check(lab: Lab, admin: Administrator, began_at: float) -> None:
    """Check all that the lab is about; the ledger's table is whole then."""
    ledger = lab.ledger
    for caller in lab.callers:
        for host in lab.cluster.hosts:
            ledger.lost.update(await caller.missing(User(lab.http, host.url, caller.user.key)))
    await check_usage(lab, admin)
    assert ledger.lost.total() == 0, ledger.lost
    assert [one for one in ledger.failures("rolling stop") if one.kind != "limited chat"] == []
    allowed = {event: RETRIABLE | {LOST_MEMORY} for event in ("host killed", "host paused")}
    allowed["poolers killed"] = allowed["database killed"] = {503, LOST_MEMORY}
    for call in ledger.calls:
        if call.kind == "limited chat":
            assert call.status in {200, 429} | allowed.get(call.event, set()), call
        elif call.status != 200:
            assert call.status in allowed.get(call.event, set()), call
            # A chat of a known key needs no database, unless it is away for longer than this.
            is_chat = call.kind in ("chat", "streamed chat")
            assert not is_chat or "host" in call.event or lab.longest_outage_s > KEYS_KNOWN_S, call
    admitted = sum(one.kind == "limited chat" and one.status == 200 for one in ledger.calls)
    minutes = int(time.time() // 60) - int(began_at // 60) + 1
    # A host that is killed takes with it what it had of the limit.
    assert 0 < admitted <= LIMIT * minutes
    assert "unforeseen" not in lab.cluster.output


async def check_usage(lab: Lab, admin: Administrator) -> None:
    """Check that each request of each user is recorded once, in the records and in their sums."""
    connection = await asyncpg.connect(lab.cluster.database.url)
    try:
        totals = [0, 0, 0]
        for caller in (*lab.callers, *lab.askers):
            calls = [
                one
                for one in lab.ledger.calls
                if one.caller == caller.name and one.kind in GENERATING
            ]
            answered = sum(one.status == 200 for one in calls)
            [user] = (await admin.call("GET", f"users?name={caller.name}"))["data"]

            async def are_recorded(user_id: str = user["id"], answered: int = answered) -> bool:
                return await _records(connection, user_id) >= answered

            with suppress(TimeoutError):
                await until(are_recorded, every_s=0.05)
            recorded = await _records(connection, user["id"])
            # One that failed may have been answered by a host whose answer was lost on its way.
            assert answered <= recorded <= len(calls), (caller.name, recorded, calls)
            sums = (await admin.call("GET", f"usage?by=user&user_id={user['id']}"))["data"]
            assert [one["requests"] for one in sums] == [recorded]
            totals = [
                total + more
                for total, more in zip(
                    totals, (answered, len(calls) - answered, recorded), strict=True
                )
            ]
        lab.ledger.usage = (totals[0], totals[1], totals[2])
    finally:
        await connection.close()


async def _records(connection: "asyncpg.Connection", user_id: str) -> int:
    """Return how many requests of a user are recorded, none of them twice."""
    count, distinct = await connection.fetchrow(
        "SELECT count(*), count(DISTINCT request_id) FROM usage_records WHERE user_id = $1", user_id
    )
    assert count == distinct
    return int(count)


@pytest.mark.soak
async def test_events_lose_nothing(cluster: Cluster, admin: Administrator) -> None:
    began_at = time.time()
    lab = await opened(cluster, admin, "lab")
    async with lab.load():
        await lab.rounds()
        await kill_a_host(lab)
        await pause_a_host(lab)
        await stop_hosts(lab, cluster.hosts[-1:])
        await kill_the_poolers(lab)
        await restart_the_database(lab)
    try:
        await check(lab, admin, began_at)
    finally:
        print(lab.ledger.table())


@pytest.mark.soak
async def test_events_lose_nothing_for_long(
    cluster: Cluster, admin: Administrator, capsys: pytest.CaptureFixture[str]
) -> None:
    began_at = time.time()
    lab = await opened(cluster, admin, "long")
    events = [
        *(kill_a_host, pause_a_host, kill_the_poolers, restart_the_database),
        lambda lab: stop_hosts(lab, cluster.hosts),
    ]
    async with lab.load():
        await lab.rounds()
        while time.time() < began_at + SECONDS:
            lab.random.shuffle(events)
            for event in events:
                await event(lab)
    await check(lab, admin, began_at)
    with capsys.disabled():
        print(f"\n{lab.ledger.table()}")
