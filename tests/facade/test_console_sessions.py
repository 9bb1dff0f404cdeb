"""Sessions of the console: sign-in, what the cookie opens, and how a session ends."""

import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.common.storage.sign_in_codes import issue
from tests.browser_sessions import Browser
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN_KEY = make_admin_key(bytes(32))
READ_KEY = make_admin_key(b"\x01" * 32)
SECTIONS = {
    "admin": {
        "key_sha256": hash_admin_key(ADMIN_KEY).hex(),
        "keys": [
            {"name": "r", "scopes": ["read"], "key_sha256": hash_admin_key(READ_KEY).hex()},
        ],
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("sessions"), **SECTIONS) as running:
        yield running


async def test_a_key_signs_in_with_a_cookie_that_needs_its_token(gateway):
    browser = Browser(gateway)
    assert await browser.send("GET", "/console/session") == (200, {"session": None, "oidc": None})
    status, state = await browser.sign_in(key=gateway.key)
    assert status == 200
    session = state["session"]
    assert (session["user"], session["role"], session["admin_scopes"]) == ("tester", "user", [])
    port = gateway.url.rpartition(":")[2]
    assert browser.line.startswith(f"gateway_session_{port}=gwsession-")
    assert browser.line.endswith("; Max-Age=604800; Path=/; HttpOnly; SameSite=Strict")
    assert await browser.send("GET", "/console/session") == (200, state)
    chat = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
    for path in ("/v1/models", "/v1/files"):
        assert (await browser.send("GET", path))[0] == 200, path
    status, answer = await browser.send("POST", "/v1/chat/completions", chat)
    assert status == 200
    assert "Hello" in answer["choices"][0]["message"]["content"]
    version = {"compat-version": "2023-06-01"}
    status, answer = await browser.send("GET", "/v1/files/file_none", **version)
    assert (status, answer["type"]) == (404, "error")
    status, answer = await browser.send("POST", "/article/v1/doc/list", {})
    assert (status, answer["code"]) == (200, 1)
    token, other = browser.csrf_token, Browser(gateway)
    await other.sign_in(key=gateway.key)
    for csrf_token in ("", other.csrf_token, "0" * 64):
        browser.csrf_token = csrf_token
        status, _ = await browser.send("GET", "/v1/models")
        assert status == 401, csrf_token
    browser.csrf_token = token
    # A token of a session is good in its cookie alone.
    bearer = f"Bearer {browser.cookie.partition('=')[2]}"
    browser.cookie = browser.csrf_token = ""
    assert (await browser.send("GET", "/v1/models", authorization=bearer))[0] == 401


async def test_sign_out_ends_the_session_everywhere(gateway):
    browser = Browser(gateway)
    await browser.sign_in(key=gateway.key)
    cookie, csrf_token = browser.cookie, browser.csrf_token
    assert (await browser.send("GET", "/v1/models"))[0] == 200
    assert (await browser.send("DELETE", "/console/session"))[0] == 200
    assert "Max-Age=0" in browser.line
    browser.cookie, browser.csrf_token = cookie, csrf_token
    status, answer = await browser.send("GET", "/v1/models")
    assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
    assert (await browser.send("GET", "/console/session"))[1]["session"] is None


async def test_an_admin_key_unlocks_what_it_permits(gateway):
    browser = Browser(gateway)
    await browser.sign_in(key=gateway.key)
    status, answer = await browser.send("GET", "/admin/v1/keys")
    assert (status, answer["error"]["code"]) == (403, "permission_denied")
    before = browser.cookie
    assert (await browser.send("POST", "/console/session/unlock", {"key": "gwadmin-"}))[0] == 401
    status, state = await browser.send("POST", "/console/session/unlock", {"key": READ_KEY})
    assert (status, state["session"]["admin_scopes"]) == (200, ["read"])
    assert browser.cookie != before
    assert (await browser.send("GET", "/admin/v1/keys"))[0] == 200
    assert (await browser.send("POST", "/admin/v1/users", {"name": "eve"}))[0] == 403
    await browser.send("POST", "/console/session/unlock", {"key": ADMIN_KEY})
    assert (await browser.send("POST", "/admin/v1/users", {"name": "eve"}))[0] == 200
    _, entries = await browser.send("GET", "/admin/v1/audit?subject_kind=session")
    assert {entry["action"] for entry in entries["data"]} >= {"session.create", "session.unlock"}
    _, entries = await browser.send("GET", "/admin/v1/audit?subject_kind=user")
    assert entries["data"][0]["actor_name"] == "tester"
    browser.cookie = before
    assert (await browser.send("GET", "/v1/models"))[0] == 401


async def test_a_code_signs_the_owner_of_the_machine_in_once(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with running_gateway(tmp_path) as gateway:
        (tmp_path / "dev.key").write_text(gateway.key)
        code = issue(str(tmp_path), time.time())
        browser = Browser(gateway)
        status, state = await browser.sign_in(code=code)
        assert (status, state["session"]["admin_scopes"]) == (200, ["all"])
        # Without an admin key, the paths exist for administrators who are signed in.
        assert (await browser.send("GET", "/admin/v1/users"))[0] == 200
        assert (await Browser(gateway).send("GET", "/admin/v1/users"))[0] == 404
        status, answer = await Browser(gateway).sign_in(code=code)
        assert (status, answer["error"]["param"]) == (404, "code")
    logged = [str(vars(record)) for record in caplog.records]
    assert any("/console/session" in line for line in logged)
    secrets = (code, browser.cookie.partition("=")[2], browser.csrf_token, gateway.key)
    assert not any(secret in line for secret in secrets for line in logged)


async def test_sessions_end_when_idle_old_or_without_their_key(tmp_path: Path):
    clock = ManualClock()
    console = {"session_idle_s": 600, "session_ttl_s": 1500}
    async with running_gateway(tmp_path, clock=clock, console=console, **SECTIONS) as gateway:
        browser = Browser(gateway)

        async def is_signed_in() -> bool:
            return (await browser.send("GET", "/v1/models"))[0] == 200

        await browser.sign_in(key=gateway.key)
        clock.now_s += 599
        assert await is_signed_in()
        clock.now_s += 599
        assert await is_signed_in()
        clock.now_s += 303
        assert not await is_signed_in(), "it is too old"
        await browser.sign_in(key=gateway.key)
        clock.now_s += 601
        assert not await is_signed_in(), "it was idle"
        await browser.sign_in(key=gateway.key)
        admin = {"Authorization": f"Bearer {ADMIN_KEY}"}
        address = f"{gateway.url}/admin/v1/keys"
        async with gateway.http.get(address, headers=admin) as answer:
            [key] = (await answer.json())["data"]
        async with gateway.http.post(f"{address}/{key['id']}/revoke", headers=admin) as answer:
            assert answer.status == 200
        clock.now_s += 60
        assert not await is_signed_in(), "its key is revoked"


@each_row(
    "body, status, word",
    [
        ("{}", 400, "code"),
        ('{"code": 1}', 400, "code"),
        ('{"code": "a", "key": "b"}', 400, "key"),
        ('{"key": "gw-short"}', 401, "truncated"),
        ("{", 400, "body"),
        (f'{{"code": "{"a" * 2000}"}}', 413, "1,024"),
    ],
)
async def test_a_wrong_body_is_rejected(gateway, body, status, word):
    headers = {"content-type": "application/json"}
    address = f"{gateway.url}/console/session"
    async with gateway.http.post(address, data=body, headers=headers) as answer:
        assert answer.status == status
        assert word in (await answer.json())["error"]["message"]
    async with gateway.http.post(address, data=body, headers={"content-type": "text/plain"}) as one:
        assert one.status == 415
