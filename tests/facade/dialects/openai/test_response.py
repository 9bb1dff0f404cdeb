"""Whole answers as chat completions."""

import json
from typing import Any

import pytest

from facade.dialects.openai import render_completion
from gateway.conversation.v1.conversation_pb2 import Block, Opaque, Thinking, Usage
from gateway.inference.v1.inference_pb2 import Choice
from tests.facade.dialects.openai.answers import (
    CREATED,
    FOREIGN,
    answer,
    call,
    choice,
    own,
    text,
    thinking,
    whole,
)

LOGPROBS = {
    "content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}],
    "refusal": None,
}


def message(*blocks: Block) -> dict[str, Any]:
    """Return the message that an answer of these blocks has, after a strict check."""
    response = answer(choice(*blocks))
    whole(response)
    parsed: dict[str, Any] = json.loads(render_completion(response, CREATED))["choices"][0][
        "message"
    ]
    return parsed


def test_an_answer_has_every_field_that_clients_look_for() -> None:
    raw = render_completion(answer(choice(text("hi"))), CREATED)
    assert json.loads(raw) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": CREATED,
        "model": "model-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 0,
            "total_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


@pytest.mark.parametrize(
    ("upstream", "becomes"), [("chatcmpl-7", "chatcmpl-7"), ("msg_7", "chatcmpl-msg_7")]
)
def test_ids_begin_as_clients_expect(upstream: str, becomes: str) -> None:
    assert whole(answer(choice(text("hi")), id=upstream)).id == becomes


@pytest.mark.parametrize(
    ("reason", "becomes"),
    [
        ("END_TURN", "stop"),
        ("STOP_SEQUENCE", "stop"),
        ("PAUSE_TURN", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTEXT_WINDOW", "length"),
        ("TOOL_USE", "tool_calls"),
        ("REFUSAL", "content_filter"),
    ],
)
def test_every_way_to_end_has_its_word(reason: str, becomes: str) -> None:
    response = answer(choice(text("hi"), reason=reason))
    assert whole(response).choices[0].finish_reason == becomes


def test_an_answer_without_a_finish_reason_raises() -> None:
    with pytest.raises(KeyError):
        render_completion(answer(Choice(blocks=[text("hi")])), CREATED)


def test_texts_are_joined() -> None:
    assert message(text("a"), text("b"))["content"] == "ab"


def test_an_answer_without_anything_is_an_empty_string() -> None:
    assert message() == {"role": "assistant", "content": "", "refusal": None}


def test_tool_calls_alone_have_no_content() -> None:
    calls = [call("c1", "f", '{"a":1}'), call("c2", "g", ""), call("c3", "k", "x", freeform=True)]
    parsed = message(*calls)
    assert parsed["content"] is None
    assert parsed["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        {"id": "c3", "type": "custom", "custom": {"name": "k", "input": "x"}},
    ]


def test_a_custom_call_may_be_empty() -> None:
    parsed = message(call("c1", "k", "", freeform=True))
    assert parsed["tool_calls"][0]["custom"] == {"name": "k", "input": ""}


def test_a_refusal_is_separate_from_content() -> None:
    assert message(Block(refusal="no")) == {
        "role": "assistant",
        "content": None,
        "refusal": "no",
    }


def test_thinking_is_sent_as_reasoning_content() -> None:
    parsed = message(thinking("a"), Block(redacted_thinking="?"), thinking("b"), text("c"))
    assert parsed["reasoning_content"] == "ab"
    assert parsed["content"] == "c"
    assert message(thinking("a"))["content"] == ""
    assert "reasoning_content" not in message(thinking(""), text("c"))


def test_what_this_dialect_wrote_comes_back_at_its_place() -> None:
    signed = call("c1", "f", "{}")
    signed.extra.CopyFrom(own(extra_content={"google": {"thought_signature": "s"}}, id="other"))
    one = choice(text("a", own(annotations=[])), signed, extra=own(images=["x"], content="no"))
    parsed = json.loads(render_completion(answer(one), CREATED))["choices"][0]["message"]
    assert parsed["annotations"] == []
    assert parsed["images"] == ["x"]
    (only,) = parsed["tool_calls"]
    assert only["extra_content"] == {"google": {"thought_signature": "s"}}
    assert only["id"] == "c1"
    assert parsed["content"] == "a"


def rendered(one: Choice) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(render_completion(answer(one), CREATED))
    return parsed["choices"][0]["message"]


def test_an_answer_without_text_has_no_content() -> None:
    spoken = rendered(choice(extra=own(audio={"id": "y", "transcript": "hi"})))
    assert (spoken["content"], spoken["audio"]) == (None, {"id": "y", "transcript": "hi"})


def test_thinking_has_the_provider_s_name_for_it_too() -> None:
    block = Block(thinking=Thinking(text="hm", field="reasoning"))
    told = rendered(choice(block, text("a")))
    assert (told["reasoning_content"], told["reasoning"]) == ("hm", "hm")
    assert "reasoning" not in rendered(choice(thinking("hm"), text("a")))


def test_parts_without_a_name_make_content_a_list() -> None:
    part = {"type": "reference", "reference_ids": [1]}
    assert rendered(choice(text("a"), Block(opaque=own(**part))))["content"] == [
        {"type": "text", "text": "a"},
        part,
    ]


def test_fields_of_a_function_without_a_name_stay_in_it() -> None:
    block = call("c1", "f", "{}")
    block.extra.CopyFrom(own(function={"v": 1, "name": "other"}))
    (told,) = rendered(choice(block))["tool_calls"]
    assert told["function"] == {"v": 1, "name": "f", "arguments": "{}"}


def test_what_another_dialect_wrote_stays_out() -> None:
    assert message(text("a", FOREIGN), Block(opaque=FOREIGN)) == message(text("a"))
    assert whole(answer(choice(text("a")), extra=FOREIGN)).model_extra == {}


def test_the_answer_s_own_fields_come_back() -> None:
    ended = choice(text("a"))
    ended.finish.extra.CopyFrom(own(content_filter_results={}, finish_reason="other"))
    response = answer(ended, extra=own(system_fingerprint="fp", service_tier="flex", id="other"))
    completion = whole(response)
    assert completion.system_fingerprint == "fp"
    assert completion.service_tier == "flex"
    assert completion.id == "chatcmpl-1"
    assert completion.choices[0].model_extra == {"content_filter_results": {}}
    assert completion.choices[0].finish_reason == "stop"


def test_log_probabilities_come_as_they_are() -> None:
    response = answer(choice(text("a"), logprobs=json.dumps(LOGPROBS).encode()))
    logprobs = whole(response).choices[0].logprobs
    assert logprobs is not None
    assert logprobs.model_dump() == LOGPROBS


def test_tokens_of_the_cache_are_tokens_of_the_prompt() -> None:
    usage = Usage(
        input_tokens=10,
        output_tokens=7,
        cache_read_input_tokens=200,
        cache_creation_input_tokens=3000,
        reasoning_tokens=5,
        extra=own(
            prompt_tokens_details={"audio_tokens": 1},
            completion_tokens_details={"accepted_prediction_tokens": 2},
            queue_time=0.5,
            prompt_tokens=1,
        ),
    )
    raw = json.loads(render_completion(answer(choice(text("a")), usage=usage), CREATED))
    assert raw["usage"] == {
        "queue_time": 0.5,
        "prompt_tokens": 3210,
        "completion_tokens": 7,
        "total_tokens": 3217,
        "prompt_tokens_details": {
            "audio_tokens": 1,
            "cached_tokens": 200,
            "cache_write_tokens": 3000,
        },
        "completion_tokens_details": {"accepted_prediction_tokens": 2, "reasoning_tokens": 5},
    }
    foreign = Usage(input_tokens=1, extra=FOREIGN)
    parsed = json.loads(render_completion(answer(choice(text("a")), usage=foreign), CREATED))
    assert "type" not in parsed["usage"]


def test_answers_are_numbered_in_their_order() -> None:
    completion = whole(answer(choice(text("a")), choice(text("b"), reason="MAX_TOKENS")))
    assert [(one.index, one.message.content) for one in completion.choices] == [(0, "a"), (1, "b")]


def test_opaque_json_without_a_dialect_stays_out() -> None:
    assert message(text("a", Opaque(json=b'{"b":1}'))) == message(text("a"))
