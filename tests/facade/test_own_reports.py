"""Reports of a caller's own requests: the request log and activity, without those of others."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECTIONS: dict[str, Any] = {
    "usage": {"write_every_s": 0.05},
    "request_log": {"enabled": True, "bodies": True, "write_every_s": 0.05},
    "limits": {"breaker_failures": 100},
    "models": [
        {"name": "a", "provider": "openai", "upstream": "echo"},
        {"name": "broken", "provider": "openai", "upstream": "fail-500"},
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(folder: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(folder, **SECTIONS) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other_key(gateway: Gateway, folder: Path) -> str:
    """Return the key of another user."""
    engine = open_engine(Storage(data_dir=folder))
    key = await AccountRepository(engine).create_key("other")
    await engine.dispose()
    return key


async def get(gateway: Gateway, path: str, key: str = "", **query: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key or gateway.key}"}
    url = f"{gateway.url}/v1/usage/{path}"
    async with gateway.http.get(url, params=query, headers=headers) as answer:
        return answer.status, await answer.json()


async def ask(gateway: Gateway, request_id: str, key: str, **body: Any) -> None:
    headers = {"Authorization": f"Bearer {key}", "x-request-id": request_id}
    url = f"{gateway.url}/v1/chat/completions"
    body = {"messages": [{"role": "user", "content": "Hi"}], **body}
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        await answer.read()


async def listed(gateway: Gateway, request_id: str, key: str = "") -> Any:
    """Return the entry of a request, once it is there."""
    entries: list[Any] = []

    async def is_logged() -> bool:
        status, page = await get(gateway, "requests", key, request_id=request_id)
        assert status == 200, page
        entries[:] = page["data"]
        return bool(entries)

    await until(is_logged, within_s=20, every_s=0.05)
    return entries[0]


async def test_nobody_sees_requests_of_others(gateway: Gateway, other_key: str) -> None:
    await ask(gateway, "mine", gateway.key, model="a")
    await ask(gateway, "theirs", other_key, model="a")
    mine, theirs = await listed(gateway, "mine"), await listed(gateway, "theirs", other_key)
    assert mine["user_id"] != theirs["user_id"]

    _, page = await get(gateway, "requests", request_id="theirs")
    assert page["data"] == []
    _, page = await get(gateway, "requests", key_id=theirs["key_id"])
    assert page["data"] == []
    status, body = await get(gateway, f"requests/{theirs['id']}")
    unknown = await get(gateway, "requests/log_none")
    assert (status, body["error"]["code"]) == (404, "not_found")
    assert unknown[1]["error"]["message"] == body["error"]["message"]
    status, body = await get(gateway, "requests", user_id=theirs["user_id"])
    assert (status, body["error"]["param"]) == (400, "user_id")

    status, entry = await get(gateway, f"requests/{mine['id']}")
    assert status == 200
    assert "Hi" in entry["request_body"]["content"]
    assert entry["headers"]["x-gateway-model"] == "a"
    assert entry["failed_attempts"] == []


async def test_activity_is_that_of_the_caller(gateway: Gateway, other_key: str) -> None:
    for number in range(2):
        await ask(gateway, f"active-{number}", gateway.key, model="a")
    await ask(gateway, "other", other_key, model="a")

    async def requests(key: str = "", **query: Any) -> int:
        status, page = await get(gateway, "activity", key, by="day", **query)
        assert status == 200, page
        return sum(row["requests"] for row in page["data"])

    async def are_recorded() -> bool:
        return await requests() >= 2 and await requests(other_key) >= 1

    await until(are_recorded, within_s=20, every_s=0.05)
    entry = await listed(gateway, "other", other_key)
    assert await requests(key_id=entry["key_id"]) == 0
    status, body = await get(gateway, "activity", split_by="user")
    assert (status, body["error"]["param"]) == (400, "split_by")


async def test_attempts_and_headers_are_kept(gateway: Gateway) -> None:
    steps = [{"step_id": "second", "model": "a"}]
    chain = {"strategy": {"mode": "sequential"}, "steps": steps}
    fallback = {"fallback": "enabled", "fallback_config": chain}
    await ask(gateway, "second", gateway.key, model="broken", **fallback)
    await ask(gateway, "failed", gateway.key, model="broken", fallback="disabled")
    answered = await get(gateway, f"requests/{(await listed(gateway, 'second'))['id']}")
    failed = await get(gateway, f"requests/{(await listed(gateway, 'failed'))['id']}")
    for _, entry in (answered, failed):
        assert entry["failed_attempts"][0]["model"] == "openai/fail-500"
        assert entry["failed_attempts"][0]["status"] == 500
    assert answered[1]["headers"]["x-gateway-step"] == "second"
    assert len(answered[1]["failed_attempts"]) == answered[1]["attempts"] - 1
    assert failed[1]["headers"].get("x-should-retry") in ("false", None)
    assert failed[1]["model"] != "a"
