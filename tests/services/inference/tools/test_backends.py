"""Search backends, against servers that answer as the real ones do."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from gateway.errors.v1 import errors_pb2
from services.common import http
from services.common.errors import GatewayError
from services.common.settings import WebSearch
from services.inference.tools.backends import search_backend
from services.inference.tools.search import SearchResult
from tests.services.inference.providers.scripted_server import (
    Connection,
    Request,
    ScriptedServer,
    scripted_server,
)

KEY = "very-secret-word"
FOUND = [
    {
        "url": "https://one.example/a?b=c",
        "title": "One &amp; <strong>only</strong>",
        "description": "A <strong>first</strong>\n text, 1 < 2 > 0",
        "content": "A <strong>first</strong>\n text, 1 < 2 > 0",
        "age": "2 days ago",
        "page_age": "2026-11-20T08:00:00",
        "publishedDate": "2026-11-20T08:00:00",
        "published_date": "2026-11-20T08:00:00",
        "score": 0.5,
    },
    {"url": "https://docs.two.example/b", "title": None, "description": 7, "content": 7},
    {"url": "https://one.example/a?b=c", "title": "again"},
    {"url": "javascript:alert(1)", "title": "x"},
    {"url": "ftp://three.example/c", "title": "x"},
    {"url": "https://three.example/\u2028x", "title": "x"},
    {"title": "no address"},
    "nothing",
    {"url": "https://three.example/c", "title": "x" * 999, "content": "y" * 9_999},
]
FIRST = SearchResult(
    "https://one.example/a?b=c", "One & only", "A first text, 1 < 2 > 0", "2026-11-20T08:00:00"
)
KINDS = ["searxng", "brave", "tavily"]


def answer_of(kind: str, results: object) -> dict[str, Any]:
    return (
        {"web": {"results": results}, "type": "search"} if kind == "brave" else {"results": results}
    )


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as one:
        yield one


@pytest.fixture
async def client() -> AsyncIterator[http.Client]:
    async with http.Client(60, http.Proxies({}), settle_s=0) as one:
        yield one


class Searching:
    """A backend, and what it was asked."""

    def __init__(self, kind: str, server: ScriptedServer, client: http.Client) -> None:
        self.kind = kind
        self.server = server
        self.client = client
        self.says(200, answer_of(kind, FOUND))

    def says(self, status: int, body: object, headers: str = "x: y") -> None:
        async def script(connection: Connection) -> None:
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            await connection.answer(text, status, headers)

        self.server.plays(script)

    async def search(self, query: str = "what  is it", **asked: Any) -> list[SearchResult]:
        settings = WebSearch(
            backend=self.kind, url=self.server.url, api_key_env="WORD", max_results=8
        )
        searches = search_backend(settings, self.client, {"WORD": KEY})
        assert searches is not None
        return list(await searches.search(query, **({"count": 5} | asked)))

    @property
    def request(self) -> Request:
        return self.server.requests[-1]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.request.target).query))

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.request.body)


@pytest.fixture(params=KINDS)
def searching(
    request: pytest.FixtureRequest, server: ScriptedServer, client: http.Client
) -> Searching:
    return Searching(request.param, server, client)


async def test_results_are_plain_bounded_and_each_once(searching: Searching) -> None:
    results = await searching.search()
    assert [one.url for one in results] == [
        "https://one.example/a?b=c",
        "https://docs.two.example/b",
        "https://three.example/c",
    ]
    assert results[0] == FIRST
    assert results[1] == SearchResult("https://docs.two.example/b", "", "", "")
    assert len(results[2].title) == 301
    assert len(results[2].text) in (0, 2001)


async def test_no_more_results_than_asked_for_or_allowed(searching: Searching) -> None:
    many = [{"url": f"https://a.example/{number}"} for number in range(30)]
    searching.says(200, answer_of(searching.kind, many))
    assert len(await searching.search(count=2)) == 2
    assert len(await searching.search(count=100)) == 8


async def test_domains_are_applied_to_the_results(searching: Searching) -> None:
    results = await searching.search(allowed_domains=["two.example", "three.example/c"])
    assert [one.url for one in results] == ["https://docs.two.example/b", "https://three.example/c"]
    results = await searching.search(blocked_domains=["one.example"])
    assert [one.url for one in results] == ["https://docs.two.example/b", "https://three.example/c"]


async def test_a_word_that_is_no_domain_is_refused(searching: Searching) -> None:
    with pytest.raises(GatewayError, match="'two' is not a domain"):
        await searching.search(allowed_domains=["two"])
    assert searching.server.connections == 0


@pytest.mark.parametrize("query", ["", "  ", "word " * 401, "x" * 1_001])
async def test_a_query_that_nobody_takes_is_not_sent(searching: Searching, query: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await searching.search(query)
    assert caught.value.reason == errors_pb2.REASON_INVALID_REQUEST
    assert searching.server.connections == 0


@pytest.mark.parametrize("answer", [{}, {"results": 7, "web": 7}, {"results": None, "web": {}}])
async def test_an_answer_without_results_has_none(searching: Searching, answer: object) -> None:
    searching.says(200, answer)
    assert await searching.search() == []


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, b"<html>", errors_pb2.REASON_UPSTREAM_ERROR),
        (200, [], errors_pb2.REASON_UPSTREAM_ERROR),
        (302, b"", errors_pb2.REASON_UPSTREAM_ERROR),
        (401, {"detail": KEY}, errors_pb2.REASON_UPSTREAM_AUTH),
        (403, {"detail": KEY}, errors_pb2.REASON_UPSTREAM_AUTH),
        (429, {"detail": KEY}, errors_pb2.REASON_UPSTREAM_RATE_LIMITED),
        (500, {"detail": KEY}, errors_pb2.REASON_UPSTREAM_ERROR),
    ],
)
async def test_a_failure_names_the_backend_and_no_secret(
    searching: Searching, status: int, body: object, reason: int
) -> None:
    searching.says(status, body, "retry-after: 7")
    with pytest.raises(GatewayError) as caught:
        await searching.search()
    assert caught.value.reason == reason
    assert f"the web search backend {searching.kind} " in caught.value.message
    assert KEY not in caught.value.message
    assert searching.server.url not in caught.value.message
    if status == 429:
        assert caught.value.retry_after_s == 7


async def test_an_answer_that_is_too_large_is_not_read_to_its_end(searching: Searching) -> None:
    searching.says(200, b" " * (3 << 20))
    with pytest.raises(GatewayError, match="more than 2,097,152 bytes"):
        await searching.search()


async def test_the_connection_ends_with_a_refusal_that_does_not(searching: Searching) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 500 S\r\ncontent-length: 9\r\n\r\n{")
        await connection.until_left()

    searching.server.plays(script)
    with pytest.raises(GatewayError, match="status 500"):
        await searching.search()
    await asyncio.wait_for(searching.server.left.wait(), 60)


async def test_a_backend_that_breaks_off_is_reported(searching: Searching) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 S\r\ncontent-length: 9\r\n\r\n{")
        connection.close()

    searching.server.plays(script)
    with pytest.raises(GatewayError) as caught:
        await searching.search()
    assert caught.value.reason == errors_pb2.REASON_UPSTREAM_CONNECTION


async def test_a_backend_that_stays_silent_is_left(searching: Searching) -> None:
    async def script(connection: Connection) -> None:
        await connection.until_left()

    await searching.search()  # opens the connection, so that no pause prevents it
    searching.server.plays(script)
    settings = WebSearch(
        backend=searching.kind, url=searching.server.url, api_key=KEY, timeout_s=0.05
    )
    searches = search_backend(settings, searching.client, {})
    assert searches is not None
    with pytest.raises(GatewayError) as caught:
        await searches.search("x", count=1)
    assert caught.value.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT
    await asyncio.wait_for(searching.server.left.wait(), 60)


@pytest.mark.parametrize(
    ("kind", "path"),
    [("searxng", "/search"), ("brave", "/res/v1/web/search"), ("tavily", "/search")],
)
async def test_an_address_needs_no_path(
    kind: str, path: str, server: ScriptedServer, client: http.Client
) -> None:
    searching = Searching(kind, server, client)
    place = server.url.removesuffix("/v1")
    for url in (place, f"{place}/", f"{place}{path}"):
        searches = search_backend(WebSearch(backend=kind, url=url, api_key=KEY), client, {})
        assert searches is not None
        await searches.search("x", count=1)
        assert searching.request.target.partition("?")[0] == path


async def test_a_backend_without_its_key_is_not_asked(client: http.Client) -> None:
    searches = search_backend(WebSearch(backend="brave"), client, {})
    assert searches is not None
    with pytest.raises(GatewayError, match="BRAVE_API_KEY is not set"):
        await searches.search("x", count=1)
    assert search_backend(WebSearch(), client, {}) is None


# What each of them is asked, as its documentation has it.


async def test_searxng_is_asked_as_it_wants(server: ScriptedServer, client: http.Client) -> None:
    searching = Searching("searxng", server, client)
    await searching.search(blocked_domains=["spam.example", "x.example/part"])
    assert searching.request.target.startswith("/v1/search?")
    assert searching.query == {"q": "what is it -site:spam.example", "format": "json"}
    assert searching.request.headers["authorization"] == f"Bearer {KEY}"
    await searching.search(allowed_domains=["a.example", "b.example/c"])
    assert searching.query["q"] == "what is it (site:a.example OR site:b.example)"
    # More than fit are left to the filter.
    await searching.search(allowed_domains=[f"a{number}.example" for number in range(99)])
    assert searching.query["q"] == "what is it"


async def test_searxng_takes_a_query_and_a_password_of_its_address(
    server: ScriptedServer, client: http.Client
) -> None:
    searching = Searching("searxng", server, client)
    for path in ("/search", "", "/"):
        url = server.url.replace("http://", "http://me:pass@") + f"{path}?language=de"
        searches = search_backend(WebSearch(backend="searxng", url=url), client, {})
        assert searches is not None
        await searches.search("x", count=1)
        assert searching.request.target.startswith("/v1/search?")
        assert searching.query == {"q": "x", "format": "json", "language": "de"}
    pair = base64.b64encode(b"me:pass").decode()
    assert searching.request.headers["authorization"] == f"Basic {pair}"


async def test_searxng_whose_engines_fail_has_failed(
    server: ScriptedServer, client: http.Client
) -> None:
    searching = Searching("searxng", server, client)
    searching.says(200, {"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]})
    with pytest.raises(GatewayError, match="its search engines did not answer"):
        await searching.search()
    searching.says(200, {"results": [], "unresponsive_engines": []})
    assert await searching.search() == []
    searching.says(403, b"")
    with pytest.raises(GatewayError, match=r"search\.formats contains json"):
        await searching.search()


async def test_brave_is_asked_as_it_wants(server: ScriptedServer, client: http.Client) -> None:
    searching = Searching("brave", server, client)
    await searching.search()
    assert searching.query == {
        "q": "what is it",
        "count": "5",
        "result_filter": "web",
        "text_decorations": "false",
    }
    assert searching.request.headers["x-subscription-token"] == KEY
    await searching.search(blocked_domains=[f"spam{number}.example" for number in range(99)])
    assert searching.query["count"] == "20"
    assert len(searching.query["q"]) <= 400
    assert len(searching.query["q"].split()) <= 50
    assert searching.query["q"].startswith("what is it -site:spam0.example")
    searching.says(422, {"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}})
    with pytest.raises(GatewayError, match="check its key"):
        await searching.search()


async def test_tavily_is_asked_as_it_wants(server: ScriptedServer, client: http.Client) -> None:
    searching = Searching("tavily", server, client)
    await searching.search(allowed_domains=["a.example"], blocked_domains=["b.a.example"])
    assert searching.body == {
        "query": "what is it",
        "max_results": 5,
        "include_domains": ["a.example"],
        "exclude_domains": ["b.a.example"],
    }
    assert searching.request.headers["authorization"] == f"Bearer {KEY}"
    assert searching.request.headers["content-type"] == "application/json"
    await searching.search(allowed_domains=["a.example/x"], blocked_domains=["b.example/y"])
    assert searching.body == {
        "query": "what is it",
        "max_results": 20,
        "include_domains": ["a.example"],
    }
    await searching.search(allowed_domains=[f"a{number}.example" for number in range(301)])
    assert "include_domains" not in searching.body
    searching.says(432, {"detail": {"error": "This request exceeds your plan's set usage limit."}})
    with pytest.raises(GatewayError, match="the remaining quota of its plan"):
        await searching.search()
