"""The grammar of streams and the shape of answers in each dialect.

Each reader returns what an answer says, and raises AssertionError where it breaks the grammar.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import orjson

Dialect = Literal["chat", "messages", "responses"]
Json = dict[str, Any]

_FINISHES = {"stop", "length", "tool_calls", "content_filter", "function_call", None}
_ENDS = {"response.completed", "response.incomplete"}
_ITEMS = ("response.output_item.added", "response.output_item.done")


# Blocks of a message whose deltas have a kind of their own.
_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


class Said(NamedTuple):
    """An answer as its caller reads it.

    Attributes:
        is_complete: whether it ends as a complete answer does; otherwise it ends in an error.
        text: its text, the choices one after the other.
    """

    is_complete: bool
    text: str


def chat_stream(stream: bytes) -> Said:
    """Read a stream of chat completion chunks."""
    texts: dict[int, str] = {}
    ended: set[int] = set()
    calls: dict[tuple[int, int], bool] = {}  # whether each has a name
    events = _events(stream)
    for _, data in events:
        if data == b"[DONE]":
            assert next(events, None) is None, "something after [DONE]"
            assert texts and ended == texts.keys(), "[DONE] before every choice has finished"
            assert all(calls.values()), "a call without a name"
            return Said(True, "".join(texts.values()))
        chunk = orjson.loads(data)
        if "error" in chunk:
            _check_openai_error(chunk)
            assert next(events, None) is None, "something after an error"
            return Said(False, "".join(texts.values()))
        assert chunk["object"] == "chat.completion.chunk", chunk
        _check_types(chunk, id=str, model=str, created=int, choices=list)
        _check_usage(chunk.get("usage"), "prompt_tokens", "completion_tokens", "total_tokens")
        for choice in chunk["choices"]:
            number, delta = choice["index"], choice["delta"]
            assert _is_count(number) and number < 128, choice
            if number in ended:  # unknown fields of the answer may follow
                assert not delta and choice["finish_reason"] is None, f"{choice} after the finish"
                continue
            assert choice.get("finish_reason") in _FINISHES, choice
            texts[number] = texts.get(number, "") + _text_of(delta)
            _optional(delta, "refusal", str)
            assert delta.get("role", "assistant") == "assistant", delta
            for call in _optional(delta, "tool_calls", list) or ():
                _check_call_delta(number, call, calls)
            if choice.get("finish_reason") is not None:
                ended.add(number)
    raise AssertionError("neither [DONE] nor an error")


def chat_whole(body: Json) -> Said:
    """Read a chat completion."""
    assert body["object"] == "chat.completion", body
    _check_types(body, id=str, model=str, created=int, choices=list)
    _check_usage(body.get("usage"), "prompt_tokens", "completion_tokens", "total_tokens")
    text = ""
    assert body["choices"]
    for number, choice in enumerate(body["choices"]):
        message = choice["message"]
        assert choice["index"] == number, choice
        assert choice["finish_reason"] in _FINISHES - {None}, choice
        assert message["role"] == "assistant", message
        text += _text_of(message)
        _optional(message, "refusal", str)
        for call in _optional(message, "tool_calls", list) or ():
            _check_types(call, id=str, type=str)
            inner = call[call["type"]]
            assert isinstance(inner["name"], str), call
            assert isinstance(inner["arguments" if call["type"] == "function" else "input"], str)
    return Said(True, text)


def _text_of(message: Json) -> str:
    """Return the text of a delta or message; reasoning models have lists of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return _optional(message, "content", str) or ""


def _check_call_delta(choice: int, call: Json, named: dict[tuple[int, int], bool]) -> None:
    assert _is_count(call["index"]) and call["index"] < 10_000, call
    inner = call.get("function") or call.get("custom") or {}
    assert isinstance(inner, dict), call
    place = (choice, call["index"])
    if place not in named:
        assert call.get("id") and isinstance(call["id"], str), f"a call without id: {call}"
    named[place] = named.get(place, False) or bool(inner.get("name"))
    for name in ("name", "arguments", "input"):
        assert isinstance(inner.get(name, ""), str), call


def message_stream(stream: bytes) -> Said:
    """Read a stream of the events of a message."""
    text, index, block, stop = "", -1, "", ""
    is_begun = False
    events = _events(stream)
    for name, data in events:
        event = orjson.loads(data)
        kind = event["type"]
        assert name == kind, (name, event)
        if kind == "error":
            _check_anthropic_error(event)
            assert next(events, None) is None, "something after an error"
            return Said(False, text)
        if kind == "ping":
            continue
        assert is_begun == (kind != "message_start"), f"{kind} at the wrong place"
        assert not stop or kind in ("message_delta", "message_stop"), f"{kind} after the end"
        match kind:
            case "message_start":
                is_begun = True
                message = event["message"]
                _check_message(message)
                assert message["content"] == [] and message["stop_reason"] is None, message
            case "content_block_start":
                index += 1
                assert not block, "a block inside of a block"
                assert event["index"] == index, event
                block = event["content_block"]["type"]
                _check_block(event["content_block"])
                text += event["content_block"].get("text", "") if block == "text" else ""
            case "content_block_delta":
                assert block and event["index"] == index, event
                text += _check_block_delta(event["delta"], block)
            case "content_block_stop":
                assert block and event["index"] == index, event
                block = ""
            case "message_delta":
                assert not block, "the end inside of a block"
                stop = event["delta"]["stop_reason"]
                assert stop and isinstance(stop, str), event
                _check_usage(event["usage"], "output_tokens")
            case "message_stop":
                assert stop, "the end before its reason"
                assert next(events, None) is None, "something after message_stop"
                return Said(True, text)
            case _:
                assert isinstance(kind, str) and kind, event  # of a later version of the API
    raise AssertionError("neither message_stop nor an error")


def message_whole(body: Json) -> Said:
    """Read a message."""
    _check_message(body)
    assert body["stop_reason"] and isinstance(body["stop_reason"], str), body
    for block in body["content"]:
        _check_block(block)
    return Said(True, "".join(one["text"] for one in body["content"] if one["type"] == "text"))


def _check_message(message: Json) -> None:
    assert (message["type"], message["role"]) == ("message", "assistant"), message
    _check_types(message, id=str, model=str, content=list)
    _check_usage(message["usage"], "input_tokens", "output_tokens")


def _check_block(block: Json) -> None:
    assert isinstance(block["type"], str) and block["type"], block
    for kind, name in (("text", "text"), ("thinking", "thinking"), ("thinking", "signature")):
        if block["type"] == kind:
            assert isinstance(block[name], str), block
    if block["type"] == "tool_use":
        _check_types(block, id=str, name=str, input=dict)


def _check_block_delta(delta: Json, block: str) -> str:
    kinds = {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "signature_delta": ("thinking", "signature"),
        "input_json_delta": ("tool_use", "partial_json"),
    }
    if delta["type"] not in kinds:
        return ""
    of_block, name = kinds[delta["type"]]
    assert isinstance(delta[name], str), delta
    # Deltas of a block of a later version of the API may be of any kind.
    assert block not in _BLOCKS or of_block in (block, "tool_use"), (block, delta)
    return str(delta[name]) if name == "text" else ""


def response_stream(stream: bytes, *, is_native: bool = False) -> Said:
    """Read a stream of the events of a response.

    Of a stream that is passed on from a provider of the dialect, `is_native`, each event is to be
    as the API documents it; which ones there are is up to the provider.
    """
    text, number, is_failed = "", -1, False
    is_open: dict[int, str] = {}
    done: set[int] = set()
    events = _events(stream)
    for name, data in events:
        event = orjson.loads(data)
        kind = event["type"]
        assert name == kind, (name, event)
        assert event["sequence_number"] == number + 1, event
        number += 1
        if kind == "error":
            assert event["message"] and isinstance(event["message"], str), event
            is_failed = True
            continue
        assert not is_failed or kind == "response.failed", f"{kind} after an error"
        if kind == "response.failed":
            response_whole(event["response"])
            assert next(events, None) is None, "something after an error"
            return Said(False, text)
        assert is_native or (number == 0) == (kind == "response.created"), event
        for name in ("output_index", "content_index", "summary_index", "annotation_index"):
            assert _is_count(event.get(name, 0)), event
        index = event.get("output_index")
        if kind in _ITEMS:
            item = event["item"]
            assert isinstance(item["type"], str) and item["type"], event
            if kind == _ITEMS[0]:
                assert is_native or index == len(is_open), event
                is_open[index] = item["type"]
            else:
                assert is_native or is_open.get(index) == item["type"], event
                assert is_native or index not in done, event
                done.add(index)
        elif index is not None and not is_native:
            assert index in is_open and index not in done, event
        if kind == "response.output_text.delta":
            assert isinstance(event["delta"], str), event
            text += event["delta"]
        if kind in _ENDS:
            assert is_native or done == is_open.keys(), "an item without its end"
            response = response_whole(event["response"])
            assert next(events, None) is None, f"something after {kind}"
            return response._replace(text=text) if is_native else response
    assert is_failed, "neither an end nor an error"
    return Said(False, text)


def response_whole(body: Json) -> Said:
    """Read a response."""
    assert body["object"] == "response", body
    _check_types(body, id=str, model=str, output=list)
    if body["status"] == "failed":
        assert body["error"]["message"], body
        return Said(False, "")
    assert body["status"] in ("completed", "incomplete"), body
    assert body.get("error") is None, body
    _check_usage(body.get("usage"), "input_tokens", "output_tokens")
    text = ""
    for item in body["output"]:
        assert isinstance(item["type"], str), item
        if item["type"] == "message":
            for part in item["content"]:
                text += part["text"] if part["type"] == "output_text" else ""
        if item["type"] == "function_call":
            _check_types(item, call_id=str, name=str, arguments=str)
    return Said(True, text)


def _events(stream: bytes) -> Iterator[tuple[str, bytes]]:
    """Return the name and the data of each event."""
    assert stream.endswith(b"\n\n"), f"a part of an event at the end: {stream[-200:]!r}"
    for event in stream[:-2].split(b"\n\n"):
        if event.startswith(b":"):
            continue  # a comment
        *names, data = event.split(b"\n")
        assert len(names) < 2 and data.startswith(b"data: "), event
        name = names[0].removeprefix(b"event: ").decode() if names else ""
        yield name, data.removeprefix(b"data: ")


def check_failure(dialect: Dialect, status: int, body: bytes) -> None:
    """Check the answer to a request that failed because of its provider."""
    assert status in (502, 503, 504), f"status {status}"
    failure = orjson.loads(body)
    (_check_anthropic_error if dialect == "messages" else _check_openai_error)(failure)


def _check_openai_error(failure: Json) -> None:
    error = failure["error"]
    assert error["message"] and isinstance(error["message"], str), failure
    assert error["type"] != "internal_error" and error["code"] != "internal", failure
    assert error.keys() >= {"type", "param", "code"}, failure


def _check_anthropic_error(failure: Json) -> None:
    assert failure["type"] == "error" and failure["request_id"], failure
    assert failure["error"]["message"] and failure["error"]["type"], failure


def _check_types(holder: Json, **types: type) -> None:
    for name, expected_type in types.items():
        assert isinstance(holder[name], expected_type), f"{name}: {holder[name]!r:.100}"


def _optional(holder: Json, name: str, expected_type: type) -> Any:
    value = holder.get(name)
    assert value is None or isinstance(value, expected_type), f"{name}: {value!r:.100}"
    return value


def _check_usage(usage: Any, *names: str) -> None:
    if usage is not None:
        for name in names:
            assert _is_count(usage[name]), f"usage.{name}: {usage.get(name)!r}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


STREAM_READERS: Mapping[Dialect, Callable[[bytes], Said]] = {
    "chat": chat_stream,
    "messages": message_stream,
    "responses": response_stream,
}
WHOLE_READERS: Mapping[Dialect, Callable[[Json], Said]] = {
    "chat": chat_whole,
    "messages": message_whole,
    "responses": response_whole,
}
