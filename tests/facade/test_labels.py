"""Tags and end users of requests: what callers send, and the reports of their usage."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

KEY = make_admin_key(bytes(32))
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
RESPONSES, EMBEDDINGS = "/v1/responses", "/v1/embeddings"
PRICE = {"input": 0, "output": 0, "request": 1}
USAGE = {"tags": ["project", "feature"], "end_users": True, "max_label_values": 3}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with labelled(tmp_path) as running:
        yield running


def labelled(folder: Path, **usage: Any) -> Any:
    # No minute ends within a test.
    now_s = time.time() // 60 * 60
    return running_gateway(
        folder,
        clock=Clock(lambda: now_s),
        admin={"key_sha256": hash_admin_key(KEY).hex()},
        usage={"write_every_s": 0.05, **(usage or USAGE)},
        models=[{"name": "m", "provider": "openai", "upstream": "echo", "price": PRICE}],
    )


async def ask(
    gateway: Gateway,
    path: str = CHAT,
    headers: dict[str, str] | None = None,
    *,
    key: str = "",
    **fields: Any,
) -> tuple[int, Any]:
    """Return the status of an answer and its body."""
    content: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    if path in (RESPONSES, EMBEDDINGS):
        content = {"input": "Hi"}
    model = "sandbox/embed" if path == EMBEDDINGS else "m"
    caller = {"Authorization": f"Bearer {key or gateway.key}"}
    if path == MESSAGES:
        caller = {"x-api-key": gateway.key, "anthropic-version": "2023-06-01"}
    async with gateway.http.post(
        gateway.url + path,
        json={"model": model, **content, **fields},
        headers={**caller, **(headers or {})},
    ) as answer:
        return answer.status, await (answer.text() if fields.get("stream") else answer.json())


async def report(gateway: Gateway, **query: str) -> tuple[int, Any]:
    """Return the status of a report, and the requests of its groups, of a failure its message."""
    headers = {"Authorization": f"Bearer {KEY}"}
    url = f"{gateway.url}/admin/v1/usage"
    async with gateway.http.get(url, params={"limit": "100", **query}, headers=headers) as answer:
        body = await answer.json()
    if answer.status != 200:
        return answer.status, body["error"]["message"]
    return 200, {one["id"]: one["requests"] for one in body["data"]}


async def admin(gateway: Gateway, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {KEY}"}
    url = f"{gateway.url}/admin/v1/{path}"
    async with gateway.http.request(method, url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def tester_id(gateway: Gateway) -> str:
    _, users = await admin(gateway, "GET", "users?name=tester")
    return str(users["data"][0]["id"])


async def recorded(gateway: Gateway, requests: int) -> None:
    async def are_recorded() -> bool:
        return sum((await report(gateway, by="user"))[1].values()) >= requests

    assert await until(are_recorded, within_s=20, every_s=0.05)


async def test_requests_are_summed_up_by_tags(gateway: Gateway) -> None:
    tags = {"x-gateway-tags": "project=alpha, feature=caf%C3%A9,other=x"}
    for path in (CHAT, MESSAGES, RESPONSES, EMBEDDINGS):
        assert (await ask(gateway, path, tags))[0] == 200
    metadata = {"project": "beta", "unknown": "x"}
    assert (await ask(gateway, metadata=metadata, stream=True))[0] == 200
    assert (await ask(gateway, RESPONSES, metadata=metadata, background=True))[0] == 200
    # The header takes precedence.
    await ask(gateway, RESPONSES, {"x-gateway-tags": "project=alpha"}, metadata=metadata)
    await ask(gateway)
    await recorded(gateway, 8)
    assert await report(gateway, by="tag", tag="project") == (200, {"alpha": 5, "beta": 2})
    assert await report(gateway, by="tag", tag="feature") == (200, {"café": 4})
    assert await report(gateway, by="tag", tag="other") == (200, {})
    by_model = await report(gateway, by="model", tag="project=alpha")
    assert by_model == (200, {"m": 4, "sandbox/embed": 1})


async def test_end_users_are_those_of_one_user(gateway: Gateway, tmp_path: Path) -> None:
    header = {"x-gateway-end-user": "ada%20l"}
    await ask(gateway, headers=header, user="ignored")
    await ask(gateway, user="ada l")
    await ask(gateway, safety_identifier="eve", user="ignored")
    await ask(gateway, MESSAGES, metadata={"user_id": "eve"})
    await ask(gateway, RESPONSES, safety_identifier="eve")
    await ask(gateway, EMBEDDINGS, user="eve")
    engine = open_engine(Storage(data_dir=tmp_path))
    other_key = await AccountRepository(engine).create_key("other")
    await engine.dispose()
    await ask(gateway, key=other_key, user="eve")
    await recorded(gateway, 7)
    users = (await report(gateway, by="user"))[1]
    [tester, other] = sorted(users, key=lambda user: -users[user])
    of_tester = await report(gateway, by="end_user", user_id=tester)
    assert of_tester == (200, {"ada l": 2, "eve": 4})
    assert await report(gateway, by="end_user", user_id=other) == (200, {"eve": 1})
    by_key = await report(gateway, by="user", user_id=other, end_user="eve")
    assert by_key == (200, {other: 1})
    status, message = await report(gateway, by="end_user")
    assert status == 400 and "user_id" in message


async def test_too_many_values_are_counted_as_one(gateway: Gateway) -> None:
    long = "x" * 99
    for value in ("a", "b", long, "c", "d", "a"):
        await ask(gateway, metadata={"project": value})
    await recorded(gateway, 6)
    sums = (await report(gateway, by="tag", tag="project"))[1]
    [shown] = sums.keys() - {"a", "b", "(other)"}
    assert shown.startswith("xxx") and len(shown) == 64
    assert sums == {"a": 2, "b": 1, shown: 1, "(other)": 2}
    labels = {"label": "project"}
    counted = gateway.counters.get_sample_value("gateway_usage_labels_other_total", labels)
    assert counted == 2


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-gateway-tags", "project"),
        ("x-gateway-tags", "project=%FF"),
        ("x-gateway-tags", "project=a," * 999),
        ("x-gateway-end-user", ""),
        ("x-gateway-end-user", "%FF"),
    ],
)
async def test_a_malformed_header_is_named(gateway: Gateway, header: str, value: str) -> None:
    for path in (CHAT, MESSAGES):
        status, body = await ask(gateway, path, {header: value})
        assert status == 400
        assert body["error"]["message"].startswith(f"{header}: must be")


async def test_reports_refuse_what_is_not_summed_up(gateway: Gateway) -> None:
    for query, name in (
        ({"by": "tag"}, "tag"),
        ({"by": "model", "tag": "project"}, "tag"),
        ({"by": "end_user", "user_id": "user_1", "tag": "project=a"}, "tag"),
    ):
        status, message = await report(gateway, **query)
        assert (status, message.split(":")[0]) == (400, name), query


async def test_labels_mean_nothing_unless_they_are_enabled(tmp_path: Path) -> None:
    async with labelled(tmp_path, enabled=True) as gateway:
        headers = {"x-gateway-tags": "=", "x-gateway-end-user": "%FF"}
        assert (await ask(gateway, headers=headers, metadata={"project": "a"}))[0] == 200
        await recorded(gateway, 1)
        assert await report(gateway, by="tag", tag="project") == (200, {})


async def test_each_end_user_has_the_default_limits(gateway: Gateway) -> None:
    user_id = await tester_id(gateway)
    path = f"users/{user_id}/end-user-limits"
    status, limits = await admin(gateway, "PUT", path, {"requests_per_minute": 2})
    assert (status, limits["subject_kind"], limits["subject_id"]) == (200, "end_users", user_id)
    own = f"users/{user_id}/end-users/eve/limits"
    assert (await admin(gateway, "PUT", own, {"requests_per_minute": 1}))[0] == 200
    for path, fields in (
        (CHAT, {"user": "ada"}),
        (MESSAGES, {"metadata": {"user_id": "eve"}}),
    ):
        statuses = [(await ask(gateway, path, **fields))[0] for _ in range(3)]
        assert statuses == ([200, 200, 429] if path == CHAT else [200, 429, 429])
    for path in (CHAT, RESPONSES, EMBEDDINGS):
        status, body = await ask(gateway, path, {"x-gateway-end-user": "ada"})
        message = body["error"]["message"]
        assert status == 429
        assert message.startswith("the limit of the end user, 2 requests per minute, is reached")
    # Neither others nor requests without an end user are limited.
    assert (await ask(gateway, user="bob"))[0] == (await ask(gateway))[0] == 200
    _, shown = await admin(gateway, "GET", f"users/{user_id}/end-users/ada/limits")
    assert shown["requests_per_minute"] is None
    [state] = shown["usage"]
    assert (state["subject_id"], state["limit"], state["used"]) == (f"{user_id}/ada", 2, 2)
    assert (await admin(gateway, "DELETE", own))[0] == 200


async def test_end_users_of_others_have_no_limits(gateway: Gateway, tmp_path: Path) -> None:
    user_id = await tester_id(gateway)
    await admin(gateway, "PUT", f"users/{user_id}/end-user-limits", {"requests_per_minute": 0})
    engine = open_engine(Storage(data_dir=tmp_path))
    other_key = await AccountRepository(engine).create_key("other")
    await engine.dispose()
    assert (await ask(gateway, user="eve"))[0] == 429
    assert (await ask(gateway, key=other_key, user="eve"))[0] == 200


async def test_a_tag_has_a_budget_with_what_was_spent(gateway: Gateway) -> None:
    tags = {"x-gateway-tags": "project=alpha"}
    assert (await ask(gateway, headers=tags))[0] == 200
    await recorded(gateway, 1)
    path = "tags/project/alpha/limits"
    status, limits = await admin(gateway, "PUT", path, {"spend_per_month": "0.001"})
    assert (status, limits["subject_id"]) == (200, "project=alpha")
    _, shown = await admin(gateway, "GET", path)
    assert [one["used"] for one in shown["usage"]] == ["0.001"]
    # Limits of the labels before are cached for two seconds.
    status, body = await ask(gateway, headers=tags, metadata={"feature": "x"})
    assert (status, body["error"]["code"]) == (429, "insufficient_quota")
    message = "the tag project=alpha has spent its budget of 0.001 US dollars a month"
    assert body["error"]["message"].startswith(message)
    assert (await ask(gateway, metadata={"project": "beta"}))[0] == 200
    status, budget = await admin(
        gateway, "POST", f"{path}/top-up", {"name": "spend_per_month", "amount": "1"}
    )
    assert (status, budget["limit"], budget["subject_id"]) == (200, "1.001", "project=alpha")


async def test_limits_of_labels_that_cannot_be_are_refused(gateway: Gateway) -> None:
    user_id = await tester_id(gateway)
    limits = {"requests_per_minute": 1}
    for path, body, status in (
        ("tags/Project/alpha/limits", limits, 400),
        ("users/user_0/end-users/eve/limits", limits, 404),
        ("users/user_0/end-user-limits", limits, 404),
        (
            f"users/{user_id}/end-user-limits",
            {"spend_per_day": "1", "soft_limit_percent": 50},
            400,
        ),
    ):
        assert (await admin(gateway, "PUT", path, body))[0] == status, path
