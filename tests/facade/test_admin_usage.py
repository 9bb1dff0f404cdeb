"""Usage over HTTP, of requests that a gateway served."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.inference.usage.model_names import MAX_UNKNOWN
from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

KEY = make_admin_key(bytes(32))
SECTIONS: dict[str, Any] = {
    "admin": {"key_sha256": hash_admin_key(KEY).hex()},
    "usage": {"write_every_s": 0.05},
    "models": [
        {"name": name, "provider": "openai", "upstream": "echo", "price": price}
        for name, price in (("a", {"input": 1, "output": 2}), ("b", {"request": "0.001"}))
    ],
}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, **SECTIONS) as running:
        yield running


async def usage(
    gateway: Gateway, key: str = KEY, path: str = "usage", **query: Any
) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    url = f"{gateway.url}/admin/v1/{path}"
    async with gateway.http.get(url, params=query, headers=headers) as answer:
        return answer.status, await answer.json()


async def ask(gateway: Gateway, model: str) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi there"}]}
    url = f"{gateway.url}/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 200
        return (await answer.json())["usage"]


async def sums_of(gateway: Gateway, requests: int) -> list[Any]:
    """Return usage by model, once so many requests are recorded."""
    found: list[Any] = []

    async def is_recorded() -> bool:
        found[:] = (await usage(gateway, by="model", limit=100))[1]["data"]
        return sum(one["requests"] for one in found) >= requests

    await until(is_recorded, within_s=20, every_s=0.05)
    return found


async def test_what_was_asked_is_summed_up(gateway: Gateway) -> None:
    told = [await ask(gateway, model) for model in ("a", "a", "b")]
    one, other = await sums_of(gateway, 3)
    assert (one["object"], one["id"], one["name"]) == ("usage", "a", None)
    assert one["requests"] == 2
    assert one["input_tokens"] == sum(usage["prompt_tokens"] for usage in told[:2])
    cost = sum(u["prompt_tokens"] + 2 * u["completion_tokens"] for u in told[:2])
    assert one["cost"] == f"{cost / 1e6:.6f}".rstrip("0")
    # Its tokens have no price, so the cost of the answer is not known.
    assert (other["id"], other["cost"], other["unpriced"]) == ("b", "0", 1)
    _, by_user = await usage(gateway, by="user")
    assert [user["name"] for user in by_user["data"]] == ["tester"]


async def test_hours_are_told_with_their_latencies(gateway: Gateway) -> None:
    for model in ("a", "a", "b"):
        await ask(gateway, model)
    await sums_of(gateway, 3)
    _, report = await usage(gateway, path="activity", by="model", split_by="user")
    one, other = report["data"]
    assert (one["object"], one["id"], one["requests"]) == ("activity", "a", 2)
    assert one["split_name"] == "tester" and one["split_id"].startswith("user_")
    assert one["duration_ms"]["count"] == 2
    assert 0 <= one["duration_ms"]["p50"] <= one["duration_ms"]["max"]
    assert (other["id"], other["cancelled_requests"], other["unpriced"]) == ("b", 0, 1)
    _, report = await usage(gateway, path="activity", model="b")
    [hour] = report["data"]
    assert hour["id"].endswith(":00:00Z")
    assert (hour["requests"], hour["split_id"]) == (1, None)
    _, report = await usage(gateway, path="activity", until=1)
    assert report["data"] == []


async def test_filters_of_days_leave_others_out(gateway: Gateway) -> None:
    for model in ("a", "b"):
        await ask(gateway, model)
    await sums_of(gateway, 2)
    [day] = (await usage(gateway, model="b"))[1]["data"]
    assert day["requests"] == 1
    assert (await usage(gateway, user_id="user_none"))[1]["data"] == []


async def test_invented_models_are_bounded(gateway: Gateway) -> None:
    invented = [f"openai/{number}-{'x' * 200}" for number in range(MAX_UNKNOWN + 10)]
    for model in invented:
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
        url = f"{gateway.url}/v1/chat/completions"
        async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
            assert answer.status == 404
    await ask(gateway, "a")
    requests = {one["id"]: one["requests"] for one in await sums_of(gateway, len(invented) + 1)}
    assert requests == {"a": 1, "other": 10, **dict.fromkeys(invented[:MAX_UNKNOWN], 1)}
    _, report = await usage(gateway, path="activity", by="model", limit=100)
    assert {one["id"] for one in report["data"]} == requests.keys()


async def test_pages_follow_each_other(gateway: Gateway) -> None:
    for model in ("a", "b"):
        await ask(gateway, model)
    await sums_of(gateway, 2)
    _, first = await usage(gateway, by="model", limit=1)
    assert (first["has_more"], [one["id"] for one in first["data"]]) == (True, ["a"])
    _, second = await usage(gateway, by="model", limit=1, page=first["next_page"])
    assert (second["has_more"], [one["id"] for one in second["data"]]) == (False, ["b"])


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"by": "colour"}, "by"),
        ({"from_day": "2026-02-30"}, "from_day"),
        ({"to_day": "today"}, "to_day"),
        ({"page": "x"}, "page"),
        ({"limit": 0}, "limit"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_wrong_queries_name_the_parameter(
    gateway: Gateway, query: dict[str, Any], param: str
) -> None:
    status, answer = await usage(gateway, **query)
    assert (status, answer["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"by": "colour"}, "by"),
        ({"split_by": "hour"}, "split_by"),
        ({"by": "model", "split_by": "model"}, "split_by"),
        ({"since": 2, "until": 1}, "since"),
        ({"since": 0}, "since"),
        ({"page": "x"}, "page"),
        ({"from_day": "2026-11-23"}, "from_day"),
    ],
)
async def test_wrong_times_name_the_parameter(
    gateway: Gateway, query: dict[str, Any], param: str
) -> None:
    status, answer = await usage(gateway, path="activity", **query)
    assert (status, answer["error"]["param"]) == (400, param)


async def test_users_see_nothing_of_it(gateway: Gateway) -> None:
    status, _ = await usage(gateway, key=gateway.key)
    assert status == 401


async def test_without_usage_nothing_is_recorded(tmp_path: Path) -> None:
    sections = SECTIONS | {"usage": {"enabled": False, "write_every_s": 0.05}}
    async with running_gateway(tmp_path, **sections) as gateway:
        await ask(gateway, "a")
        assert (await usage(gateway))[1]["data"] == []
    assert not (tmp_path / "usage").exists()
