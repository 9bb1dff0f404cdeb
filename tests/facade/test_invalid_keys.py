"""Error messages for an API key that is not valid."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.accounts.keys import make_key
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN_KEY = make_admin_key(bytes(32))
# A key that this gateway does not have.
KEY = make_key(b"\xfe" * 32)
CREATE = "`gateway keys create --user NAME` creates one"


class Administered:
    """A gateway with an admin key and a clock of its own."""

    def __init__(self, gateway: Gateway, clock: ManualClock) -> None:
        self.gateway = gateway
        self.clock = clock

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        async with self.gateway.http.request(
            method,
            f"{self.gateway.url}/admin/v1{path}",
            json=body,
            headers={"Authorization": f"Bearer {ADMIN_KEY}"},
        ) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def refusal(self, path: str = "/v1/models", **headers: str) -> str:
        """Return the message of the 401 response to a request with these headers."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        url = self.gateway.url + path
        async with self.gateway.http.get(url, headers=sent) as response:
            body = await response.json()
        assert (response.status, body["error"]["code"]) == (401, "invalid_api_key"), body
        message: str = body["error"]["message"]
        return message


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def administered(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Administered]:
    clock = ManualClock()
    admin = {"key_sha256": hash_admin_key(ADMIN_KEY).hex()}
    folder = tmp_path_factory.mktemp("keys")
    async with running_gateway(folder, clock=clock, admin=admin) as gateway:
        yield Administered(gateway, clock)


@each_row(
    ("key", "expected"),
    [
        ("sk-proj-abcdefghijk", "looks like a key of OpenAI or another provider"),
        ("sk-ant-api03-abc", "looks like a key of Anthropic"),
        ("AIzaSyabcdefg", "looks like a key of Google"),
        ("gsk_abcdefgh", "looks like a key of Groq"),
        ("dummy-value", f"not a key of this gateway; those begin with gw- ({CREATE})"),
        (KEY[:-3], "looks truncated: it has 43 of 46 characters"),
        (f"{KEY}x", "too long: it has 47 instead of 46 characters"),
        (f"gw-{'!' * 43}", "has a character that no key has"),
        (f'"{KEY}"', "is in quotation marks"),
        (f"'{KEY}'", "is in quotation marks"),
        (f"{KEY[:9]} {KEY[9:]}", "contains a space or a line break"),
        (ADMIN_KEY, "is an admin key, which is valid for /admin/v1 only"),
        ("$GATEWAY_KEY", "a variable that was not replaced"),
        ("<API_KEY>", "is a placeholder"),
        ("YOUR_API_KEY", "is a placeholder"),
        ("", "is empty"),
        (KEY, "is not known to this gateway"),
    ],
)
async def test_a_refusal_says_what_the_key_looks_like(
    administered: Administered, key: str, expected: str
) -> None:
    for headers in ({"x_api_key": key}, {"Authorization": f"Bearer {key}"}):
        message = await administered.refusal(**headers)
        if key or "x_api_key" in headers:
            assert expected in message
        # Nothing of what was sent is repeated, which may be another service's secret.
        assert len(key) < 12 or key[:12] not in message


async def test_a_key_behind_bearer_twice_is_recognized(administered: Administered) -> None:
    for headers in ({"x_api_key": f"Bearer {KEY}"}, {"Authorization": f"Bearer Bearer {KEY}"}):
        assert "begins with `Bearer`" in await administered.refusal(**headers)


async def test_a_key_of_a_user_is_no_admin_key(administered: Administered) -> None:
    key = administered.gateway.key
    message = await administered.refusal("/admin/v1/keys", Authorization=f"Bearer {key}")
    assert "an admin key is required" in message
    assert "`gateway admin-key create` creates one" in message


async def test_only_its_holder_learns_what_ended_a_key(administered: Administered) -> None:
    clock = administered.clock
    made = {
        name: await administered.admin(
            "POST", "/keys", {"user": name, "expires_at": int(clock.now_s) + 3600}
        )
        for name in ("revoked", "disabled", "expired")
    }
    await administered.admin("POST", f"/keys/{made['revoked']['id']}/revoke")
    await administered.admin("PATCH", f"/keys/{made['disabled']['id']}", {"enabled": False})
    day = "2023-11-14"
    expected = {
        "revoked": f"was revoked on {day}",
        "disabled": "is disabled; the operator enables it",
        "expired": f"expired on {day}",
    }
    clock.now_s += 3600
    for name, words in expected.items():
        key = made[name]["key"]
        assert words in await administered.refusal(x_api_key=key)
        # A key that differs from it is an unknown one.
        other = key[:-2] + ("aA" if key[-2:] != "aA" else "bA")
        assert "is not known to this gateway" in await administered.refusal(x_api_key=other)
