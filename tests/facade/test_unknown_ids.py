"""Ids in paths that nobody has: the error names the variable of the path."""

import hashlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from facade.credentials import ApiFormat, KeyKind
from facade.endpoint import EndpointSpec
from facade.endpoints import ENDPOINTS
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row
from tests.hosts.cluster import ADMIN_KEY

pytestmark = pytest.mark.asyncio(loop_scope="module")

VARIABLE = re.compile(r"\{(\w+)[^}]*\}")
UNKNOWN = "01JZ6QXV9T2M4N8P0R3S5W7Y9B"
# What these paths name need not exist.
NOT_IDS = ("/tags/", "/pages/", "/tus/")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """Return a running gateway with an admin key."""
    admin = {"key_sha256": hashlib.sha256(ADMIN_KEY.encode()).hexdigest()}
    async with running_gateway(tmp_path_factory.mktemp("gateway"), admin=admin) as started:
        yield started


async def send(gateway: Gateway, spec: EndpointSpec, **ids: str) -> tuple[int, dict[str, Any]]:
    """Send an endpoint its example; return the status and the error."""
    path = VARIABLE.sub(lambda variable: ids.get(variable[1], UNKNOWN), spec.path)
    key = ADMIN_KEY if spec.rules.key is KeyKind.ADMIN else gateway.key
    headers = {"authorization": f"Bearer {key}"}
    body: Any = {} if spec.body is None else {"json": spec.body.example or {}}
    url = gateway.url + path
    async with gateway.http.request(spec.method, url, headers=headers, **body) as answer:
        return answer.status, (await answer.json())["error"]


def has_id(spec: EndpointSpec) -> bool:
    """Return whether an endpoint in OpenAI's format has an id in its path."""
    rules = spec.rules
    return (
        "{" in spec.path
        and spec.method != "HEAD"
        and rules.api_format in (None, ApiFormat.OPENAI)
        and rules.key is not KeyKind.NONE
        and not any(part in spec.path for part in NOT_IDS)
    )


@each_row("spec", filter(has_id, ENDPOINTS))
async def test_an_unknown_id_is_named(gateway: Gateway, spec: EndpointSpec) -> None:
    status, error = await send(gateway, spec)
    # An example without a body may lack fields, which are checked first.
    assert status == 404 or (spec.body is not None and status in (400, 409, 415)), error
    if status == 404:
        first = VARIABLE.search(spec.path)
        assert first is not None and error["param"] == first[1], error
        assert UNKNOWN in error["message"] or error["message"].startswith(f"{first[1]}: "), error


async def test_the_unknown_one_of_two_ids_is_named(gateway: Gateway) -> None:
    store = await made(gateway, "vector_stores")
    conversation = await made(gateway, "conversations")
    ids = {"vector_store_id": store, "conversation_id": conversation}
    for spec in filter(has_id, ENDPOINTS):
        [first, *others] = VARIABLE.findall(spec.path)
        if first in ids and others:
            status, error = await send(gateway, spec, **ids)
            assert (status, error["param"]) == (404, others[0]), (spec.path, error)


async def made(gateway: Gateway, kind: str) -> str:
    """Create an object of a kind; return its id."""
    url = f"{gateway.url}/v1/{kind}"
    async with gateway.http.post(url, json={}, headers=gateway.bearer()) as answer:
        created: dict[str, str] = await answer.json()
        return created["id"]
