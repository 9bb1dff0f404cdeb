"""The OpenAPI document: true to the routes, and requests made from it never break anything."""

import asyncio
import functools
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from html import unescape
from itertools import islice
from math import ceil
from pathlib import Path

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck
from schemathesis import GenerationMode
from schemathesis.generation.drivers import CoverageGenerator
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)
from schemathesis.generation.overrides import Override
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from facade.app import _routes
from facade.credentials import BASE_PATHS
from facade.description import api_page
from facade.endpoints import ENDPOINTS
from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row
from tests.openapi import openapi_document

CONFORMANCE = [status_code_conformance, content_type_conformance, response_schema_conformance]


ADMIN_KEY = make_admin_key(bytes(32))
ADMIN = {"admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()}}
CONSOLE_PAGES = (
    *("/console", "/console/assets/{name}", "/console/version", "/console/{page}"),
    *("/console/oidc/start", "/console/oidc/callback"),
)
schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
# `make soak` takes them all: of some operations there are thousands, most of which repeat what
# one schema allows inside another, and to make them takes longer than to send them.
MOST_MADE = 10
MOST_SENT = 2
PATIENCE_S = 60  # schemathesis itself would wait for 10 s


@functools.cache
def schema() -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_dict(deepcopy(openapi_document()))


@functools.cache
def operations() -> Mapping[str, schemathesis.APIOperation]:
    """Return the operations by their names."""
    return {each.label: each for each in (one.ok() for one in schema().get_all_operations())}


@pytest.fixture(scope="module")
def http() -> Iterator[requests.Session]:
    """Return a session whose connection every request of a test goes over."""
    with requests.Session() as session:
        session.trust_env = False  # for each request it would look for proxies and a .netrc
        yield session


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Return a gateway that runs in another thread, for callers that block."""
    ready = threading.Event()
    box: list[tuple[Gateway, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve(folder: Path) -> None:
        stop = asyncio.Event()
        async with running_gateway(folder, **ADMIN) as gateway:
            box.append((gateway, asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    folder = tmp_path_factory.mktemp("gateway")
    thread = threading.Thread(target=lambda: asyncio.run(serve(folder)))
    thread.start()
    assert ready.wait(60)
    gateway, loop, stop = box[0]
    yield gateway
    loop.call_soon_threadsafe(stop.set)
    thread.join()


OF_HTTP = frozenset({"content-length", "transfer-encoding", "expect"})


def check_answer(case: schemathesis.Case, gateway: Gateway, http: requests.Session) -> None:
    # Made-up headers may be those of HTTP itself, and then this is no request any more.
    made = {
        name: value for name, value in (case.headers or {}).items() if name.lower() not in OF_HTTP
    }
    if case.path.startswith("/admin/"):
        case.headers = {**made, "Authorization": f"Bearer {ADMIN_KEY}"}
    else:
        case.headers = {**made, "x-api-key": gateway.key}
    case.headers["compat-version"] = "2023-06-01"
    if isinstance(case.body, dict) and not case.path.startswith("/admin/"):
        # Most of what is made up names no model, and would be refused for that alone.
        case.body["model"] = "sandbox/echo"
        case.body.pop("stream", None)
    response = case.call(base_url=gateway.url, session=http, timeout=PATIENCE_S)
    is_failure = response.status_code >= 500 and response.status_code not in (501, 503)
    assert not is_failure, f"{response.text}\n{case.as_curl_command()}"
    case.validate_response(response, checks=CONFORMANCE)


def check_generated(
    label: str, max_examples: int, gateway: Gateway, http: requests.Session
) -> None:
    """Check the answers to the schema's examples of an operation, and to requests at random."""
    settings = hypothesis.settings(
        max_examples=max_examples, deadline=None, suppress_health_check=list(HealthCheck)
    )
    phases = [HypothesisTestMode.EXAMPLES, HypothesisTestMode.FUZZING]
    config = HypothesisTestConfig(
        project=schema().config,
        modes=phases,
        settings=settings,
        # The number of the loaded profile would replace this one otherwise.
        explicit_setting_names={"max_examples"},
    )

    def check(case: schemathesis.Case) -> None:
        check_answer(case, gateway, http)

    create_test(operation=operations()[label], test_func=check, config=config)()


def edge_cases(
    label: str, modes: Sequence[GenerationMode] = tuple(GenerationMode)
) -> Iterator[schemathesis.Case]:
    """Make the requests at the edges of an operation's schema, the same ones every time."""
    operation = operations()[label]
    generation = schema().config.generation_for(operation=operation, phase="coverage")
    yield from CoverageGenerator(
        operation=operation,
        generation_modes=list(modes),
        generation_config=generation,
        auth_storage=None,
        override=Override(),
        feedback=FeedbackSources(),
    )


# Of each operation one of both kinds is tried; `make soak` tries more of both of all.
@each_row("label", lambda: [*operations()][::2])
def test_generated_requests_get_documented_answers(
    label: str, elsewhere: Gateway, http: requests.Session
):
    check_generated(label, 1, elsewhere, http)


@each_row("label", lambda: [*operations()][1::2])
def test_edge_cases_get_documented_answers(label: str, elsewhere: Gateway, http: requests.Session):
    sent = 0
    # Those that the schema allows, and those that it does not.
    for mode in GenerationMode:
        cases = list(islice(edge_cases(label, [mode]), MOST_MADE))
        for case in cases[:: ceil(len(cases) / MOST_SENT) or 1]:
            check_answer(case, elsewhere, http)
            sent += 1
    assert sent


@pytest.mark.soak
@each_row("label", operations)
def test_many_generated_requests_get_documented_answers(
    label: str, elsewhere: Gateway, http: requests.Session
):
    check_generated(label, 200, elsewhere, http)


@pytest.mark.soak
@each_row("label", operations)
def test_every_edge_case_gets_a_documented_answer(
    label: str, elsewhere: Gateway, http: requests.Session
):
    for case in edge_cases(label):
        check_answer(case, elsewhere, http)


def test_every_route_except_pages_for_people_is_documented():
    served = {
        (route.method, re.sub(r":[^}]+}", "}", route.path))
        for route in _routes(ENDPOINTS)
        if route.method != "HEAD" or route.path not in BASE_PATHS
    }
    described = {
        (method.upper(), path)
        for path, operations in openapi_document()["paths"].items()
        for method in operations
    }
    aliases = {(method, path) for method, path in served if path.startswith("/v1/")}
    assert {(method, f"/beta{path}") for method, path in aliases} <= served
    pages = {("GET", path) for path in ("/", "/docs", *CONSOLE_PAGES)}
    assert served - aliases - described == pages
    assert described <= served


def test_names_of_schemas_tell_nothing_of_modules():
    schemas = openapi_document()["components"]["schemas"]
    assert {"openai.Message", "anthropic.Message", "responses.Message"} <= schemas.keys()
    assert not [name for name in schemas if "_" in name]


def test_names_of_operations_are_unique():
    names = [endpoint.operation_id for endpoint in ENDPOINTS if endpoint.operation_id]
    assert len(set(names)) == len(names)


def test_every_variable_of_a_path_is_a_parameter():
    for path, operations in openapi_document()["paths"].items():
        for method, operation in operations.items():
            places = [
                each["name"] for each in operation.get("parameters", []) if each["in"] == "path"
            ]
            assert places == re.findall(r"{(\w+)}", path), f"{method} {path}"


def test_each_operation_needs_the_documented_key(elsewhere: Gateway, http: requests.Session):
    keys = {
        "bearer": {"Authorization": f"Bearer {elsewhere.key}"},
        "apiKey": {"x-api-key": elsewhere.key},
        "googleKey": {"x-goog-api-key": elsewhere.key},
        "adminKey": {"Authorization": f"Bearer {ADMIN_KEY}"},
        "none": {},
    }
    document = openapi_document()
    differing = []
    for path, operations in document["paths"].items():
        url = elsewhere.url + re.sub(r"{\w+}", "x", path)
        for method, operation in operations.items():
            security = operation.get("security", document["security"])
            documented = {name for scheme in security for name in scheme} or set(keys)
            accepted = set()
            for name, headers in keys.items():
                answer = http.request(method, url, headers=headers)
                if answer.status_code != 401:
                    accepted.add(name)
            if accepted != documented:
                differing.append((method, path, accepted))
    assert differing == []


def test_the_page_names_every_endpoint():
    page = unescape(api_page.page(ENDPOINTS))
    for path in openapi_document()["paths"]:
        assert f"<code>{path.removeprefix('/beta')}</code>" in page
