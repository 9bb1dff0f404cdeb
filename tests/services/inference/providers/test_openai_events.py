from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect, FinishReason
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import UpstreamError
from services.inference.accumulator import Accumulator
from services.inference.providers import failures
from services.inference.providers.openai.events import StreamReader, events_from_whole
from services.inference.providers.sse import EventCutter
from tests.services.inference.providers.openai_calls import ANTHROPIC, OPENAI, call_of

Json = dict[str, Any]


class Provider:
    """Makes failures as an upstream does."""

    name = "acme"

    def in_band(self, body: bytes) -> UpstreamError:
        return failures.in_band(self.name, body)


def reader_of(dialect: Dialect.ValueType = OPENAI, **fields: Any) -> StreamReader:
    return StreamReader(call_of(dialect=dialect, **fields), Provider(), lambda kind: f"{kind}new")


def chunk(*choices: Json, **fields: Any) -> Json:
    return {"id": "a1", "model": "gpt-1-0613", "choices": list(choices), **fields}


def delta(index: int = 0, finish: str | None = None, **said: Any) -> Json:
    return {"index": index, "delta": said, "finish_reason": finish}


def says(finish: str | None = None, **said: Any) -> Json:
    return chunk(delta(0, finish, **said))


def calls(index: int, arguments: str = "", **fields: Any) -> Json:
    name = fields.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function, **fields}]}


def data(*chunks: Json | bytes) -> bytes:
    """Give the text of a stream of such events."""
    jsons = (c if isinstance(c, bytes) else orjson.dumps(c) for c in chunks)
    return b"".join(b"data: %b\n\n" % json for json in jsons)


def read(*chunks: Json | bytes, **fields: Any) -> list[Event]:
    """Give the events of a whole stream, after the accumulator has agreed to their order."""
    reader = reader_of(**fields)
    events: list[Event] = []
    reader.feed(data(*chunks), events)
    reader.end()
    answer(events)
    return events


def answer(events: Iterable[Event]) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def told(events: Sequence[Event]) -> list[tuple[str, object]]:
    """Give each event as its kind and what is in it."""
    found: list[tuple[str, object]] = []
    for event in events:
        kind = event.WhichOneof("kind") or ""
        value = getattr(event, kind)
        if kind == "block_start":
            value = value.WhichOneof("kind")
        elif kind == "finish":
            value = FinishReason.Name(value.reason).removeprefix("FINISH_REASON_")
        elif kind in ("start", "usage", "block_stop"):
            value = None
        found.append((kind, value))
    return found


def whole(message: Json, finish: str = "stop", **fields: Any) -> GenerateResponse:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    events = events_from_whole(chunk(choice), call_of(**fields), Provider(), lambda kind: kind)
    return answer(events)


def failure_of(*chunks: Json | bytes, ended: bool = True, **fields: Any) -> UpstreamError:
    reader = reader_of(**fields)
    with pytest.raises(UpstreamError) as raised:
        reader.feed(data(*chunks), [])
        if ended:
            reader.end()
    return raised.value


def reason_of(error: UpstreamError) -> str:
    return Reason.Name(error.reason).removeprefix("REASON_")


def test_text_comes_in_one_block_between_start_and_finish() -> None:
    events = read(
        says(role="assistant", content=""),
        says(content="Hel"),
        says(content="lo"),
        says("stop"),
        b"[DONE]",
    )
    assert told(events) == [
        ("start", None),
        ("block_start", "text"),
        ("text", "Hel"),
        ("text", "lo"),
        ("block_stop", None),
        ("finish", "END_TURN"),
    ]
    assert (events[0].start.id, events[0].start.model) == ("a1", "gpt-1-0613")


def test_what_else_the_answer_says_of_itself_is_kept_from_the_first_chunk() -> None:
    first = chunk(delta(content="a"), system_fingerprint="fp", service_tier=None, obfuscation="x")
    start = read(first, says("stop"))[0].start
    assert start.extra.dialect == OPENAI
    assert orjson.loads(start.extra.json) == {"system_fingerprint": "fp"}


def test_chunks_before_the_first_choice_begin_nothing() -> None:
    azure = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    events = read(azure, says(content="a"), says("stop"))
    assert events[0].start.id == "a1"


def test_an_answer_without_id_and_model_gets_them() -> None:
    start = read({"choices": [delta(content="a")]}, says("stop"))[0].start
    assert (start.id, start.model) == ("chatcmpl-new", "gpt-1")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_and_comes_in_its_own_block(field: str) -> None:
    events = read(says(**{field: "hm"}), says(**{field: "!"}), says(content="a"), says("stop"))
    assert told(events)[1:] == [
        ("block_start", "thinking"),
        ("thinking", "hm"),
        ("thinking", "!"),
        ("block_stop", None),
        ("block_start", "text"),
        ("text", "a"),
        ("block_stop", None),
        ("finish", "END_TURN"),
    ]
    assert [event.block for event in events[1:-1]] == [0, 0, 0, 0, 1, 1, 1]


def test_content_may_be_a_list_of_text_and_thinking() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "a"},
        {"type": "reference"},
    ]
    blocks = answer(read(says(content=parts), says("stop"))).choices[0].blocks
    assert (blocks[0].thinking.text, blocks[1].text) == ("hm", "a")


def test_a_refusal_is_a_block_of_its_own() -> None:
    events = read(says(refusal="I "), says(refusal="won't"), says("stop"))
    assert answer(events).choices[0].blocks[0].refusal == "I won't"
    assert told(events)[-1] == ("finish", "END_TURN")


def test_a_call_of_a_tool_streams_its_arguments() -> None:
    events = read(
        says(**calls(0, id="c1", type="function", name="f")),
        says(**calls(0, '{"a"')),
        says(**calls(0, ":1}")),
        says("tool_calls"),
    )
    assert told(events)[1:] == [
        ("block_start", "tool_use"),
        ("input", '{"a"'),
        ("input", ":1}"),
        ("block_stop", None),
        ("finish", "TOOL_USE"),
    ]
    use = events[1].block_start.tool_use
    assert (use.id, use.name, use.input, use.freeform) == ("c1", "f", "", False)


def test_calls_one_after_the_other_stream_each_as_it_comes() -> None:
    reader, events = reader_of(), list[Event]()
    reader.feed(data(says(**calls(0, "{}", id="c1", name="f"))), events)
    reader.feed(data(says(**calls(1, '{"b', id="c2", name="g"))), events)
    assert told(events)[1:] == [
        ("block_start", "tool_use"),
        ("input", "{}"),
        ("block_stop", None),
        ("block_start", "tool_use"),
        ("input", '{"b'),
    ]


def test_interleaved_calls_come_whole_and_in_order() -> None:
    events = read(
        says(**calls(0, '{"a', id="c1", name="f")),
        says(**calls(1, '{"b', id="c2", name="g")),
        says(**calls(0, '":1}')),
        says(content="so"),
        says(**calls(1, '":2}')),
        says("tool_calls"),
    )
    blocks = answer(events).choices[0].blocks
    assert [(b.tool_use.id, b.tool_use.input, b.text) for b in blocks] == [
        ("c1", '{"a":1}', ""),
        ("c2", '{"b":2}', ""),
        ("", "", "so"),
    ]


def test_text_behind_a_call_that_is_not_done_is_one_block() -> None:
    events = read(
        says(**calls(0, "{", id="c1", name="f")),
        says(content="a"),
        says(content="b"),
        says(**calls(0, "}")),
        says("tool_calls"),
    )
    blocks = answer(events).choices[0].blocks
    assert [(b.tool_use.input, b.text) for b in blocks] == [("{}", ""), ("", "ab")]


def test_a_call_whose_name_comes_late_waits_for_it() -> None:
    events = read(
        says(**calls(0, '{"a"', id="c1")), says(**calls(0, ":1}", name="f")), says("tool_calls")
    )
    use = answer(events).choices[0].blocks[0].tool_use
    assert (use.name, use.input) == ("f", '{"a":1}')


def test_text_goes_on_while_a_call_has_no_name() -> None:
    events = read(
        says(**calls(0, "{", id="c1")),
        says(content="a"),
        says(**calls(0, "}", name="f")),
        says("tool_calls"),
    )
    blocks = answer(events).choices[0].blocks
    assert (blocks[0].text, blocks[1].tool_use.input) == ("a", "{}")


def test_a_call_without_a_name_is_a_failure() -> None:
    assert reason_of(failure_of(says(**calls(0, "{}", id="c1")), says("stop"))) == "UPSTREAM_ERROR"


def test_a_call_without_an_id_gets_one() -> None:
    events = read(says(**calls(0, "{}", name="f")), says("tool_calls"))
    assert events[1].block_start.tool_use.id == "call_new"


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    given: list[Json] = [
        {"id": "c1", "function": {"name": "f", "arguments": '{"a"'}},
        {"function": {"arguments": ":1}"}},
        {"id": "c2", "function": {"name": "f", "arguments": "{}"}},
    ]
    events = read(*(says(tool_calls=[one]) for one in given), says("tool_calls"))
    blocks = answer(events).choices[0].blocks
    assert [(b.tool_use.id, b.tool_use.input) for b in blocks] == [("c1", '{"a":1}'), ("c2", "{}")]


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    events = read(
        says(**calls(0, "{}", id="c1", name="f")),
        says(**calls(0, "{}", id="c2", name="f")),
        says("tool_calls"),
    )
    assert [b.tool_use.id for b in answer(events).choices[0].blocks] == ["c1", "c2"]


def test_an_id_and_name_that_are_told_again_begin_nothing() -> None:
    again = {"id": "c1", "name": "f"}
    events = read(
        says(**calls(0, '{"a"', **again)), says(**calls(0, ":1}", **again)), says("tool_calls")
    )
    assert answer(events).choices[0].blocks[0].tool_use.input == '{"a":1}'


def test_arguments_that_a_server_parsed_are_written_as_json() -> None:
    given = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}
    use = whole({"tool_calls": [given]}).choices[0].blocks[0].tool_use
    assert use.input == '{"a":1}'


def test_arguments_after_their_end_are_a_failure() -> None:
    chunks = (
        says(**calls(0, "{}", id="c1", name="f")),
        says(**calls(1, "{}", id="c2", name="g")),
    )
    assert reason_of(failure_of(*chunks, says(**calls(0, "{}")))) == "UPSTREAM_ERROR"
    assert read(*chunks, says(**calls(0, " \n")), says("tool_calls"))


def test_a_custom_tools_input_is_free_text() -> None:
    custom = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "f", "input": "a "}}
    more = {"index": 0, "custom": {"input": "b"}}
    events = read(says(tool_calls=[custom]), says(tool_calls=[more]), says("tool_calls"))
    use = answer(events).choices[0].blocks[0].tool_use
    assert (use.name, use.input, use.freeform) == ("f", "a b", True)


def test_choices_are_kept_apart_and_number_their_own_blocks() -> None:
    events = read(
        chunk(delta(0, content="a"), delta(1, content="b")),
        chunk(delta(1, "stop", reasoning="c")),
        chunk(delta(0, "length", content="d")),
        n=2,
    )
    first, second = answer(events).choices
    assert [b.text for b in first.blocks] == ["ad"]
    assert [b.text or b.thinking.text for b in second.blocks] == ["b", "c"]
    assert first.finish.reason == conversation_pb2.FINISH_REASON_MAX_TOKENS


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "END_TURN"),
        ("length", "MAX_TOKENS"),
        ("tool_calls", "TOOL_USE"),
        ("function_call", "TOOL_USE"),
        ("content_filter", "REFUSAL"),
        ("model_length", "CONTEXT_WINDOW"),
        ("eos", "END_TURN"),
    ],
)
def test_every_reason_to_end_has_its_name(reason: str, finish: str) -> None:
    assert told(read(says(content="a"), says(reason)))[-1] == ("finish", finish)


@pytest.mark.parametrize(
    ("said", "finish"),
    [(calls(0, "{}", id="c", name="f"), "TOOL_USE"), ({"refusal": "no"}, "REFUSAL")],
)
def test_for_callers_with_finer_words_a_plain_stop_is_told_apart(said: Json, finish: str) -> None:
    chunks = (says(**said), says("stop"))
    assert told(read(*chunks, dialect=ANTHROPIC))[-1] == ("finish", finish)
    assert told(read(*chunks, dialect=OPENAI))[-1] == ("finish", "END_TURN")


@pytest.mark.parametrize(
    ("matched", "reason", "sequence"),
    [("END", "STOP_SEQUENCE", "END"), ("other", "END_TURN", ""), (128009, "END_TURN", "")],
)
def test_a_stop_sequence_that_the_server_names_is_told(
    matched: object, reason: str, sequence: str
) -> None:
    ended = chunk(delta(0, "stop") | {"stop_reason": matched})
    events = read(says(content="a"), ended, stop_sequences=["END"])
    assert told(events)[-1] == ("finish", reason)
    assert events[-1].finish.stop_sequence == sequence


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_a_reason_that_is_a_failure_is_one(reason: str) -> None:
    assert reason_of(failure_of(says(content="a"), says(reason))) == "UPSTREAM_ERROR"


def test_finish_comes_once_and_nothing_after_it_counts() -> None:
    events = read(says("stop", content="a"), says("stop"), says(content="b"), b"[DONE]")
    assert [kind for kind, _ in told(events)].count("finish") == 1
    assert answer(events).choices[0].blocks[0].text == "a"


def test_log_probabilities_stay_as_they_are_with_their_delta() -> None:
    one, two = {"content": [{"token": "a"}]}, {"content": [{"token": "b"}]}
    events = read(
        chunk(delta(content="a") | {"logprobs": one}),
        chunk(delta(content="") | {"logprobs": two}),
        says("stop"),
    )
    assert [orjson.loads(e.logprobs) for e in events if e.logprobs] == [one, two]
    merged = orjson.loads(answer(events).choices[0].logprobs)
    assert merged == {"content": [{"token": "a"}, {"token": "b"}]}


def test_log_probabilities_belong_to_the_text_and_not_to_the_thinking_before_it() -> None:
    given = delta(reasoning="hm", content="a") | {"logprobs": {"content": []}}
    events = read(chunk(given), says("stop"))
    assert [event.WhichOneof("kind") for event in events if event.logprobs] == ["text"]


def test_usage_counts_cached_tokens_apart_and_keeps_further_figures() -> None:
    given = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 20, "accepted_prediction_tokens": 3},
    }
    usage = answer(read(says("stop", content="a"), chunk(usage=given), b"[DONE]")).usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (30, 50, 20)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (60, 10)
    assert orjson.loads(usage.extra.json) == {
        "completion_tokens_details": {"accepted_prediction_tokens": 3}
    }


def test_usage_without_details_is_all_input() -> None:
    given = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": None}
    usage = answer(read(says("stop", content="a"), chunk(usage=given))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.HasField("extra")) == (7, 2, False)


def test_cache_hits_by_deepseeks_name_are_read() -> None:
    given = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_cache_hit_tokens": 5}
    usage = answer(read(says("stop", content="a"), chunk(usage=given))).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (2, 5)


def test_unknown_fields_of_deltas_say_nothing() -> None:
    events = read(says(content="a", padding="x", annotations=[{}]), says("stop"))
    assert answer(events).choices[0].blocks[0].text == "a"


def test_done_ends_choices_without_a_reason() -> None:
    assert told(read(says(content="a"), b"[DONE]"))[-1] == ("finish", "END_TURN")
    events = read(says(**calls(0, "{}", id="c", name="f")), b"[DONE]")
    assert told(events)[-1] == ("finish", "TOOL_USE")


def test_the_end_after_every_reason_needs_no_done() -> None:
    assert told(read(says("stop", content="a")))[-1] == ("finish", "END_TURN")


@pytest.mark.parametrize(
    "chunks",
    [
        (),
        (b"[DONE]",),
        (chunk(usage={"prompt_tokens": 1}), b"[DONE]"),
        (says(content="a"),),
        (says(role="assistant"),),
    ],
)
def test_an_end_before_the_answer_is_whole_is_a_connection_failure(chunks: Any) -> None:
    assert reason_of(failure_of(*chunks)) == "UPSTREAM_CONNECTION"


def test_an_end_before_every_choice_is_whole_is_a_connection_failure() -> None:
    assert reason_of(failure_of(says("stop", content="a"), n=2)) == "UPSTREAM_CONNECTION"


def test_an_error_in_the_stream_is_that_error() -> None:
    error = {"error": {"message": "m", "type": "rate_limit_error"}}
    assert reason_of(failure_of(says(content="a"), error)) == "UPSTREAM_RATE_LIMITED"


def test_an_event_named_error_is_an_error_whatever_it_holds() -> None:
    with pytest.raises(UpstreamError) as raised:
        reader_of().feed(b'event: error\ndata: {"code":429}\n\n', [])
    assert reason_of(raised.value) == "UPSTREAM_RATE_LIMITED"


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"[]",
        b'{"choices":7}',
        b'{"choices":[7]}',
        b'{"choices":[{"delta":7}]}',
        b'{"choices":[{"delta":{"content":7}}]}',
        b'{"choices":[{"delta":{"tool_calls":7}}]}',
        b'{"choices":[{"index":-1,"delta":{"content":"a"}}]}',
        b'{"choices":[{"index":"a","delta":{"content":"a"}}]}',
        b'{"choices":[],"usage":{"prompt_tokens":"a"}}',
        b'{"choices":[],"usage":{"completion_tokens":-1}}',
    ],
)
def test_a_malformed_chunk_is_a_failure_and_what_came_before_it_is_kept(broken: bytes) -> None:
    events: list[Event] = []
    with pytest.raises(UpstreamError) as raised:
        reader_of().feed(data(says(content="a"), broken), events)
    assert (reason_of(raised.value), raised.value.body) == ("UPSTREAM_ERROR", broken.decode())
    assert told(events)[:3] == [("start", None), ("block_start", "text"), ("text", "a")]


def test_a_whole_answer_is_the_same_as_a_stream_of_it() -> None:
    given = {"index": 0, "id": "c1", "type": "function"}
    message = {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": "a",
        "refusal": None,
        "tool_calls": [{**given, "function": {"name": "f", "arguments": "{}"}}],
    }
    streamed = read(
        says(reasoning_content="hm"),
        says(content="a"),
        says(**calls(0, "{}", id="c1", name="f")),
        says("tool_calls"),
    )
    assert whole(message, "tool_calls") == answer(streamed)


def test_a_whole_answer_that_says_nothing_has_no_block() -> None:
    assert list(whole({"role": "assistant", "content": ""}).choices[0].blocks) == []


@pytest.mark.parametrize("given", [{}, {"choices": []}, {"choices": [7]}, {"choices": {"a": 1}}])
def test_a_whole_answer_without_a_readable_choice_is_a_failure(given: Json) -> None:
    with pytest.raises(UpstreamError) as raised:
        events_from_whole(given, call_of(), Provider(), lambda kind: kind)
    assert reason_of(raised.value) == "UPSTREAM_ERROR"


def pieces_of(events: Iterable[Event]) -> list[tuple[str, list[bytes]]]:
    """Give the deltas, each as its kind and its pieces."""
    deltas = [event for event in events if event.text or event.thinking or event.input]
    return [(event.WhichOneof("kind") or "", list(event.pieces)) for event in deltas]


def test_what_a_read_says_of_one_kind_is_one_event_of_many_pieces() -> None:
    events = read(
        says(role="assistant", content=""),
        *(says(reasoning_content=word) for word in "abc"),
        *(says(content=word) for word in "def\n"),
        says(**calls(0, id="c1", name="f")),
        *(says(**calls(0, word)) for word in ("[", "1", "]")),
        *(says(content=word) for word in "ghi"),
        says("stop"),
        b"[DONE]",
    )
    assert pieces_of(events) == [
        ("thinking", []),
        ("thinking", [b"b", b"c"]),
        ("text", []),
        ("text", [b"e", b"f", b"\\n"]),
        ("input", []),
        ("input", [b"1", b"]"]),
        ("text", []),
        ("text", [b"h", b"i"]),
    ]
    assert told(events)[-4:-2] == [("text", "g"), ("text", "hi")], "the call was done"


def test_chunks_that_differ_in_what_hides_their_size_are_one_event_too() -> None:
    words = [says(content=word) | {"obfuscation": word * 3} for word in "abcd"]
    assert pieces_of(read(*words, says("stop"))) == [("text", []), ("text", [b"b", b"c", b"d"])]


def test_usage_in_every_chunk_is_not_lost() -> None:
    words = [says(content=word) | {"usage": {"prompt_tokens": 7}} for word in "abc"]
    events = read(*words, says("stop"))
    assert [kind for kind, _ in told(events)].count("usage") == 3
    assert answer(events).choices[0].blocks[0].text == "abc"


def test_log_probabilities_that_recur_are_not_lost() -> None:
    logprobs = {"logprobs": {"content": [{"token": "a"}]}}
    events = read(*(chunk(delta(content="a") | logprobs) for _ in range(3)), says("stop"))
    assert sum(bool(event.logprobs) for event in events) == 3


STREAM = data(
    says(role="assistant", content=""),
    says(reasoning="hm \u00e4\u20ac"),
    says(content="a\U0001f600"),
    says(**calls(0, '{"a', id="c1", name="f")),
    says(**calls(1, '{"b', id="c2", name="g")),
    says(**calls(0, '":1}')),
    says(**calls(1, '":2}')),
    says("tool_calls"),
    chunk(usage={"prompt_tokens": 3, "completion_tokens": 4}),
    b"[DONE]",
)


def through_the_cutter(pieces: Iterable[bytes]) -> list[Event]:
    cutter, reader, events = EventCutter(1 << 16), reader_of(), list[Event]()
    for piece in pieces:
        reader.feed(cutter.feed(piece), events)
    reader.end()
    return events


@given(st.lists(st.integers(0, len(STREAM)), max_size=20).map(sorted))
def test_a_stream_cut_anywhere_gives_the_same_events(cuts: list[int]) -> None:
    places = [0, *cuts, len(STREAM)]
    pieces = (STREAM[a:b] for a, b in pairwise(places))
    assert through_the_cutter(pieces) == through_the_cutter([STREAM])


arguments = st.one_of(
    st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2).map(
        lambda value: orjson.dumps(value).decode()
    ),
    st.text(max_size=6).map(lambda broken: "{" + broken),
)


@given(
    st.lists(st.tuples(st.text(max_size=2).map("f".__add__), arguments), min_size=1, max_size=4),
    st.data(),
)
def test_calls_interleaved_in_any_way_come_out_right(
    wanted: list[tuple[str, str]], draw: st.DataObject
) -> None:
    left = {index: list(text) for index, (_, text) in enumerate(wanted)}
    chunks = [
        says(**calls(index, id=f"c{index}", name=name)) for index, (name, _) in enumerate(wanted)
    ]
    while left:
        index = draw.draw(st.sampled_from(sorted(left)))
        count = draw.draw(st.integers(1, 3))
        piece, left[index] = "".join(left[index][:count]), left[index][count:]
        chunks.append(says(**calls(index, piece)))
        if not left[index]:
            del left[index]
    blocks = answer(read(*chunks, says("tool_calls"))).choices[0].blocks
    found = [(b.tool_use.id, b.tool_use.name, b.tool_use.input) for b in blocks]
    assert found == [(f"c{i}", name, text) for i, (name, text) in enumerate(wanted)]
