"""Stored data, changes and counts of one host are visible at the other."""

import asyncio
import time
from collections import Counter
from functools import partial

import aiohttp

from tests.e2e.users import User
from tests.hosts.cluster import Administrator, Cluster
from tests.waiting import until

PARALLEL, LIMIT = 1_000, 100


async def both(
    cluster: Cluster, http: aiohttp.ClientSession, name: str, **limits: int
) -> tuple[User, User]:
    """Return a new user at the first host, and the same at the second."""
    key = await Administrator(http, cluster.hosts[0].url).key(name, **limits)
    one, other = (User(http, host.url, key) for host in cluster.hosts[:2])
    return one, other


async def test_files_are_at_either_host(cluster: Cluster, http: aiohttp.ClientSession) -> None:
    one, other = await both(cluster, http, "files")
    made = await one.upload(b"of the first")
    assert await other.content(made.body["id"]) == b"of the first"
    assert (await other.delete_file(made.body["id"])).status == 200
    assert (await one.files()).body["data"] == []


async def test_documents_and_sessions_are_at_either_host(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = await both(cluster, http, "documents")
    session = await one.open_document(await other.create_document())
    edits = [(one, "first"), (other, "second"), (one, "third"), (other, "fourth")]
    for user, text in edits:
        assert (await user.insert(session, text)).status == 200
    for user in (one, other):
        assert await user.read(session) == ["fourth", "third", "second", "first"]


async def test_edits_at_both_hosts_at_once_all_stay(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = await both(cluster, http, "editors")
    session = await one.open_document(await one.create_document())
    texts = [f"{number}" for number in range(20)]
    edits = (
        (one if number % 2 else other).insert(session, text) for number, text in enumerate(texts)
    )
    assert {answer.status for answer in await asyncio.gather(*edits)} == {200}
    assert sorted(await one.read(session)) == sorted(texts)


async def test_a_conversation_goes_on_at_either_host(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = await both(cluster, http, "talkers")
    texts = [f"turn {number}" for number in range(6)]
    for number, text in enumerate(texts):
        user = other if number % 2 else one
        assert (await user.chat(text, memory_id="talk")).status == 200
    assert await one.turns("talk") == await other.turns("talk") == texts
    answer = await one.chat("All? (sandbox: recite)", memory_id="talk")
    assert "turn 5" in str(answer.body)


async def test_turns_at_both_hosts_at_once_are_in_one_order(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = await both(cluster, http, "callers")
    texts = [f"{number}" for number in range(12)]
    turns = (
        (one if number % 2 else other).chat(text, memory_id="busy")
        for number, text in enumerate(texts)
    )
    answers = await asyncio.gather(*turns)
    assert [one for one in answers if one.status != 200] == []
    kept = await one.turns("busy")
    assert sorted(kept) == sorted(texts)
    assert await other.turns("busy") == kept


async def test_stored_responses_continue_at_the_other_host(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = await both(cluster, http, "responses")
    first = await one.response("My name is Ada. (sandbox: recite)")
    read = await other.stored_response(first.body["id"])
    assert read.body["output"] == first.body["output"]
    answer = await other.response("And? (sandbox: recite)", previous_response_id=first.body["id"])
    assert "My name is Ada." in str(answer.body["output"])
    assert (await one.stored_response(answer.body["id"])).status == 200


async def test_a_background_response_ends_for_either_host(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = await both(cluster, http, "background")
    begun = await one.response("Hello", background=True)

    async def is_over() -> bool:
        read = await other.stored_response(begun.body["id"])
        return read.body["status"] not in {"queued", "in_progress"}

    await until(is_over, within_s=20)
    ended = await other.stored_response(begun.body["id"])
    assert ended.body["status"] == "completed"


async def test_admin_changes_count_at_either_host(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = (Administrator(http, host.url) for host in cluster.hosts[:2])
    made = await one.call("POST", "keys", {"user": "administered", "name": "ci"})
    assert (await other.call("GET", f"keys/{made['id']}"))["name"] == "ci"
    limits = {"requests_per_minute": 1, "allowed_models": ["sandbox/*"]}
    await other.call("PUT", f"keys/{made['id']}/limits", limits)
    read = await one.call("GET", f"keys/{made['id']}/limits")
    assert read["requests_per_minute"] == 1
    # A key that no process knows yet: its limits count with its first request.
    users = [User(http, host.url, made["key"]) for host in cluster.hosts]
    assert (await users[1].chat("Hello", model="openai/gpt-4o")).status == 403
    await other.call("POST", f"keys/{made['id']}/revoke")
    assert (await users[0].chat("Hello")).status == 401
    audit = await one.call("GET", f"audit?subject_id={made['id']}")
    assert len(audit["data"]) >= 2


async def test_of_parallel_requests_exactly_the_limit_passes(
    cluster: Cluster, http: aiohttp.ClientSession, admin: Administrator
) -> None:
    minute = -1
    while minute != int(time.time() // 60):
        minute = int(time.time() // 60)
        # When the minute ends meanwhile, another user tries again in the next one.
        user = await admin.user(f"hurried-{minute}", requests_per_minute=LIMIT)
        answers = await asyncio.gather(*(user.chat("Hello") for _ in range(PARALLEL)))
    assert Counter(one.status for one in answers) == {200: LIMIT, 429: PARALLEL - LIMIT}
    assert all(one.retry_after_s for one in answers if one.status == 429)


async def test_requests_under_way_are_counted_over_both_hosts(
    cluster: Cluster, http: aiohttp.ClientSession
) -> None:
    one, other = await both(cluster, http, "parallel", concurrent_requests=2)
    held = [asyncio.create_task(hold(user)) for user in (one, other)]
    for user in (one, other):
        await until(partial(has_status, user, 429), within_s=20)
    for task in held:
        task.cancel()
    for user in (one, other):
        await until(partial(has_status, user, 200), within_s=20)


async def hold(user: User) -> None:
    """Ask for what never comes, again while others have all places."""
    while (await user.chat("Hello", model="sandbox/stall", fallback="disabled")).status == 429:
        pass


async def has_status(user: User, status: int) -> bool:
    return (await user.chat("Hello")).status == status
