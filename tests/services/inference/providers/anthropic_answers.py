"""Answers of Anthropic's API, whole and as streams of the same content."""

from collections.abc import Iterable
from typing import Any

import orjson

from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures

CITATION = {
    "type": "char_location",
    "cited_text": "c",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 1,
}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "caller": {"type": "direct"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "caller": {"type": "direct"},
    "content": [],
}
FIRST_USAGE = {
    "input_tokens": 10,
    "output_tokens": 1,
    "cache_creation_input_tokens": 2,
    "cache_read_input_tokens": 3,
    "service_tier": "standard",
    "server_tool_use": None,
}
WHOLE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-1",
    "content": [
        {"type": "thinking", "thinking": "hm, so", "signature": "AAA="},
        {"type": "redacted_thinking", "data": "BBB="},
        {"type": "text", "text": "see", "citations": [CITATION]},
        {**SEARCH, "input": {"query": "x"}},
        FOUND,
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": [1]}},
        {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "stop_details": None,
    "container": {"id": "c1", "expires_at": "2026-01-01T00:00:00Z"},
    "usage": {
        **FIRST_USAGE,
        "output_tokens": 42,
        "output_tokens_details": {"thinking_tokens": 7},
        "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
    },
}


def started(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stopped(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None = "end_turn", usage: Any = None, **fields: Any) -> dict[str, Any]:
    end = {"stop_reason": reason, "stop_sequence": None, **fields}
    return {"type": "message_delta", "delta": end, "usage": usage or {"output_tokens": 5}}


BEGIN = {
    "type": "message_start",
    "message": {
        **{name: WHOLE[name] for name in ("id", "type", "role", "model")},
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": FIRST_USAGE,
    },
}
TEXT = started(0, {"type": "text", "text": ""})
PING = {"type": "ping"}
OVER = {"type": "message_stop"}
STREAM = [
    BEGIN,
    started(0, {"type": "thinking", "thinking": "", "signature": ""}),
    PING,
    delta(0, "thinking_delta", thinking="hm"),
    delta(0, "thinking_delta", thinking=", so"),
    delta(0, "signature_delta", signature="AAA="),
    stopped(0),
    started(1, {"type": "redacted_thinking", "data": "BBB="}),
    stopped(1),
    started(2, {"type": "text", "text": "", "citations": []}),
    delta(2, "text_delta", text="see"),
    delta(2, "citations_delta", citation=CITATION),
    stopped(2),
    started(3, {**SEARCH, "input": {}}),
    delta(3, "input_json_delta", partial_json='{"query"'),
    delta(3, "input_json_delta", partial_json=':"x"}'),
    stopped(3),
    started(4, FOUND),
    stopped(4),
    started(5, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}),
    delta(5, "input_json_delta", partial_json=""),
    delta(5, "input_json_delta", partial_json='{"a":'),
    delta(5, "input_json_delta", partial_json="[1]}"),
    stopped(5),
    started(6, {"type": "tool_use", "id": "t2", "name": "g", "input": {}}),
    delta(6, "input_json_delta", partial_json=""),
    stopped(6),
    ended(
        "tool_use",
        {
            "output_tokens": 42,
            "output_tokens_details": {"thinking_tokens": 7},
            "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
        },
        container=WHOLE["container"],
    ),
    OVER,
]


class Provider:
    """Makes failures as an upstream does."""

    name = "claude"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def in_band(self, body: bytes) -> UpstreamError:
        return failures.in_band(self.name, body)


def wire(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event))
        for event in events
    )
