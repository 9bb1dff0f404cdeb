"""Endpoints have one spelling: only names and ids in their paths may be percent-encoded."""

import re

import orjson
import pytest
from yarl import URL

from facade.aliases import names_of
from facade.endpoints import ENDPOINTS
from tests.gateway_in_process import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The first alias stands for all, which the same function finds.
ROUTES = [(each.method, path) for each in ENDPOINTS for path in [*names_of(each.path)][:2]]
ROUTES += [("POST", path) for path in names_of("/beta/v1/chat/completions")]
OPERATIONS = [("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")]


def encoded(char: str) -> str:
    return f"%{ord(char):02x}"


def spellings(path: str) -> list[str]:
    """Return a path with each fixed segment encoded in turn, in part or whole."""
    segments = re.sub(r"\{[^}]*\}", "{}", path).split("/")
    found = []
    for place, segment in enumerate(segments):
        fixed = segment.rpartition("{}")[2]
        if not fixed:
            continue
        variable = "{}" * ("{}" in segment)
        for spelled in (encoded(fixed[0]) + fixed[1:], "".join(map(encoded, fixed))):
            found.append("/".join([*segments[:place], variable + spelled, *segments[place + 1 :]]))
    return [path.replace("{}", "x") for path in found]


async def answer(gateway: Gateway, method: str, base: str, path: str) -> tuple[int, bytes]:
    url = URL(base + path, encoded=True)
    async with gateway.http.request(method, url, headers=gateway.bearer()) as response:
        return response.status, await response.read()


async def test_an_encoded_endpoint_is_unknown(gateway: Gateway) -> None:
    failures = []
    cases = [(gateway.url, *route) for route in ROUTES]
    cases += [(gateway.metrics_url, *route) for route in OPERATIONS]
    for base, method, path in cases:
        for spelled in spellings(path):
            status, body = await answer(gateway, method, base, spelled)
            is_told = method == "HEAD" or b"unknown endpoint" in body
            if status != 404 or not is_told:
                failures.append((method, spelled, status, body[:80]))
    assert failures == []


@pytest.mark.parametrize(
    ("path", "expected_fields"),
    [
        ("/%61dmin/v1/keys", {"error"}),
        ("/beta/v1/chat/completion%73", {"error"}),
        ("/beta/v1/%6dessages", {"error", "type", "request_id"}),
        ("/%61rticle/v1/documents", {"code", "message", "data"}),
    ],
)
async def test_it_is_answered_in_the_format_of_its_endpoint(
    gateway: Gateway, path: str, expected_fields: set[str]
) -> None:
    for method in ("GET", "POST"):
        status, body = await answer(gateway, method, gateway.url, path)
        assert (status, set(orjson.loads(body))) == (404, expected_fields)


async def test_names_and_ids_may_be_encoded(gateway: Gateway) -> None:
    for name in ("sandbox/echo", "sandbox%2Fecho", "sandbox/ech%6f", "%73andbox%2f%65cho"):
        status, body = await answer(gateway, "GET", gateway.url, f"/v1/models/{name}")
        assert (status, orjson.loads(body)["id"]) == (200, "sandbox/echo")
    for file_id in ("file-none", "%66ile-none", "file%2Dnone"):
        status, body = await answer(gateway, "GET", gateway.url, f"/v1/files/{file_id}")
        assert (status, orjson.loads(body)["error"]["code"]) == (404, "not_found")
    # Even if the method is not allowed.
    status, _ = await answer(gateway, "PUT", gateway.url, "/v1/models/sandbox%2Fecho")
    assert status == 405
