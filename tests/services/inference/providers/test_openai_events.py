from typing import Any

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError
from services.inference.providers.openai.events import events_from_whole
from tests.grid import each_row
from tests.services.inference.providers.openai_answers import (
    Json,
    Provider,
    answer,
    calls,
    chunk,
    data,
    delta,
    failure_of,
    read,
    reader_of,
    reason_of,
    says,
    told,
    whole,
)
from tests.services.inference.providers.openai_calls import ANTHROPIC, OPENAI, call_of


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


def test_extra_fields_of_the_first_chunk_are_kept() -> None:
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


def test_choices_are_separate_and_number_their_own_blocks() -> None:
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


@each_row(
    ("reason", "finish"),
    [
        ("stop", "END_TURN"),
        ("length", "MAX_TOKENS"),
        ("tool_calls", "END_TURN"),
        ("function_call", "TOOL_USE"),
        ("content_filter", "REFUSAL"),
        ("content_filter: SAFETY", "REFUSAL"),
        ("sensitive", "REFUSAL"),
        ("PROHIBITED_CONTENT", "REFUSAL"),
        ("model_length", "CONTEXT_WINDOW"),
        ("model_context_window_exceeded", "CONTEXT_WINDOW"),
        ("MAX_TOKENS", "MAX_TOKENS"),
        ("eos", "END_TURN"),
        ("a reason of tomorrow", "END_TURN"),
    ],
)
def test_every_reason_to_end_has_its_name(reason: str, finish: str) -> None:
    assert told(read(says(content="a"), says(reason)))[-1] == ("finish", finish)


@pytest.mark.parametrize(
    ("said", "finish"),
    [(calls(0, "{}", id="c", name="f"), "TOOL_USE"), ({"refusal": "no"}, "REFUSAL")],
)
def test_a_plain_stop_is_split_into_finer_reasons(said: Json, finish: str) -> None:
    chunks = (says(**said), says("stop"))
    assert told(read(*chunks, dialect=ANTHROPIC))[-1] == ("finish", finish)
    assert told(read(*chunks, dialect=OPENAI))[-1] == ("finish", "END_TURN")


@pytest.mark.parametrize(
    ("matched", "reason", "sequence"),
    [("END", "STOP_SEQUENCE", "END"), ("other", "END_TURN", ""), (128009, "END_TURN", "")],
)
def test_a_stop_sequence_that_the_server_names_is_reported(
    matched: object, reason: str, sequence: str
) -> None:
    ended = chunk(delta(0, "stop") | {"stop_reason": matched})
    events = read(says(content="a"), ended, stop_sequences=["END"])
    assert told(events)[-1] == ("finish", reason)
    assert events[-1].finish.stop_sequence == sequence


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_a_reason_that_is_a_failure_is_one(reason: str) -> None:
    assert reason_of(failure_of(says(content="a"), says(reason))) == "UPSTREAM_ERROR"


def test_content_after_the_finish_reason_counts() -> None:
    events = read(says("stop", content="a"), says("stop"), says(content="b"), b"[DONE]")
    assert [kind for kind, _ in told(events)].count("finish") == 1
    assert answer(events).choices[0].blocks[0].text == "ab"


def test_content_after_the_last_usage_counts() -> None:
    usage = chunk(usage={"prompt_tokens": 2, "completion_tokens": 1})
    events = read(says(content="a"), says("stop"), usage, says(content="b"), b"[DONE]")
    assert [kind for kind, _ in told(events)][-2:] == ["finish", "usage"]
    assert answer(events).choices[0].blocks[0].text == "ab"


def test_a_later_finish_reason_replaces_an_earlier_one() -> None:
    events = read(says("stop", content="a"), says("length", content="b"), b"[DONE]")
    assert told(events)[-1] == ("finish", "MAX_TOKENS")


@pytest.mark.parametrize("reason", ["network_error", "ERROR", "insufficient_system_resource"])
def test_a_reason_that_reports_a_failure_is_one(reason: str) -> None:
    assert reason_of(failure_of(says(content="a"), says(reason))) == "UPSTREAM_ERROR"


def test_usage_with_a_finish_reason_follows_the_finish() -> None:
    usage = {"prompt_tokens": 19, "completion_tokens": 13}
    for last in ({**says("stop"), "usage": usage}, chunk({**delta(0, "stop"), "usage": usage})):
        events = read(says(content="a"), last)
        assert [kind for kind, _ in told(events)][-2:] == ["finish", "usage"]
        assert (events[-1].usage.input_tokens, events[-1].usage.output_tokens) == (19, 13)


def test_usage_never_falls() -> None:
    events = read(
        {**says(content="a"), "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
        says("stop"),
        chunk(usage={"prompt_tokens": 0, "completion_tokens": 2}),
    )
    assert (events[-1].usage.input_tokens, events[-1].usage.output_tokens) == (9, 3)


def test_cached_tokens_that_become_known_are_no_input_twice() -> None:
    details = {"cached_tokens": 6}
    events = read(
        {**says(content="a"), "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
        chunk(usage={"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": details}),
        says("stop"),
    )
    usage = answer(events).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (3, 6)


def test_a_whole_message_in_a_stream_is_read() -> None:
    message = {"role": "assistant", "content": "a"}
    events = read(chunk({"index": 0, "message": message, "finish_reason": "stop"}))
    assert answer(events).choices[0].blocks[0].text == "a"


@pytest.mark.parametrize("finish", [True, 1, 0.5, ["stop"], {"a": 1}])
def test_a_finish_reason_that_is_no_text_is_broken(finish: object) -> None:
    chunk_of_it = delta(content="a") | {"finish_reason": finish}
    assert "malformed" in failure_of(chunk(chunk_of_it)).message


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


def test_log_probabilities_belong_to_text_not_thinking() -> None:
    given = delta(reasoning="hm", content="a") | {"logprobs": {"content": []}}
    events = read(chunk(given), says("stop"))
    assert [event.WhichOneof("kind") for event in events if event.logprobs] == ["text"]


def test_usage_splits_cached_tokens_and_keeps_extra_fields() -> None:
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
def test_an_early_end_is_a_connection_failure(chunks: Any) -> None:
    assert reason_of(failure_of(*chunks)) == "UPSTREAM_CONNECTION"


def test_an_unfinished_choice_is_a_connection_failure() -> None:
    assert reason_of(failure_of(says("stop", content="a"), n=2)) == "UPSTREAM_CONNECTION"


def test_an_error_in_the_stream_is_that_error() -> None:
    error = {"error": {"message": "m", "type": "rate_limit_error"}}
    assert reason_of(failure_of(says(content="a"), error)) == "UPSTREAM_RATE_LIMITED"


def test_an_event_named_error_is_an_error_whatever_it_holds() -> None:
    with pytest.raises(UpstreamError) as raised:
        reader_of().feed(b'event: error\ndata: {"code":429}\n\n', [])
    assert reason_of(raised.value) == "UPSTREAM_RATE_LIMITED"


@each_row(
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
def test_a_malformed_chunk_keeps_the_events_before_it(broken: bytes) -> None:
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
