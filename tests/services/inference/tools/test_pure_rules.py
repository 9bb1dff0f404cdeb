"""Sums of usage, and the places where an answer names what was found."""

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2 as c
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Opaque,
    SearchResult,
    SearchResults,
    ServerToolResult,
    Usage,
    WebPage,
)
from gateway.inference.v1.inference_pb2 import Event
from services.inference.tools.citations import ChatAnswer
from services.inference.tools.usage import add_usage


def usage(extra: dict | None, dialect=c.DIALECT_ANTHROPIC, **fields) -> Usage:
    told = Usage(**fields)
    if extra is not None:
        told.extra.CopyFrom(Opaque(dialect=dialect, json=orjson.dumps(extra)))
    return told


def test_tokens_are_summed_with_what_has_no_name():
    one = usage({"n": {"a": 1}, "tier": "x", "gone": None}, input_tokens=5, reasoning_tokens=1)
    other = usage({"n": {"a": 2, "b": 3}, "tier": "y"}, input_tokens=7, web_search_requests=2)
    total = add_usage(one, other)
    assert (total.input_tokens, total.reasoning_tokens, total.web_search_requests) == (12, 1, 2)
    assert orjson.loads(total.extra.json) == {
        **{"n": {"a": 3, "b": 3}, "tier": "y"},
        "gone": None,
    }
    assert (one.input_tokens, other.input_tokens) == (5, 7)


def test_figures_that_no_json_holds_are_not_summed():
    most = {"a": 2**64 - 1}
    assert orjson.loads(add_usage(usage(most), usage(most)).extra.json) == most


def test_figures_of_another_dialect_go():
    total = add_usage(usage({"a": 1}), usage({"b": 2}, c.DIALECT_OPENAI))
    assert orjson.loads(total.extra.json) == {"b": 2}
    assert orjson.loads(add_usage(usage({"a": 1}), Usage()).extra.json) == {"a": 1}


def chat(*found: str) -> ChatAnswer:
    answer = ChatAnswer()
    results = [SearchResult(url=url, title=f"T {url}") for url in found]
    answer.add_result(ServerToolResult(name="web_search", search=SearchResults(results=results)))
    return answer


def cited(answer: ChatAnswer, text: str) -> list[tuple[str, str]]:
    """Return the part of a text and the address of each annotation."""
    answer.follow([Event(text=text)])
    told = answer.annotations()
    if not told:
        return []
    found = orjson.loads(told[0].further.message.json)["annotations"]
    places = [one["url_citation"] for one in found]
    return [(text[one["start_index"] : one["end_index"]], one["url"]) for one in places]


URL = "https://a.example/x"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"See {URL}.", URL),
        (f"See ({URL}), yes", URL),
        (f"Grüße [it]({URL}) and", f"[it]({URL})"),
        (f"<{URL}>", URL),
        (f"{URL}#part", f"{URL}#part"),
        (f"{URL}/", f"{URL}/"),
    ],
)
def test_where_a_page_is_named_is_cited(text, part):
    assert cited(chat(f"{URL}/"), text) == [(part, URL)]


@pytest.mark.parametrize("text", ["", "nothing", "https://other.example/", f"{URL}yz"])
def test_what_was_not_found_is_not_cited(text):
    assert cited(chat(URL), text) == []


def test_a_page_that_was_fetched_is_cited_too():
    answer = ChatAnswer()
    answer.add_result(ServerToolResult(name="web_fetch", page=WebPage(url=URL, title="A")))
    assert cited(answer, f"In {URL}") == [(URL, URL)]


def test_what_follows_a_search_is_a_block_of_its_own():
    answer = ChatAnswer()
    first = answer.follow([Event(text="I search."), Event(text=" Now.")])
    answer.add_result(ServerToolResult(name="web_search", search=SearchResults()))
    later = answer.follow([Event(block_start=Block(text="")), Event(text="So.", pieces=[b"So."])])
    assert [event.text for event in (*first, *later)] == ["I search.", " Now.", "", "\n\nSo."]
    assert not later[1].pieces
