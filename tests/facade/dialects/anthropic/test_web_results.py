"""Results of the gateway's own tools as Anthropic's blocks, and Anthropic's tools for the web."""

import base64
import zlib
from typing import Any

import orjson
import pytest
from anthropic.types import CitationsWebSearchResultLocation

from facade.dialects.anthropic.messages import add_messages
from facade.dialects.anthropic.parts import block_json
from facade.dialects.anthropic.stream import MessageStream
from facade.dialects.anthropic.web_results import result_json, set_result
from facade.dialects.anthropic.web_tools import web_tool
from facade.dialects.paths import SourceMap
from gateway.conversation.v1 import conversation_pb2 as c
from gateway.inference.v1.inference_pb2 import BlockStop, Event, GenerateRequest, Start, WebTool
from services.common.errors import GatewayError
from tests.grid import each_row

CALL = "srvtoolu_gw1"
RESULTS = [
    c.ServerToolResult(
        tool_use_id=CALL,
        name="web_search",
        search=c.SearchResults(
            results=[
                c.SearchResult(url="https://a.example", title="A", text="Grüße\n\u0000", age="1 d"),
                c.SearchResult(url="https://b.example"),
            ]
        ),
    ),
    c.ServerToolResult(tool_use_id=CALL, name="web_search", search=c.SearchResults()),
    c.ServerToolResult(tool_use_id=CALL, name="web_search", error_code="unavailable"),
    c.ServerToolResult(tool_use_id=CALL, name="web_fetch", error_code="url_not_allowed"),
    c.ServerToolResult(
        tool_use_id=CALL,
        name="web_fetch",
        page=c.WebPage(url="https://a.example", title="A", text="says", retrieved_at="2026"),
    ),
    c.ServerToolResult(tool_use_id=CALL, name="web_fetch", page=c.WebPage(url="https://a.example")),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_comes_back_as_it_went_out(result):
    back = c.ServerToolResult()
    set_result(back, result_json(result), "p")
    assert back == result


def test_what_a_page_says_cannot_be_read_in_passing():
    (found, _) = result_json(RESULTS[0])["content"]
    assert "Gr" not in found["encrypted_content"]


def block(content: Any, kind: str = "web_search") -> dict[str, Any]:
    return {"type": f"{kind}_tool_result", "tool_use_id": CALL, "content": content}


def found(packed: object) -> dict[str, Any]:
    one = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": packed}
    return block([one])


def packed(data: bytes) -> str:
    return "gwt1." + base64.b64encode(data).decode()


WHERE = "p.content[0].encrypted_content"


@each_row(
    ("given", "path"),
    [
        (block(None), "p.content"),
        (block("text"), "p.content"),
        (block({"type": "web_search_tool_result_error"}), "p.content"),
        (block(["x"]), "p.content[0]"),
        (block([{"url": "u"}]), "p.content[0]"),
        (found(3), "p.content[0]"),
        (found("from Anthropic"), WHERE),
        (found("gwt1.*"), WHERE),
        (found(packed(b"no zlib")), WHERE),
        (found(packed(zlib.compress(b"\xff"))), WHERE),
        (found(packed(zlib.compress(b"x" * 2_000_000))), WHERE),
        (found(packed(zlib.compress(b"cut off")[:-4])), WHERE),
        (block([], "web_fetch"), "p.content"),
        (block({"type": "web_fetch_result", "url": "u"}, "web_fetch"), "p.content"),
        (block({"type": "web_fetch_result"}), "p.content"),
    ],
)
def test_what_the_gateway_never_wrote_is_refused_by_its_path(given, path):
    with pytest.raises(GatewayError) as refused:
        set_result(c.ServerToolResult(), given, "p")
    assert refused.value.param == path


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, WebTool.KIND_SEARCH),
        ({"type": "web_search_20990101"}, WebTool.KIND_SEARCH),
        ({"type": "web_fetch_20250910", "name": "web_fetch"}, WebTool.KIND_FETCH),
        ({"type": "web_search_20250305", "name": "other"}, None),
        ({"type": "code_execution_20250825", "name": "code_execution"}, None),
    ],
)
def test_tools_for_the_web_are_known_in_any_version(tool, kind):
    told = web_tool(tool, "tools[0]")
    assert (told and told.kind) == kind


def test_bounds_of_a_tool_are_read():
    tool = {
        **{"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 2},
        **{"blocked_domains": ["a.example"], "max_content_tokens": 9, "citations": {}},
        "cache_control": None,
    }
    told = web_tool(tool, "tools[0]")
    assert told == WebTool(
        kind=WebTool.KIND_FETCH,
        max_uses=2,
        blocked_domains=["a.example"],
        max_content_tokens=9,
        foreign_fields=["citations"],
    )


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"city": "Bern", "region": "BE", "country": "CH", "timezone": "Europe/Zurich"}, None),
        ({"city": None, "country": "CH"}, "CH"),
        (None, ""),
    ],
)
def test_a_location_is_written_in_words(place, words):
    tool = {"type": "web_search_20250305", "user_location": place}
    told = web_tool(tool, "tools[0]")
    assert told is not None
    assert told.user_location == (
        "Bern, BE, CH, time zone Europe/Zurich" if words is None else words
    )


@pytest.mark.parametrize("city", ["x" * 101, "new\nline", ["Bern"]])
def test_a_place_is_bounded(city):
    with pytest.raises(GatewayError) as refused:
        web_tool({"type": "web_search_20250305", "user_location": {"city": city}}, "tools[0]")
    assert refused.value.param == "tools[0].user_location.city"


def sent_back(block: dict[str, Any]) -> c.Block:
    """Return the canonical block that a caller's becomes."""
    request = GenerateRequest()
    add_messages(request.messages, [{"role": "assistant", "content": [block]}], "", SourceMap())
    return request.messages[0].blocks[0]


def test_citations_of_the_gateway_come_back_as_anthropics() -> None:
    told = c.Citation(url="https://a.example", title="A", start_index=1, end_index=4, quote="q")
    shown = block_json(c.Block(text="See", citations=[told]))
    assert CitationsWebSearchResultLocation.model_validate(shown["citations"][0], strict=True)
    assert (shown["citations"][0]["url"], shown["citations"][0]["cited_text"]) == (told.url, "q")
    batch = [
        Event(start=Start(id="a", model="m")),
        Event(block_start=c.Block(text="")),
        Event(text="See"),
        Event(citation=told),
        Event(block_stop=BlockStop()),
    ]
    stream = MessageStream("req_1").encode(batch)
    delta = {"type": "citations_delta", "citation": shown["citations"][0]}
    assert b'"delta":' + orjson.dumps(delta) in stream
    assert not sent_back(shown).HasField("extra")
    other = {"type": "page_location", "document_index": 0}
    kept = sent_back(shown | {"citations": [*shown["citations"], other]})
    assert orjson.loads(kept.extra.json) == {"citations": [other]}
