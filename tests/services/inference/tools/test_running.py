import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import orjson
import pytest
from prometheus_client import CollectorRegistry

from gateway.conversation.v1.conversation_pb2 import ToolUse
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import WebTool
from services.common.errors import GatewayError
from services.inference.metrics import InferenceMetrics
from services.inference.tools.running import MAX_QUERY, MAX_URL, WebTools
from services.inference.tools.search import SearchResult
from tests.web_tools import TYPST, Page, Web

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PAGE = "https://docs.example/a"


class Running:
    def __init__(self, timeout_s: float = 5) -> None:
        self.web = Web()
        self.counters = CollectorRegistry()
        self.tools = WebTools(
            *(self.web, self.web, InferenceMetrics(self.counters)),
            now=lambda: NOW,
            timeout_s=timeout_s,
        )

    async def run(self, name: str, arguments: object, known: Callable[[str], bool] = bool, **tool):
        written = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        call = ToolUse(id="srvtoolu_gw1", name=name, input=written)
        kind = WebTool.KIND_SEARCH if name == "web_search" else WebTool.KIND_FETCH
        return await self.tools.run(call, WebTool(kind=kind, **tool), known)

    def count(self, tool: str, outcome: str) -> float | None:
        labels = {"tool": tool, "outcome": outcome}
        return self.counters.get_sample_value("gateway_tool_calls_total", labels)


@pytest.fixture
def running() -> Running:
    return Running()


async def test_a_search_gives_what_was_found(running):
    running.web.results = [TYPST]
    result = await running.run("web_search", {"query": "typst"}, max_results=3)
    assert result.tool_use_id == "srvtoolu_gw1"
    (one,) = result.search.results
    assert (one.url, one.title, one.text, one.age) == (
        *(TYPST.url, TYPST.title, TYPST.text, TYPST.age),
    )
    assert running.web.queries == [("typst", 3, [], [])]
    assert running.count("web_search", "served") == 1


@pytest.mark.parametrize(
    "arguments", ["", "{", "[]", "null", {}, {"query": 3}, {"query": " "}, {"q": "x"}]
)
async def test_arguments_that_no_tool_takes_are_reported(running, arguments):
    result = await running.run("web_search", arguments)
    assert result.error_code == "invalid_tool_input"
    assert running.web.queries == []
    assert running.count("web_search", "invalid_tool_input") == 1


async def test_queries_and_addresses_have_a_bound(running):
    result = await running.run("web_search", {"query": "x" * (MAX_QUERY + 1)})
    assert result.error_code == "query_too_long"
    result = await running.run("web_fetch", {"url": PAGE + "x" * MAX_URL})
    assert result.error_code == "url_too_long"


async def test_what_is_found_is_bounded(running):
    endless = SearchResult(PAGE, "t" * 10**6, "é" * 10**6, "a" * 10**6)
    too_long = SearchResult(PAGE + "x" * MAX_URL, "", "", "")
    no_address = SearchResult("javascript:steal()", "", "", "")
    running.web.results = [too_long, no_address, *[endless] * 100]
    result = await running.run("web_search", {"query": "x"})
    assert [one.url for one in result.search.results] == [PAGE] * 5
    assert result.ByteSize() < 5 * 9_000
    result = await running.run("web_search", {"query": "x"}, max_content_tokens=100)
    assert result.ByteSize() < 5 * 700


@pytest.mark.parametrize(
    ("reason", "search", "page"),
    [
        (errors_pb2.REASON_INVALID_REQUEST, "invalid_tool_input", "url_not_accessible"),
        (errors_pb2.REASON_UPSTREAM_RATE_LIMITED, "too_many_requests", "too_many_requests"),
        (errors_pb2.REASON_UPSTREAM_CONNECTION, "unavailable", "url_not_accessible"),
        (errors_pb2.REASON_UPSTREAM_TIMEOUT, "unavailable", "url_not_accessible"),
        (errors_pb2.REASON_TOO_LARGE, "unavailable", "content_too_large"),
        (errors_pb2.REASON_UNSUPPORTED, "unavailable", "unsupported_content_type"),
        (errors_pb2.REASON_UNAVAILABLE, "unavailable", "unavailable"),
    ],
)
async def test_a_failure_has_anthropics_code(running, reason, search, page):
    failure = GatewayError(reason, "no")
    running.web.failure = failure

    def fail(url: str) -> Page:
        raise failure

    running.web.page = fail
    assert (await running.run("web_search", {"query": "x"})).error_code == search
    assert (await running.run("web_fetch", {"url": PAGE})).error_code == page


async def test_a_bug_of_a_backend_is_no_failure_of_the_answer(running):
    running.web.failure = RuntimeError("a secret")
    result = await running.run("web_search", {"query": "x"})
    assert result.error_code == "unavailable"


async def test_a_slow_backend_is_given_up():
    running = Running(timeout_s=0.01)
    running.web.hangs = True
    result = await running.run("web_search", {"query": "x"})
    assert result.error_code == "unavailable"
    assert running.web.cancelled == 1


async def test_a_call_that_is_given_up_is_counted(running):
    running.web.hangs = True
    call = asyncio.create_task(running.run("web_search", {"query": "x"}))
    await running.web.searching.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert running.count("web_search", "cancelled") == 1


async def test_a_page_is_fetched_and_dated(running):
    page = (await running.run("web_fetch", {"url": f" {PAGE}#part "})).page
    assert page.text == f"What {PAGE}#part says."
    assert page.retrieved_at == "2026-11-22T00:00:00+00:00"


async def test_a_page_has_a_bound(running):
    running.web.page = lambda url: Page(url, "", "x" * 10**6, "text/html")
    page = (await running.run("web_fetch", {"url": PAGE})).page
    assert len(page.text.encode()) <= 100_000
    page = (await running.run("web_fetch", {"url": PAGE}, max_content_tokens=10)).page
    assert len(page.text.encode()) <= 40


async def test_only_addresses_that_are_known_are_fetched(running):
    asked = []

    def known(address: str) -> bool:
        asked.append(address)
        return False

    result = await running.run("web_fetch", {"url": f"{PAGE}/#part"}, known)
    assert result.error_code == "url_not_in_prior_context"
    assert asked == [PAGE]
    assert running.web.fetched == []


async def test_domains_hold_after_a_redirect(running):
    allowed = {"allowed_domains": ["docs.example"]}
    result = await running.run("web_fetch", {"url": "https://other.example/"}, **allowed)
    assert result.error_code == "url_not_allowed"
    assert running.web.fetched == []
    running.web.page = lambda url: Page("https://other.example/", "", "x", "text/html")
    result = await running.run("web_fetch", {"url": PAGE}, **allowed)
    assert result.error_code == "url_not_allowed"
