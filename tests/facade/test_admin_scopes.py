"""Admin keys with names and scopes, over the real services."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from facade.endpoint import EndpointSpec
from facade.routes.admin import ENDPOINTS
from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.gateway_in_process import Gateway, running_gateway

SCOPES = ("read", "users", "money", "all")
KEYS = {scope: make_admin_key(scope.ljust(32).encode()) for scope in SCOPES}
SETTINGS = {
    "admin": {
        "keys": [
            {"name": f"{scope}er", "scopes": [scope], "key_sha256": hash_admin_key(key).hex()}
            for scope, key in KEYS.items()
        ]
    },
    "server": {"trusted_proxies": ["127.0.0.0/8"]},
}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("scopes"), **SETTINGS) as running:
        yield running


async def call(
    gateway: Gateway, scope: str, method: str, path: str, body: Any = None, forwarded: str = ""
) -> tuple[int, Any]:
    """Send a request with the key of a scope; return the status and the JSON of the answer."""
    headers = {"Authorization": f"Bearer {KEYS[scope]}", "X-Forwarded-For": forwarded}
    url = f"{gateway.url}/admin/v1{path}"
    async with gateway.http.request(method, url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


def required_scope(endpoint: EndpointSpec) -> str:
    if endpoint.method == "GET":
        return "read"
    if "providers" in endpoint.path:
        return "all"
    return "money" if re.search("limits|/model-groups", endpoint.path) else "users"


LIMITED = ("Key", "User", "Team", "Tag", "EndUser")
# Bodies that the endpoints accept, so that nothing but the scope can refuse them.
BODIES: dict[str, Any] = {
    "createKey": {"user": "eve"},
    "updateKey": {"name": "x"},
    "createUser": {"name": "mallory"},
    "updateUser": {"team": None},
    "createInvitation": {"role": "user"},
    "createTeam": {"name": "lab"},
    "updateTeam": {"plan": "team_pro"},
    "setModelGroup": {"models": []},
    "setStoredProvider": {"kind": "openai", "base_url": "https://llm.example.com/v1"},
    "testProvider": {},
    **{f"reset{kind}Budget": {"name": "spend_per_day"} for kind in LIMITED},
    **{f"topUp{kind}Budget": {"name": "spend_per_day", "amount": "1"} for kind in LIMITED},
}


async def test_a_request_without_the_scope_is_refused(gateway: Gateway) -> None:
    for endpoint in ENDPOINTS:
        path = re.sub("{[^}]*}", "none_1", endpoint.path.removeprefix("/admin/v1"))
        body = BODIES.get(endpoint.operation_id, {})
        for scope in SCOPES:
            status, answer = await call(gateway, scope, endpoint.method, path, body)
            row = (endpoint.method, endpoint.path, scope, answer)
            if scope in ("all", required_scope(endpoint)):
                assert status != 403, row
                continue
            assert (status, answer["error"]["code"]) == (403, "permission_denied"), row
            assert answer["error"]["message"] == (
                "this request requires an admin key with the scope "
                f"{required_scope(endpoint)!r}; this key has: {scope}"
            )


async def test_a_refused_request_changes_nothing(gateway: Gateway) -> None:
    assert (await call(gateway, "money", "POST", "/users", {"name": "trudy"}))[0] == 403
    _, users = await call(gateway, "read", "GET", "/users?name=trudy")
    _, log = await call(gateway, "read", "GET", "/audit?limit=1000")
    assert users["data"] == []
    assert all("trudy" not in str(entry) for entry in log["data"])


async def test_entries_name_the_actor_and_the_address(gateway: Gateway) -> None:
    forwarded = "203.0.113.5, 198.51.100.7"
    _, made = await call(gateway, "users", "POST", "/users", {"name": "ada"}, forwarded)
    path = f"/users/{made['id']}/limits"
    await call(gateway, "money", "PUT", path, {"requests_per_minute": 1}, "unknown")
    _, log = await call(gateway, "read", "GET", f"/audit?subject_id={made['id']}")
    assert [
        (entry["action"], entry["actor"], entry["actor_name"], entry["address"])
        for entry in log["data"]
    ] == [
        ("limits.set", "admin.keys.moneyer", "moneyer", "127.0.0.1"),
        ("user.create", "admin.keys.userser", "userser", "198.51.100.7"),
    ]
