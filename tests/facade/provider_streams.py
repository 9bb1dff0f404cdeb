"""Streams as providers write them, usual and odd ones, for laws about all of them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]


@dataclass(frozen=True)
class Style:
    """How a server writes JSON."""

    ascii: bool
    spaces: bool
    solidus: bool

    def event(self, content: Json, name: str = "") -> bytes:
        separators = (", ", ": ") if self.spaces else (",", ":")
        written = json.dumps(content, ensure_ascii=self.ascii, separators=separators)
        if self.solidus:
            written = written.replace("/", "\\/")
        line = f"event: {name}\n" if name else ""
        return f"{line}data: {written}\n\n".encode()


styles = st.builds(Style, st.booleans(), st.booleans(), st.booleans())
plain = st.sampled_from(["a", "bc ", " d", "é", "\U0001f600", "/"])
odd = st.sampled_from(
    [
        "",
        "?",
        '"},"finish_reason":null}]}\n\ndata: {"id":"c","choices":[{"index":0,"delta":{"content":"',
        '"}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta"',
        "\\",
        '\\"',
        "[DONE]",
        "content",
        "text_delta",
        '{"a":1}',
    ]
)
# What is said a little at a time.
runs = st.one_of(
    st.lists(plain | plain | st.text(max_size=4) | odd, min_size=1, max_size=7),
    st.just(["[", "1", ",2", "]"]),
)


def _now_and_then(draw: st.DrawFn) -> bool:
    # Not at an end of the range, where examples gather.
    return draw(st.integers(0, 9)) == 6


def _chunk(style: Style, delta: Json, index: int = 0, **fields: Any) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
    choice |= fields.pop("choice", {})
    return style.event({"id": "c", "created": 1, "model": "m", "choices": [choice], **fields})


def _call(index: int, function: Json, **fields: Any) -> Json:
    return {"tool_calls": [{"index": index, "function": function, **fields}]}


def _arguments(index: int, text: str, **fields: Any) -> Json:
    return _call(index, {"arguments": text}, **fields)


def _custom(text: str) -> Json:
    return {"tool_calls": [{"index": 0, "type": "custom", "custom": {"input": text}}]}


_DELTAS: list[Callable[[str], Json]] = [
    lambda text: {"content": text},
    lambda text: {"role": "assistant", "content": text, "refusal": None},
    lambda text: {"reasoning_content": text, "content": None},
    lambda text: {"reasoning": text, "content": ""},
    lambda text: {"reasoning": text, "reasoning_content": text},
    lambda text: {"refusal": text},
    lambda text: {"content": text, "refusal": "no"},
    lambda text: {"content": [{"type": "text", "text": text}]},
    lambda text: {"content": text, **_arguments(0, "x")},
    partial(_arguments, 0),
    partial(_arguments, 1),
    _custom,
    # Servers that tell all of a call each time, one whose arguments are no string, and
    # one that mixes the two kinds of calls.
    lambda text: _call(0, {"name": "f", "arguments": text}, id="i"),
    lambda text: _call(0, {"arguments": 5}, id=text),
    lambda text: _call(0, {"input": "a", "arguments": text}, type="custom"),
]
_MORE: list[Json] = [
    {"usage": {"prompt_tokens": 1, "completion_tokens": 2}},
    {"created": 2},
    {"choice": {"logprobs": {"content": []}}},
    {"choice": {"finish_reason": "stop"}},
    {"error": {"message": "m"}},
]


@st.composite
def of_chat_completions(draw: st.DrawFn) -> bytes:
    """Return a stream of chunks."""
    style = draw(styles)
    choices = draw(st.sampled_from([1, 1, 1, 2]))
    fields: Json = draw(st.sampled_from([{}, {}, {"usage": None}, {"service_tier": "x"}]))
    padded = draw(st.booleans())
    made = [_chunk(style, {"role": "assistant", "content": ""}, index) for index in range(choices)]
    for _ in range(draw(st.integers(1, 5))):
        delta = draw(st.sampled_from(_DELTAS))
        index = draw(st.integers(0, choices - 1))
        for call in delta("").get("tool_calls", ()):
            begun = _call(call["index"], {"name": "f", "arguments": ""}, id="i")
            made.append(_chunk(style, begun, index))
        more = fields | (draw(st.sampled_from(_MORE)) if _now_and_then(draw) else {})
        for text in draw(runs):
            padding = {"obfuscation": draw(st.text("aZ9", max_size=5))} if padded else {}
            made.append(_chunk(style, delta(text), index, **more, **padding))
            if _now_and_then(draw):
                other = [b": wait\n\n", b"\n", b"event: x\ndata: {}\n\n"]
                made.append(draw(st.sampled_from(other)))
    for index in range(choices):
        made.append(_chunk(style, {}, index, choice={"finish_reason": "stop"}))
    made.append(style.event({"choices": [], "usage": {"prompt_tokens": 3}}))
    return b"".join(made) + b"data: [DONE]\n\n"


_TEXT: Json = {"type": "text", "text": ""}
_THINKING: Json = {"type": "thinking", "thinking": "", "signature": ""}
_TOOL: Json = {"type": "tool_use", "id": "i", "name": "f", "input": {}}
# Blocks, each with the type of its deltas and where their text is.
_USUAL = [
    (_TEXT, "text_delta", "text"),
    (_THINKING, "thinking_delta", "thinking"),
    (_TOOL, "input_json_delta", "partial_json"),
]
_ODD = [
    ({"type": "server_tool_use", "id": "i"}, "input_json_delta", "partial_json"),
    (_TEXT, "other_delta", "text"),
    (_TEXT, "thinking_delta", "thinking"),
]


def _delta(style: Style, index: int, delta: Json, name: str = "") -> bytes:
    event = {"type": "content_block_delta", "index": index, "delta": delta}
    return style.event(event, name)


@st.composite
def of_messages(draw: st.DrawFn) -> bytes:
    """Return a stream of a message's events."""
    style = draw(styles)
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "usage": usage}
    begun = {"type": "message_start", "message": {**message, "content": []}}
    made = [style.event(begun, "message_start")]
    name = draw(st.sampled_from(["content_block_delta", ""]))
    is_numbered = not _now_and_then(draw)
    for number in range(draw(st.integers(1, 4))):
        block, kind, field = draw(st.sampled_from(_USUAL * 4 + _ODD))
        index = number if is_numbered else 0
        start = {"type": "content_block_start", "index": index, "content_block": block}
        made.append(style.event(start))
        said = [_delta(style, index, {"type": kind, field: text}, name) for text in draw(runs)]
        others = [
            b'event: ping\ndata: {"type": "ping"}\n\n',
            b": wait\n\n",
            _delta(style, index, {"type": "signature_delta", "signature": "s"}),
            _delta(style, index, {"type": "citations_delta", "citation": {}}),
            _delta(style, index + 1, {"type": kind, field: "a"}),
        ]
        for event in said:
            made.append(event)
            if _now_and_then(draw):
                made.append(draw(st.sampled_from(others[:3] * 3 + others)))
        made.append(style.event({"type": "content_block_stop", "index": index}))
        if not is_numbered and _now_and_then(draw):
            made.append(said[-1])
    ending = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    made.append(style.event({"type": "message_delta", **ending}))
    made.append(style.event({"type": "message_stop"}))
    return b"".join(made)


@st.composite
def cut_and_broken(draw: st.DrawFn, streams: st.SearchStrategy[bytes]) -> list[bytes]:
    """Return a stream in pieces, some bytes of it others than they were now and then."""
    stream = draw(streams)
    if _now_and_then(draw):
        at = draw(st.integers(0, len(stream)))
        wrong = st.sampled_from([b"\xff", b"\x00", b'"', b"\\", b"\\ud800"])
        other = draw(st.binary(max_size=2) | wrong)
        stream = stream[:at] + other + stream[at + len(other) :]
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
