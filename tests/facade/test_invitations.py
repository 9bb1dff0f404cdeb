"""Invitations and roles of users over HTTP: who may invite, accept, and be what afterwards."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.browser_sessions import Browser
from tests.gateway_in_process import Gateway, running_gateway
from tests.issuer import gateway_with_issuer, signed_in_address

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN_KEY, USERS_KEY = make_admin_key(bytes(32)), make_admin_key(b"\x01" * 32)
SECTIONS = {
    "admin": {
        "key_sha256": hash_admin_key(ADMIN_KEY).hex(),
        "keys": [
            {"name": "u", "scopes": ["users"], "key_sha256": hash_admin_key(USERS_KEY).hex()},
        ],
    },
}
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("invitations"), **SECTIONS) as running:
        yield running


async def administer(gateway: Gateway, method: str, path: str, body=None, key: str = ADMIN_KEY):
    headers = {"Authorization": f"Bearer {key}"}
    address = f"{gateway.url}/admin/v1/{path}"
    async with gateway.http.request(method, address, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def invite(gateway: Gateway, **body: object) -> str:
    """Return the token of a new invitation."""
    status, made = await administer(gateway, "POST", "invitations", body)
    assert (status, made["state"]) == (200, "open"), made
    path, _, token = made["link"].partition("#invitation=")
    assert path in ("/console", f"{gateway.url}/console")
    return token


async def joined(gateway: Gateway, role: str, user: str, team: str | None = None):
    """Return the browser of a person who has accepted an invitation, and the person's key."""
    browser = Browser(gateway)
    token = await invite(gateway, role=role, user=user, team=team)
    status, answer = await browser.send("POST", "/console/invitation/accept", {"token": token})
    assert (status, answer["session"]["user"], answer["session"]["role"]) == (200, user, role)
    return browser, answer["key"]


async def role_of(gateway: Gateway, key: str) -> str:
    return (await Browser(gateway).sign_in(key=key))[1]["session"]["role"]


async def test_an_invitation_is_accepted_once_and_by_a_button(gateway):
    token = await invite(gateway, role="admin", team="ops")
    browser = Browser(gateway)
    # Neither a request for the page nor one that reads the invitation accepts it.
    for _ in range(2):
        async with gateway.http.get(f"{gateway.url}/console?invitation={token}") as answer:
            assert answer.status == 200
        status, offer = await browser.send("POST", "/console/invitation", {"token": token})
        assert (status, offer["role"], offer["team"], offer["user"]) == (200, "admin", "ops", None)
    address = f"{gateway.url}/console/invitation/accept?token={token}"
    async with gateway.http.get(address) as page, gateway.http.post(address) as answer:
        assert (page.content_type, answer.status) == ("text/html", 415)
    path, body = "/console/invitation/accept", {"token": token, "user": "grace"}
    assert (await browser.send("POST", path, {"token": token}))[0] == 400
    status, answer = await browser.send("POST", path, body)
    assert (status, answer["session"]["admin_scopes"]) == (200, ["all"])
    assert (await browser.send("GET", "/admin/v1/users"))[0] == 200
    status, again = await Browser(gateway).send("POST", path, {**body, "user": "eve"})
    assert (status, again["error"]["param"]) == (404, "token")
    # The key signs in with the role; as the key of a program, neither it nor another one does more
    # than before.
    assert await role_of(gateway, answer["key"]) == "admin"
    _, other = await administer(gateway, "POST", "keys", {"user": "grace"})
    assert await role_of(gateway, other["key"]) == "user"
    assert (await administer(gateway, "GET", "users", key=answer["key"]))[0] == 401
    _, audit = await administer(gateway, "GET", "audit?subject_kind=invitation")
    assert [entry["action"] for entry in audit["data"]] == [
        "invitation.accept",
        "invitation.create",
    ]
    assert token not in str(audit)
    # An administrator who is signed in, and the last one, does not lock everybody out.
    _, users = await browser.send("GET", "/admin/v1/users?name=grace")
    me = f"/admin/v1/users/{users['data'][0]['id']}"
    status, refused = await browser.send("PATCH", me, {"role": "user"})
    assert (status, refused["error"]["code"]) == (409, "conflict")
    assert (await browser.send("DELETE", me))[0] == 409


async def test_a_role_changes_what_open_sessions_may_do(gateway):
    browser, key = await joined(gateway, "viewer", "vera")
    program = {"authorization": f"Bearer {key}"}
    # The key of a viewer reads, too.
    for headers in ({}, program):
        assert (await browser.send("GET", "/v1/models", **headers))[0] == 200
        status, answer = await browser.send("POST", "/v1/chat/completions", CHAT, **headers)
        assert (status, answer["error"]["code"]) == (403, "permission_denied")
    _, users = await administer(gateway, "GET", "users?name=vera")
    assert users["data"][0]["role"] == "viewer"
    path = f"users/{users['data'][0]['id']}"
    await administer(gateway, "PATCH", path, {"role": "admin"})
    assert (await browser.send("GET", "/admin/v1/users"))[0] == 200
    assert (await browser.send("POST", "/v1/chat/completions", CHAT))[0] == 200
    status, changed = await administer(gateway, "PATCH", path, {"role": None})
    assert (status, changed["role"]) == (200, None)
    assert (await browser.send("GET", "/admin/v1/users"))[0] == 403
    status, answer = await administer(gateway, "PATCH", path, {"role": "root"})
    assert (status, answer["error"]["param"]) == (400, "role")


async def test_nobody_gives_a_role_above_the_own_one(gateway):
    boss, boss_key = await joined(gateway, "admin", "boss", "lab")
    leader, _ = await joined(gateway, "team_admin", "leader", "lab")
    _, other = await administer(gateway, "POST", "invitations", {"role": "user", "team": "other"})
    _, listed = await administer(gateway, "GET", "users?name=boss")
    boss_id = listed["data"][0]["id"]
    _, listed = await administer(gateway, "GET", "keys?user=boss")
    rotation = f"keys/{listed['data'][0]['id']}/rotate"
    invitations = "/admin/v1/invitations"
    for body in (
        {"role": "admin"},
        {"role": "user", "team": "other"},
        {"role": "user", "plan": "enterprise"},
    ):
        assert (await leader.send("POST", invitations, body))[0] == 403, body
    status, made = await leader.send("POST", invitations, {"role": "team_admin"})
    assert (status, made["team"], made["created_by_name"]) == (200, "lab", "leader")
    _, seen = await leader.send("GET", invitations)
    assert {one["team"] for one in seen["data"]} == {"lab"}
    assert (await leader.send("DELETE", f"{invitations}/{other['id']}"))[0] == 404
    assert (await leader.send("POST", f"/admin/v1/{rotation}"))[0] == 403
    assert (await leader.send("PATCH", f"/admin/v1/users/{boss_id}", {"role": "user"}))[0] == 403
    # An admin key with the scope `users` makes no administrator, nor takes over the key of one.
    for method, path, body in (
        ("POST", "invitations", {"role": "admin"}),
        ("PATCH", f"users/{boss_id}", {"role": "user"}),
        ("POST", rotation, {}),
    ):
        assert (await administer(gateway, method, path, body, USERS_KEY))[0] == 403, path
    status, rotated = await boss.send("POST", f"/admin/v1/{rotation}", {"grace_seconds": 60})
    assert (status, rotated["for_sign_in"]) == (200, True)
    assert await role_of(gateway, rotated["key"]) == await role_of(gateway, boss_key) == "admin"
    assert (await administer(gateway, "DELETE", f"invitations/{made['id']}"))[0] == 200


async def test_an_invited_person_signs_in_at_the_issuer(tmp_path):
    accounts = {
        "ada": {"email": "ada@example.com", "email_verified": True},
        "eve": {"email": "eve@example.com", "email_verified": True},
        "adam": {"email": "adam@example.com", "groups": ["auditors"]},
    }
    oidc = {"role_claim": "groups", "roles": {"auditors": "viewer"}, "default_role": ""}
    async with gateway_with_issuer(tmp_path, accounts, oidc, **SECTIONS) as (gateway, _):

        async def accept(account: str, token: str) -> tuple[str, str]:
            """Return where the browser is in the end, and the role."""
            path = f"{gateway.url}/console/{'invitation/issuer' if token else 'oidc/start'}"
            jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)
            async with aiohttp.ClientSession(cookie_jar=jar) as http:
                if token:
                    async with http.post(path, json={"token": token}) as answer:
                        address = (await answer.json())["location"]
                else:
                    async with http.get(path, allow_redirects=False) as answer:
                        address = answer.headers["location"]
                back = await signed_in_address(http, address, account)
                async with http.get(back, allow_redirects=False) as answer:
                    place = answer.headers["location"]
                async with http.get(f"{gateway.url}/console/session") as answer:
                    session = (await answer.json())["session"]
                return place, session["role"] if session else ""

        denied = ("/console#sign-in=denied", "")
        # Whom neither the issuer nor an invitation gives a role may not sign in.
        assert await accept("ada", "") == denied
        token = await invite(gateway, role="team_admin", user="Ada@Example.com", team="lab")
        body = {"token": token, "user": "ada"}
        status, answer = await Browser(gateway).send("POST", "/console/invitation/accept", body)
        assert (status, answer["error"]["code"]) == (403, "permission_denied")
        assert await accept("eve", token) == denied
        assert await accept("ada", token) == ("/console", "team_admin")
        assert await accept("ada", "") == ("/console", "team_admin")
        _, users = await administer(gateway, "GET", "users?name=ada@example.com")
        assert [(one["role"], one["team"]) for one in users["data"]] == [("team_admin", "lab")]
        # A role that the issuer's claims name counts before that of the user.
        assert await accept("adam", await invite(gateway, role="admin")) == ("/console", "viewer")
        _, users = await administer(gateway, "GET", "users")
        assert {one["name"] for one in users["data"]} == {
            *("tester", "ada@example.com", "adam@example.com")
        }
