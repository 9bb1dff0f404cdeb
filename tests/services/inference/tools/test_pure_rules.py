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
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.inference.tools.citations import CitationWriter
from services.inference.tools.usage import add_usage


def usage(extra: dict | None, dialect=c.DIALECT_ANTHROPIC, **fields) -> Usage:
    counted = Usage(**fields)
    if extra is not None:
        counted.extra.CopyFrom(Opaque(dialect=dialect, json=orjson.dumps(extra)))
    return counted


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


def writer(*urls: str) -> CitationWriter:
    answer = CitationWriter(joins_texts=False)
    results = [SearchResult(url=url, title=f"T {url}", text="x" * 200) for url in urls]
    answer.add_result(ServerToolResult(name="web_search", search=SearchResults(results=results)))
    return answer


def cited(answer: CitationWriter, text: str) -> list[tuple[str, str]]:
    """Return the part of a text and the address of each citation."""
    opened, stopped = Event(block_start=Block(text="")), Event(block_stop=BlockStop())
    events = answer.follow([opened, Event(text=text), stopped])
    assert (events[0], events[-1]) == (opened, stopped)
    places = [event.citation for event in events[2:-1]]
    return [(text[one.start_index : one.end_index], one.url) for one in places]


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
    assert cited(writer(f"{URL}/"), text) == [(part, URL)]


@pytest.mark.parametrize("text", ["", "nothing", "https://other.example/", f"{URL}yz"])
def test_what_was_not_found_is_not_cited(text):
    assert cited(writer(URL), text) == []


def test_a_page_that_was_fetched_is_cited_too():
    answer = CitationWriter(joins_texts=False)
    answer.add_result(ServerToolResult(name="web_fetch", page=WebPage(url=URL, title="A")))
    assert cited(answer, f"In {URL}") == [(URL, URL)]


def test_what_follows_a_search_is_a_block_of_its_own():
    answer = CitationWriter(joins_texts=True)
    first = answer.follow([Event(text="I search."), Event(text=" Now.")])
    answer.add_result(ServerToolResult(name="web_search", search=SearchResults()))
    later = answer.follow([Event(block_start=Block(text="")), Event(text="So.", pieces=[b"So."])])
    assert [event.text for event in (*first, *later)] == ["I search.", " Now.", "", "\n\nSo."]
    assert not later[1].pieces


def test_texts_are_parted_only_for_callers_who_join_them():
    answer = CitationWriter(joins_texts=False)
    answer.follow([Event(text="I search.")])
    answer.add_result(ServerToolResult(name="web_search", search=SearchResults()))
    assert [event.text for event in answer.follow([Event(text="So.")])] == ["So."]


def test_a_citation_quotes_the_beginning_of_its_page():
    stopped = Event(block_stop=BlockStop())
    citation = (
        writer(URL).follow([Event(block_start=Block(text=f"See {URL}")), stopped])[1].citation
    )
    assert (citation.title, citation.quote) == (f"T {URL}", "x" * 150)


def test_each_text_has_its_own_citations():
    answer = writer(URL)
    answer.follow([Event(text=URL), Event(block_stop=BlockStop())])
    later = [Event(block=1, text=f"{URL} {URL}"), Event(block=1, block_stop=BlockStop())]
    citations = [event for event in answer.follow(later) if event.HasField("citation")]
    places = [(event.block, event.citation.start_index) for event in citations]
    assert places == [(1, 0), (1, len(URL) + 1)]
