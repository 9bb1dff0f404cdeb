"""PostgreSQL that is killed under load, and started again, below hosts that go on."""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp

from tests.e2e.users import Answer, User
from tests.hosts.callers import Caller
from tests.hosts.cluster import Administrator, Cluster
from tests.waiting import until

CALLERS = 4
FAILED_CHATS = 50  # answered while the database is away, at least


async def test_a_restart_of_the_database_costs_only_what_needs_it(
    cluster: Cluster, http: aiohttp.ClientSession, admin: Administrator
) -> None:
    user = await admin.user("bob")
    callers = [await Caller.open(f"bob {number}", user) for number in range(CALLERS)]
    ending, chats_ending = asyncio.Event(), asyncio.Event()
    # Each host knows the key before the database goes.
    users = [User(http, host.url, user.key) for host in cluster.hosts]
    for one in users:
        assert (await one.chat("Hello")).status == 200
    chats: list[Answer] = []

    async def chat_on(one: User) -> None:
        while not chats_ending.is_set():
            chats.append(await one.chat("Hello"))

    chatting = [asyncio.create_task(chat_on(one)) for one in users]
    running = [asyncio.create_task(caller.run(ending)) for caller in callers]
    await until(lambda: all(caller.began_at for caller in callers), every_s=0.01)

    await asyncio.to_thread(cluster.database.kill)
    try:
        await needs_the_database(users[0], callers[0].session)
        await until(lambda: all(caller.failures for caller in callers), every_s=0.01)
        before = len(chats)
        await until(lambda: len(chats) >= before + FAILED_CHATS, every_s=0.01)
    finally:
        await asyncio.to_thread(cluster.database.start)

    rounds = {caller.name: len(caller.began_at) for caller in callers}
    await until(
        lambda: all(len(caller.began_at) > rounds[caller.name] + 1 for caller in callers),
        every_s=0.01,
    )
    ending.set()
    chats_ending.set()
    await asyncio.gather(*running, *chatting)
    assert {one.status for one in chats} == {200}
    for caller in callers:
        # What held a memory when the database went may have lost it: 409.
        assert {one.status for one in caller.failures} <= {503, 409}, caller.failures
        await caller.check()
    assert "unforeseen" not in cluster.output


async def needs_the_database(user: User, session: str) -> None:
    """Check that each endpoint says in its own shape that it cannot be served now."""
    openai: list[Callable[[], Awaitable[Answer]]] = [
        lambda: user.upload(b"content"),
        lambda: user.files(),
        lambda: user.chat("Hello", memory_id="talk"),
        lambda: user.response("Hello"),
        lambda: user.stored_response("resp_" + "0" * 26),
    ]
    for call in openai:
        answer = await call()
        assert answer.status == 503, answer
        assert answer.retry_after_s, answer
        assert answer.body["error"]["type"] == "server_error", answer
        assert answer.body["error"]["code"], answer
    message = await user.message("Hello", memory_id="talk")
    assert (message.status, message.body["type"]) == (503, "error"), message
    assert message.body["error"]["type"] == "overloaded_error", message
    assert message.retry_after_s
    edited = await user.insert(session, "text")
    assert (edited.status, edited.code) == (503, 50301), edited
    stranger = await user.with_key("gw-" + "z" * 43).chat("Hello")
    assert stranger.status == 503, stranger
