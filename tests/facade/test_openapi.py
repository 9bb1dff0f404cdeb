"""The OpenAPI document: true to the routes, and requests made from it never break anything."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import orjson
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis.checks import CHECKS

from facade import openapi
from facade.app import create_app
from services.common.settings import Settings
from tests.gateway_in_process import Gateway, running_gateway

SCHEMA = schemathesis.openapi.from_dict(orjson.loads(openapi.document()))
# The same requests at the edges of the schema are in both, and they are made whenever tests
# are collected: once is enough.
AT_RANDOM = schemathesis.openapi.from_dict(orjson.loads(openapi.document()))
AT_RANDOM.config.phases.coverage.enabled = False
CONFORMANCE = CHECKS.get_by_names(
    ["status_code_conformance", "content_type_conformance", "response_schema_conformance"]
)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Return a gateway that runs in another thread, for callers that block."""
    ready = threading.Event()
    box: list[tuple[Gateway, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve(folder: Path) -> None:
        stop = asyncio.Event()
        async with running_gateway(folder) as gateway:
            box.append((gateway, asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    folder = tmp_path_factory.mktemp("gateway")
    thread = threading.Thread(target=lambda: asyncio.run(serve(folder)))
    thread.start()
    assert ready.wait(30)
    gateway, loop, stop = box[0]
    yield gateway
    loop.call_soon_threadsafe(stop.set)
    thread.join()


OF_HTTP = frozenset({"content-length", "transfer-encoding", "expect"})


def check_answer(case: schemathesis.Case, gateway: Gateway) -> None:
    # Made-up headers may be those of HTTP itself, and then this is no request any more.
    made = {
        name: value for name, value in (case.headers or {}).items() if name.lower() not in OF_HTTP
    }
    case.headers = {**made, "x-api-key": gateway.key}
    case.headers["compat-version"] = "2023-06-01"
    if isinstance(case.body, dict):
        # Most of what is made up names no model, and would be refused for that alone.
        case.body["model"] = "sandbox/echo"
        case.body.pop("stream", None)
    response = case.call(base_url=gateway.url)
    assert response.status_code in (501, 503) or response.status_code < 500, response.text
    case.validate_response(response, checks=CONFORMANCE)


@SCHEMA.parametrize()
@hypothesis.settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_generated_requests_get_documented_answers(case, elsewhere: Gateway):
    check_answer(case, elsewhere)


@pytest.mark.soak
@AT_RANDOM.parametrize()
@hypothesis.settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_generated_requests_get_documented_answers(case, elsewhere: Gateway):
    check_answer(case, elsewhere)


def test_every_route_except_pages_for_people_is_documented():
    app = create_app(SimpleNamespace(settings=Settings()))
    served = {
        (route.method, route.resource.canonical.replace("{name}", "{model}"))
        for route in app.router.routes()
        if route.method != "HEAD"
    }
    described = {
        (method.upper(), path)
        for path, operations in orjson.loads(openapi.document())["paths"].items()
        for method in operations
    }
    assert served - described == {("GET", "/docs")}
    assert described <= served


def test_the_page_names_every_endpoint():
    page = openapi.page()
    for path in orjson.loads(openapi.document())["paths"]:
        assert path in page
