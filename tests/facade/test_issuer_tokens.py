"""Callers with a token of an OpenID Connect issuer, and the redirects of its sign-in."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import aiohttp
import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.gateway_in_process import Gateway
from tests.issuer import AUDIENCE, gateway_with_issuer, token_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCOUNTS = {
    "robot": {"email": "robot@example.com", "groups": ["callers"], "team": "lab"},
    "reader": {"email": "reader@example.com", "groups": ["readers"]},
}
OIDC = {
    "audiences": [AUDIENCE],
    "team_claim": "team",
    "role_claim": "groups",
    "roles": {"readers": "viewer", "callers": "team_admin"},
    "default_role": "",
}
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Gateway, str]]:
    folder = tmp_path_factory.mktemp("issuer")
    async with gateway_with_issuer(folder, ACCOUNTS, OIDC) as running:
        yield running


async def call(gateway: Gateway, method: str, path: str, token: str, body: object = None):
    headers = {"Authorization": f"Bearer {token}"}
    address = f"{gateway.url}{path}"
    async with gateway.http.request(method, address, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_a_token_of_the_issuer_stands_for_a_key(served):
    gateway, issuer = served
    token = await token_of(gateway.http, issuer, "robot")
    assert (await call(gateway, "POST", "/v1/chat/completions", token, CHAT))[0] == 200
    # The role is that of the team's administrators.
    status, users = await call(gateway, "GET", "/admin/v1/users", token)
    assert status == 200
    assert [(user["name"], user["team"]) for user in users["data"]] == [
        ("robot@example.com", "lab")
    ]
    status, made = await call(
        gateway, "POST", "/admin/v1/keys", token, {"user": "intern", "name": "k"}
    )
    assert (status, made["team"]) == (200, "lab")
    status, keys = await call(gateway, "GET", "/admin/v1/keys", token)
    assert {key["user"] for key in keys["data"]} == {"robot@example.com", "intern"}
    other = {"user": "tester", "name": "taken"}
    assert (await call(gateway, "POST", "/admin/v1/keys", token, other))[0] == 400
    body = {"user": "spy", "team": "other"}
    assert (await call(gateway, "POST", "/admin/v1/keys", token, body))[0] == 403
    assert (await call(gateway, "GET", "/admin/v1/providers", token))[0] == 403
    assert (await call(gateway, "POST", f"/admin/v1/keys/{made['id']}/revoke", token))[0] == 200


async def test_viewers_read_and_change_nothing(served):
    gateway, issuer = served
    token = await token_of(gateway.http, issuer, "reader")
    assert (await call(gateway, "GET", "/v1/models", token))[0] == 200
    assert (await call(gateway, "GET", "/v1/conversations", token))[0] == 200
    status, answer = await call(gateway, "POST", "/v1/chat/completions", token, CHAT)
    assert (status, answer["error"]["code"]) == (403, "permission_denied")
    assert "viewer" in answer["error"]["message"]
    assert (await call(gateway, "POST", "/v1/conversations", token, {}))[0] == 403
    assert (await call(gateway, "GET", "/admin/v1/users", token))[0] == 403


async def test_forged_tokens_are_rejected(served):
    gateway, issuer = served
    token = await token_of(gateway.http, issuer, "robot")
    claims = jwt.decode(token, options={"verify_signature": False})
    key_id = jwt.get_unverified_header(token)["kid"]
    theirs = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    head, body, signature = token.split(".")
    rows = {
        "signature": f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        "key": jwt.encode(claims, theirs, "RS256", headers={"kid": key_id}),
        "unknown key": jwt.encode(claims, theirs, "RS256", headers={"kid": "mine"}),
        "shared secret": jwt.encode(claims, "a" * 32, "HS256", headers={"kid": key_id}),
        "none": jwt.encode(claims, None, "none"),
    }
    for name, forged in rows.items():
        status, answer = await call(gateway, "GET", "/v1/models", forged)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key"), name


async def test_only_the_browser_that_began_finishes(served):
    gateway, issuer = served
    async with aiohttp.ClientSession(
        gateway.url, cookie_jar=aiohttp.CookieJar(unsafe=True)
    ) as browser:

        async def get(path: str) -> str:
            async with browser.get(path, allow_redirects=False) as answer:
                assert answer.status == 303
                assert answer.headers["cache-control"] == "no-store"
                return answer.headers["location"]

        for to in ("//evil.example", "https://evil.example", "/console/..//evil", "/console\\evil"):
            address = urlsplit(await get(f"/console/oidc/start?{'to=' + to}"))
            query = {name: value for name, [value] in parse_qs(address.query).items()}
            assert f"{address.scheme}://{address.netloc}" == issuer
            assert query["code_challenge_method"] == "S256"
            assert query["redirect_uri"] == f"{gateway.url}/console/oidc/callback"
        wrong = "/console/oidc/callback?code=c&state="
        # Of another attempt, then without one, as the first has removed the cookie.
        assert await get(f"{wrong}other") == "/console#sign-in=failed"
        assert await get(f"{wrong}{query['state']}") == "/console#sign-in=failed"
        await get("/console/oidc/start")
        denied = "/console/oidc/callback?error=access_denied&state=x"
        assert await get(denied) == "/console#sign-in=failed"
