"""Usage over HTTP, of requests that a gateway served."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
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


async def usage(gateway: Gateway, key: str = KEY, **query: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    url = f"{gateway.url}/admin/v1/usage"
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
        found[:] = (await usage(gateway, by="model"))[1]["data"]
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


async def test_users_see_nothing_of_it(gateway: Gateway) -> None:
    status, _ = await usage(gateway, key=gateway.key)
    assert status == 401


async def test_without_usage_nothing_is_recorded(tmp_path: Path) -> None:
    sections = SECTIONS | {"usage": {"enabled": False, "write_every_s": 0.05}}
    async with running_gateway(tmp_path, **sections) as gateway:
        await ask(gateway, "a")
        assert (await usage(gateway))[1]["data"] == []
    assert not (tmp_path / "usage").exists()
