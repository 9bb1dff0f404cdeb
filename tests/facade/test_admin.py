"""Administration over HTTP, over the real services."""

import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
import pytest_asyncio

from facade.dialects.admin import bodies
from facade.routes.admin import ENDPOINTS
from services.accounts.admin.admin_keys import AdminKeyRepository, hash_admin_key, make_admin_key
from services.accounts.admin.audit import SUBJECT_KINDS
from services.accounts.admin.keys import MAX_GRACE_S
from services.accounts.limits.rules import MAX_AMOUNT, MAX_PERIOD_DAYS
from services.accounts.plans import PLANS
from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row
from tests.manual_clock import ManualClock

KEY = make_admin_key(bytes(32))
OTHER = make_admin_key(b"\xff" * 32)
LIMITED = (
    *("requests_per_minute", "tokens_per_minute", "concurrent_requests"),
    *("spend_per_day", "spend_per_week", "spend_per_month", "spend_per_period"),
    *("period_start", "period_days", "soft_limit_percent", "allowed_models"),
)
PERIOD = {"spend_per_period": "1", "period_days": 7}
ADMIN = {"admin": {"key_sha256": hash_admin_key(KEY).hex()}}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("admin"), **ADMIN) as running:
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


async def test_choices_and_bounds_are_those_of_the_service() -> None:
    assert get_args(bodies.PlanName) == tuple(PLANS)
    assert get_args(bodies.Kind) == SUBJECT_KINDS
    assert bodies.MAX_GRACE_S == MAX_GRACE_S
    assert bodies.MAX_AMOUNT == MAX_AMOUNT
    assert bodies.MAX_PERIOD_DAYS == MAX_PERIOD_DAYS


async def test_a_key_is_created_and_opens_the_gateway(gateway: Gateway) -> None:
    made = await done(gateway, "POST", "/keys", {"user": "eve", "team": "club", "plan": "team_pro"})
    assert made["object"] == "api_key"
    assert (made["user"], made["team"], made["plan"]) == ("eve", "club", "team_pro")
    headers = {"Authorization": f"Bearer {made['key']}"}
    async with gateway.http.get(f"{gateway.url}/v1/models", headers=headers) as answer:
        assert answer.status == 200
    del made["key"]
    assert await done(gateway, "GET", f"/keys/{made['id']}") == made


async def test_no_key_and_other_keys_open_nothing(gateway: Gateway) -> None:
    for endpoint in ENDPOINTS:
        path = re.sub(r"{[^}]*}", "key_1", endpoint.path.removeprefix("/admin/v1"))
        for key in ("", gateway.key, OTHER, KEY[:-1], f"{KEY}A"):
            status, answer = await call(gateway, endpoint.method, path, {}, key=key)
            assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
            assert not key or key not in str(answer)
    for headers in ({"x-api-key": KEY}, {"x-api-key": gateway.key}):
        async with gateway.http.get(f"{gateway.url}/admin/v1/keys", headers=headers) as refused:
            assert refused.status == 401
            assert set(await refused.json()) == {"error"}


async def test_an_admin_key_opens_nothing_else(gateway: Gateway) -> None:
    for path in ("/v1/models", "/beta/v1/files", "/beta/v1/memories"):
        for headers in ({"Authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}):
            async with gateway.http.get(gateway.url + path, headers=headers) as answer:
                assert answer.status == 401


async def test_without_an_admin_key_there_are_no_such_paths(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            for path in ("/keys", "/keys/key_1/revoke", "/nothing"):
                for key in ("", gateway.key, KEY):
                    status, answer = await call(gateway, method, path, key=key)
                    assert status == 404
                    assert answer["error"]["code"] == "unknown_path"
                    assert answer["error"]["message"] == (
                        f"{method} /admin/v1{path}: unknown endpoint; "
                        "GET /docs#administration lists the available endpoints"
                    )


async def test_a_key_of_the_database_opens_administration(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        assert (await call(gateway, "GET", "/keys"))[0] == 404
    engine = open_engine(Storage(data_dir=tmp_path))
    admin_keys = AdminKeyRepository(engine)
    key = await admin_keys.create("ops")
    (info,) = await admin_keys.list_all()
    await engine.dispose()
    async with running_gateway(tmp_path) as gateway:
        status, made = await call(gateway, "POST", "/teams", {"name": "lab"}, key)
        assert status == 200
        _, log = await call(gateway, "GET", f"/audit?subject_id={made['id']}", key=key)
        assert [entry["actor"] for entry in log["data"]] == [info.id]


async def test_a_key_is_changed_and_revoked(gateway: Gateway) -> None:
    made = await done(gateway, "POST", "/keys", {"user": "ada", "name": "ci"})
    path = f"/keys/{made['id']}"
    disabled = await done(gateway, "PATCH", path, {"enabled": False, "name": "cd"})
    assert (disabled["state"], disabled["enabled"], disabled["name"]) == ("disabled", False, "cd")
    expiring = await done(gateway, "PATCH", path, {"enabled": True, "expires_at": 4_000_000_000})
    assert (expiring["state"], expiring["expires_at"]) == ("active", 4_000_000_000)
    lasting = await done(gateway, "PATCH", path, {"expires_at": None})
    assert lasting["expires_at"] is None
    revoked = await done(gateway, "POST", f"{path}/revoke")
    assert revoked["state"] == "revoked"
    assert await done(gateway, "POST", f"{path}/revoke", {}) == revoked
    status, answer = await call(gateway, "PATCH", path, {"enabled": True})
    assert (status, answer["error"]["code"]) == (409, "conflict")


async def test_a_key_is_rotated(gateway: Gateway) -> None:
    made = await done(gateway, "POST", "/keys", {"user": "ada"})
    new = await done(gateway, "POST", f"/keys/{made['id']}/rotate")
    assert new["replaces"] == new["replaced"]["id"] == made["id"]
    assert new["replaced"]["expires_at"] == pytest.approx(time.time() + 86_400, abs=60)
    assert new["key"] not in (made["key"], "")
    newest = await done(gateway, "POST", f"/keys/{new['id']}/rotate", {"grace_seconds": 0})
    for key, status in ((made, 200), (new, 401), (newest, 200)):
        headers = {"Authorization": f"Bearer {key['key']}"}
        async with gateway.http.get(f"{gateway.url}/v1/models", headers=headers) as answer:
            assert answer.status == status


async def test_users_and_teams_are_deleted(gateway: Gateway) -> None:
    key = await done(gateway, "POST", "/keys", {"user": "leaver", "team": "leavers"})
    status, answer = await call(gateway, "DELETE", f"/teams/{key['team_id']}")
    assert (status, answer["error"]["param"]) == (409, "team_id")
    assert await done(gateway, "DELETE", f"/users/{key['user_id']}") == {
        "object": "user",
        "id": key["user_id"],
        "name": "leaver",
        "deleted": True,
        "key_ids": [key["id"]],
    }
    assert await done(gateway, "DELETE", f"/teams/{key['team_id']}") == {
        "object": "team",
        "id": key["team_id"],
        "name": "leavers",
        "deleted": True,
    }
    for path in (f"/users/{key['user_id']}", f"/teams/{key['team_id']}", f"/keys/{key['id']}"):
        assert (await call(gateway, "GET", path))[0] == 404
    headers = {"Authorization": f"Bearer {key['key']}"}
    async with gateway.http.get(f"{gateway.url}/v1/models", headers=headers) as answer:
        assert answer.status == 401


async def test_users_move_among_teams(gateway: Gateway) -> None:
    lab = await done(gateway, "POST", "/teams", {"name": "movers", "plan": "team_pro"})
    ada = await done(gateway, "POST", "/users", {"name": "mover"})
    assert (ada["team"], ada["plan"]) == (None, "personal_free")
    moved = await done(gateway, "PATCH", f"/users/{ada['id']}", {"team": "movers"})
    assert (moved["team_id"], moved["plan"]) == (lab["id"], "team_pro")
    assert (await done(gateway, "GET", f"/teams/{lab['id']}"))["users"] == 1
    set_plan = await done(gateway, "PATCH", f"/teams/{lab['id']}", {"plan": "enterprise"})
    assert set_plan["plan"] == "enterprise"
    left = {"team": None, "plan": "personal_pro"}
    moved = await done(gateway, "PATCH", f"/users/{ada['id']}", left)
    assert (moved["team"], moved["plan"]) == (None, "personal_pro")


@pytest.mark.parametrize("kind", ["key", "user", "team"])
async def test_limits_are_set_read_and_cleared(gateway: Gateway, kind: str) -> None:
    made = await done(gateway, "POST", "/keys", {"user": f"of-{kind}", "team": "lab"})
    subject_id = made["id"] if kind == "key" else made[f"{kind}_id"]
    path = f"/{kind}s/{subject_id}/limits"
    nothing = await done(gateway, "GET", path)
    assert nothing.pop("usage") == []
    assert (nothing["subject_kind"], nothing["subject_id"]) == (kind, subject_id)
    assert {nothing[name] for name in LIMITED} == {None}
    expected = {
        "requests_per_minute": 60,
        "tokens_per_minute": MAX_AMOUNT,
        "concurrent_requests": 0,
        "spend_per_day": "0.000000000001",
        "spend_per_week": "7",
        "spend_per_month": "999999.5",
        "spend_per_period": "8.5",
        "period_start": "2026-01-31",
        "period_days": 3_660,
        "soft_limit_percent": 100,
        "allowed_models": ["gpt-*", "claude"],
    }
    assert await done(gateway, "PUT", path, expected) == {**nothing, **expected}
    read = await done(gateway, "GET", path)
    assert {one["name"]: one["remaining"] for one in read.pop("usage")} == {
        name: value for name, value in expected.items() if name in LIMITED[:7]
    }
    assert read == {**nothing, **expected}
    replaced = await done(gateway, "PUT", path, {"requests_per_minute": 1})
    assert replaced == {**nothing, "requests_per_minute": 1}
    for _ in range(2):
        assert await done(gateway, "DELETE", path) == {"object": "limits", "deleted": True}
        assert await done(gateway, "GET", path) == {**nothing, "usage": []}


@each_row(
    ("method", "path", "body", "param"),
    [
        ("POST", "/keys", {}, "user"),
        ("POST", "/keys", {"user": "a b"}, "user"),
        ("POST", "/keys", {"user": "ada", "plan": "gold"}, "plan"),
        ("POST", "/keys", {"user": "ada", "colour": 1}, "colour"),
        ("POST", "/keys", {"user": "ada", "expires_at": 1}, "expires_at"),
        ("POST", "/keys", {"user": "ada", "expires_at": "1"}, "expires_at"),
        ("POST", "/keys", {"user": "ada", "name": "a\u0000"}, "name"),
        ("POST", "/keys", [], ""),
        ("PATCH", "/keys/{}", {}, "name"),
        ("PATCH", "/keys/{}", {"enabled": None}, "enabled"),
        ("PATCH", "/keys/{}", {"expires_at": 5}, "expires_at"),
        ("POST", "/keys/{}/revoke", {"reason": "x"}, "reason"),
        ("POST", "/keys/{}/rotate", {"grace_seconds": -1}, "grace_seconds"),
        ("POST", "/keys/{}/rotate", {"grace_seconds": 2_592_001}, "grace_seconds"),
        ("POST", "/teams", {"name": "a/b"}, "name"),
        ("PUT", "/keys/{}/limits", {"spend_per_day": 1}, "spend_per_day"),
        ("PUT", "/keys/{}/limits", {"spend_per_day": "1e3"}, "spend_per_day"),
        ("PUT", "/keys/{}/limits", {"spend_per_day": "-1"}, "spend_per_day"),
        ("PUT", "/keys/{}/limits", {"requests_per_minute": MAX_AMOUNT + 1}, "requests_per_minute"),
        ("PUT", "/keys/{}/limits", {"requests_per_minute": 1.5}, "requests_per_minute"),
        ("PUT", "/keys/{}/limits", {"allowed_models": ["a*b"]}, "allowed_models[0]"),
        ("PUT", "/keys/{}/limits", {"period_days": 1}, "period_days"),
        ("PUT", "/keys/{}/limits", {"allowed_model_groups": ["none"]}, "allowed_model_groups[0]"),
        ("PUT", "/model-groups/cheap", {"models": ["a*b"]}, "models[0]"),
        ("PUT", "/model-groups/-", {"models": []}, "name"),
        ("PUT", "/keys/{}/limits", {"soft_limit_percent": 80}, "soft_limit_percent"),
        ("PUT", "/keys/{}/limits", {**PERIOD, "soft_limit_percent": 0}, "soft_limit_percent"),
        ("PUT", "/keys/{}/limits", {"spend_per_period": "1", "period_days": 0}, "period_days"),
        ("PUT", "/keys/{}/limits", {**PERIOD, "period_start": "2999-01-01"}, "period_start"),
        ("PUT", "/keys/{}/limits", {**PERIOD, "period_start": "2020-02-30"}, "period_start"),
        ("PUT", "/keys/{}/limits", {**PERIOD, "period_start": "1970-01-01"}, "period_start"),
        ("GET", "/keys?limit=0", None, "limit"),
        ("GET", "/keys?limit=1001", None, "limit"),
        ("GET", "/keys?limit=1_0", None, "limit"),
        ("GET", "/keys?limit=1&limit=2", None, "limit"),
        ("GET", "/keys?page=", None, "page"),
        ("GET", "/keys?page=%00", None, "page"),
        ("GET", "/keys?colour=red", None, "colour"),
        ("GET", "/keys?user=a/b", None, "user"),
        ("GET", "/audit?since=yesterday", None, "since"),
        ("GET", "/audit?subject_kind=file", None, "subject_kind"),
    ],
)
async def test_an_invalid_field_is_named(
    gateway: Gateway, method: str, path: str, body: Any, param: str
) -> None:
    key_id = (await done(gateway, "GET", "/keys"))["data"][0]["id"]
    status, answer = await call(gateway, method, path.format(key_id), body)
    assert (status, answer["error"]["code"]) == (400, "invalid_request"), answer
    assert answer["error"]["param"] == (param or None), answer
    assert answer["error"]["message"].startswith(param), answer
    assert "_ms" not in answer["error"]["message"]


@pytest.mark.parametrize("what", ["keys", "users", "teams"])
async def test_what_is_not_there_is_not_found(gateway: Gateway, what: str) -> None:
    for name in ("x_1", "a%00b", "%C3%A9", "a" * 65):
        for path in (f"/{what}/{name}", f"/{what}/{name}/limits"):
            status, answer = await call(gateway, "GET", path)
            assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_other_methods_and_paths_are_refused(gateway: Gateway) -> None:
    status, answer = await call(gateway, "DELETE", "/keys")
    assert (status, answer["error"]["code"]) == (405, "method_not_allowed")
    status, answer = await call(gateway, "GET", "/nothing")
    assert (status, answer["error"]["code"]) == (404, "unknown_path")
    status, answer = await call(gateway, "DELETE", "/keys", key="")
    assert status == 401


async def test_bodies_are_json_and_bounded(gateway: Gateway) -> None:
    url = f"{gateway.url}/admin/v1/teams"
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "text/plain"}
    async with gateway.http.post(url, data=b'{"name": "lab"}', headers=headers) as answer:
        assert answer.status == 415
    headers["Content-Type"] = "application/json"
    large = b'{"name": "' + b"a" * (300 << 10) + b'"}'
    async with gateway.http.post(url, data=large, headers=headers) as answer:
        assert answer.status == 413


async def test_lists_go_on_where_they_ended(gateway: Gateway) -> None:
    for number in range(5):
        await done(gateway, "POST", "/users", {"name": f"user{number}", "team": "many"})
    names, query = [], "?team=many&limit=2"
    while query:
        page = await done(gateway, "GET", f"/users{query}")
        names += [user["name"] for user in page["data"]]
        assert page["has_more"] == (page["next_page"] is not None)
        assert page["last_id"] == page["data"][-1]["id"]
        query = f"?team=many&limit=2&page={page['next_page']}" if page["has_more"] else ""
    assert names == [f"user{number}" for number in range(5)]


async def test_the_audit_log_tells_who_changed_what(gateway: Gateway) -> None:
    headers = {"Authorization": f"Bearer {KEY}", "x-request-id": "my-change"}
    url = f"{gateway.url}/admin/v1/users"
    async with gateway.http.post(url, json={"name": "audited"}, headers=headers) as answer:
        user = await answer.json()
    await done(gateway, "PATCH", f"/users/{user['id']}", {"plan": "enterprise"})
    log = await done(gateway, "GET", f"/audit?subject_id={user['id']}&subject_kind=user")
    changed, made = log["data"]
    assert (made["actor"], made["action"]) == ("admin.key_sha256", "user.create")
    assert (made["before"], made["request_id"]) == (None, "my-change")
    assert changed["before"] == made["after"]
    assert (changed["before"]["plan"], changed["after"]["plan"]) == ("personal_free", "enterprise")
    assert changed["at"] == pytest.approx(time.time(), abs=60)
    until = int(made["at"])
    assert (await done(gateway, "GET", f"/audit?until={until}&subject_id={user['id']}"))[
        "data"
    ] == []


async def test_changes_count_once_the_identity_is_forgotten(tmp_path: Path) -> None:
    clock = ManualClock()
    chat = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
    async with running_gateway(
        tmp_path, clock=Clock(monotonic=clock.monotonic), **ADMIN
    ) as gateway:
        made = await done(gateway, "POST", "/keys", {"user": "ada"})
        path = f"/keys/{made['id']}"
        headers = {"Authorization": f"Bearer {made['key']}"}
        url = f"{gateway.url}/v1/chat/completions"

        async def status() -> int:
            async with gateway.http.post(url, json=chat, headers=headers) as answer:
                await answer.read()
                return answer.status

        assert await status() == 200
        for method, where, body, expected in (
            ("PUT", f"{path}/limits", {"requests_per_minute": 0}, 429),
            ("DELETE", f"{path}/limits", None, 200),
            ("PATCH", path, {"enabled": False}, 401),
        ):
            before = await status()
            await done(gateway, method, where, body)
            # Identities in use are looked up again after half of their time.
            clock.now_s += 14.9
            assert await status() == before
            clock.now_s += 15.1
            assert await status() == expected
