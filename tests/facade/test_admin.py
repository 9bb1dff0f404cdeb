"""Administration over HTTP, over the real services."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.gateway_in_process import Gateway, running_gateway

KEY = make_admin_key(bytes(32))
OTHER = make_admin_key(b"\xff" * 32)
ADMIN = {"admin": {"key_sha256": hash_admin_key(KEY).hex()}}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, **ADMIN) as running:
        yield running


async def call(
    gateway: Gateway, method: str, path: str, body: Any = None, key: str = KEY
) -> tuple[int, Any]:
    """Send a request; return the status and the JSON of the answer."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"{gateway.url}/admin/v1{path}"
    async with gateway.http.request(method, url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def done(gateway: Gateway, method: str, path: str, body: Any = None) -> Any:
    """Send a request that is answered 200; return the JSON of the answer."""
    status, answer = await call(gateway, method, path, body)
    assert status == 200, answer
    return answer


async def test_a_key_is_created_and_opens_the_gateway(gateway: Gateway) -> None:
    made = await done(gateway, "POST", "/keys", {"user": "ada", "team": "lab", "plan": "team_pro"})
    assert made["object"] == "api_key"
    assert (made["user"], made["team"], made["plan"]) == ("ada", "lab", "team_pro")
    headers = {"Authorization": f"Bearer {made['key']}"}
    async with gateway.http.get(f"{gateway.url}/v1/models", headers=headers) as answer:
        assert answer.status == 200
    del made["key"]
    assert await done(gateway, "GET", f"/keys/{made['id']}") == made


@pytest.mark.parametrize("path", ["/keys", "/users", "/teams", "/audit", "/keys/key_1"])
async def test_no_key_and_other_keys_open_nothing(gateway: Gateway, path: str) -> None:
    for key in ("", gateway.key, OTHER, KEY[:-1], f"{KEY}A"):
        status, answer = await call(gateway, "GET", path, key=key)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")


async def test_an_admin_key_opens_nothing_else(gateway: Gateway) -> None:
    for path in ("/v1/models", "/beta/v1/files", "/beta/v1/memories"):
        for headers in ({"Authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}):
            async with gateway.http.get(gateway.url + path, headers=headers) as answer:
                assert answer.status == 401


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
async def test_without_an_admin_key_there_are_no_such_paths(tmp_path: Path, method: str) -> None:
    async with running_gateway(tmp_path) as gateway:
        for path in ("/keys", "/keys/key_1/revoke", "/nothing"):
            for key in ("", gateway.key, KEY):
                status, answer = await call(gateway, method, path, key=key)
                assert status == 404
                assert answer["error"]["code"] == "unknown_path"
                assert answer["error"]["message"] == (
                    f"{method} /admin/v1{path}: there is no such endpoint; GET /docs lists them"
                )
