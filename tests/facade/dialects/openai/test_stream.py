"""Streams of chat completions: what they are made of, and what the official client reads."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from facade.dialects.openai import ChatStream
from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_OPENAI,
    Block,
    Citation,
    Opaque,
    Thinking,
    Usage,
)
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import BlockStop, Choice, Event, ExtraFields, Start
from services.common.errors import GatewayError
from tests.facade.dialects.openai.answers import (
    CREATED,
    FOREIGN,
    accumulated,
    answer,
    call,
    choice,
    choice_events,
    own,
    start,
    stream_events,
    streamed,
    text,
    thinking,
    told,
    whole,
)

LOGPROBS = {
    "content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}],
    "refusal": None,
}


def deltas(*events: Event) -> list[dict[str, Any]]:
    """Return the deltas of one choice that these events become."""
    begun = Event(start=Start(id="chatcmpl-1", model="m"))
    return [one["choices"][0]["delta"] for one in streamed([[begun, *events]], include_usage=False)]


def opened(block: Block, number: int = 0) -> Event:
    return Event(block=number, block_start=block)


def test_a_stream_is_role_then_content_then_the_end_then_usage() -> None:
    given_chunks = streamed([stream_events(answer(choice(text("hello"))))])
    assert [one["choices"] for one in given_chunks] == [
        [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        for delta, reason in [
            ({"role": "assistant", "content": ""}, None),
            ({"content": "hel"}, None),
            ({"content": "lo"}, None),
            ({}, "stop"),
        ]
    ] + [[]]
    assert [one["usage"] for one in given_chunks[:-1]] == [None] * 4
    assert given_chunks[-1]["usage"]["prompt_tokens"] == 3
    for one in given_chunks:
        assert {name: one[name] for name in ("id", "object", "created", "model")} == {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": "model-1",
        }


def test_usage_is_sent_only_on_request() -> None:
    given_chunks = streamed([stream_events(answer(choice(text("hello"))))], include_usage=False)
    assert all("usage" not in one for one in given_chunks)
    assert given_chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_the_last_usage_counts() -> None:
    events = stream_events(answer(choice(text("a"))))
    early = Event(usage=Usage(input_tokens=9, output_tokens=9))
    last = streamed([[events[0], early, *events[1:-1]], [], [events[-1]]])[-1]
    assert last["usage"]["total_tokens"] == 3


@pytest.mark.parametrize("upstream", ["chatcmpl-9", "msg_9"])
def test_ids_are_those_of_whole_answers(upstream: str) -> None:
    response = answer(choice(text("a")), id=upstream)
    assert {one["id"] for one in streamed([stream_events(response)])} == {whole(response).id}


def test_a_tool_call_sends_its_id_type_and_name_once() -> None:
    assert deltas(
        opened(text("")),
        Event(block=0, block_stop=BlockStop()),
        opened(call("c1", "f", ""), 1),
        Event(block=1, input='{"a"'),
        Event(block=1, input=":1}"),
        Event(block=1, block_stop=BlockStop()),
        opened(call("c2", "k", "", freeform=True), 2),
        Event(block=2, input="x"),
        Event(block=2, block_stop=BlockStop()),
    ) == [
        {"role": "assistant", "content": ""},
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": ""},
                }
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
        {
            "tool_calls": [
                {"index": 1, "id": "c2", "type": "custom", "custom": {"name": "k", "input": ""}}
            ]
        },
        {"tool_calls": [{"index": 1, "custom": {"input": "x"}}]},
    ]


def test_each_piece_of_a_delta_is_a_chunk_of_its_own() -> None:
    pieces = [b"a\\n", b"\\u00e9", "é".encode()]
    shown = deltas(
        opened(thinking("")),
        Event(block=0, thinking="a\néé", pieces=pieces),
        Event(block=0, block_stop=BlockStop()),
        opened(text(""), 1),
        Event(block=1, text="a\néé", pieces=pieces),
        Event(block=1, block_stop=BlockStop()),
        opened(call("c1", "f", ""), 2),
        Event(block=2, input="a\néé", pieces=pieces),
        Event(block=2, block_stop=BlockStop()),
    )
    words = ["a\n", "é", "é"]
    arguments = [{"index": 0, "function": {"arguments": word}} for word in words]
    assert shown[1:4] == [{"reasoning_content": word} for word in words]
    assert shown[5:8] == [{"content": word} for word in words]
    assert shown[9:] == [{"tool_calls": [call]} for call in arguments]


def test_arguments_of_foreign_blocks_are_left_out() -> None:
    block = Block(opaque=FOREIGN)
    assert len(deltas(opened(block), Event(input="ab", pieces=[b"a", b"b"]))) == 1


def test_a_call_without_arguments_ends_with_an_empty_object() -> None:
    ends = deltas(opened(call("c1", "f", "")), Event(block_stop=BlockStop()))
    assert ends[-1] == {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}


@pytest.mark.parametrize("block", [call("c", "f", "{}"), call("c", "k", "", freeform=True)])
def test_a_call_that_is_complete_gets_nothing_added(block: Block) -> None:
    assert len(deltas(opened(block), Event(block_stop=BlockStop()))) == 1


def test_what_a_block_starts_with_is_part_of_it() -> None:
    assert deltas(
        opened(thinking("a")),
        opened(text("b"), 1),
        opened(Block(refusal="c"), 2),
    ) == [
        {"role": "assistant", "content": None, "reasoning_content": "a"},
        {"content": "b"},
        {"refusal": "c"},
    ]


def test_an_empty_block_start_writes_no_chunk() -> None:
    assert deltas(opened(text("a")), opened(text(""), 1), opened(Block(refusal=""), 2)) == [
        {"role": "assistant", "content": "a"}
    ]


def test_what_has_no_place_in_a_chat_is_left_out() -> None:
    assert deltas(
        opened(text("a", FOREIGN)),
        Event(block=0, opaque=FOREIGN),
        Event(block=0, block_stop=BlockStop()),
        opened(thinking(""), 2),
        Event(block=2, signature="c2ln"),
        Event(block=2, block_stop=BlockStop()),
        opened(Block(opaque=FOREIGN), 3),
        Event(block=3, input="{}"),
        Event(block=3, block_stop=BlockStop()),
    ) == [{"role": "assistant", "content": "a"}]


def test_what_this_dialect_wrote_comes_back_at_its_place() -> None:
    signed = call("c1", "f", "{}")
    signed.extra.CopyFrom(own(extra_content={"google": {"thought_signature": "s"}}))
    told_deltas = deltas(
        opened(text("a", own(annotations=[]))),
        Event(block=0, opaque=own(obfuscation="x")),
        Event(block=0, block_stop=BlockStop()),
        opened(signed, 1),
        Event(block=1, opaque=own(extra_content={"google": {"thought_signature": "t"}})),
        Event(extra_fields=ExtraFields(message=own(audio={"id": "y"}))),
        opened(Block(opaque=own(type="reference", ids=[1])), 2),
    )
    assert told_deltas[0] == {"role": "assistant", "content": "a", "annotations": []}
    assert told_deltas[1] == {"obfuscation": "x"}
    assert told_deltas[2]["tool_calls"][0]["extra_content"] == {
        "google": {"thought_signature": "s"}
    }
    assert told_deltas[3]["tool_calls"] == [
        {"index": 0, "extra_content": {"google": {"thought_signature": "t"}}}
    ]
    assert told_deltas[4] == {"audio": {"id": "y"}}
    assert told_deltas[5] == {"content": [{"type": "reference", "ids": [1]}]}


def test_thinking_has_the_provider_s_name_for_it_too() -> None:
    block = Block(thinking=Thinking(field="reasoning"))
    pieces = [b"a", rb"\n", b"b"]
    told_deltas = deltas(
        opened(block),
        Event(thinking="h"),
        Event(thinking="a\nb", pieces=pieces),
        opened(text(""), 1),
    )
    assert [delta.get("reasoning") for delta in told_deltas[1:5]] == ["h", "a", "\n", "b"]
    assert [delta.get("reasoning_content") for delta in told_deltas[1:5]] == ["h", "a", "\n", "b"]


def late(**fields: Any) -> Event:
    return Event(extra_fields=ExtraFields(answer=own(**fields)))


def test_fields_that_come_later_are_sent_once() -> None:
    first = start(answer(extra=own(system_fingerprint="fp", provider="p")))
    text_events = [opened(text("")), Event(text="a"), late(citations=[1], provider="q")]
    rest = [Event(text="b"), Event(block_stop=BlockStop()), Event(finish=choice().finish)]
    *_, before, told_late, after, ended, _ = streamed([[first, *text_events, *rest]])
    assert (before["provider"], before["system_fingerprint"]) == ("p", "fp")
    assert (told_late["provider"], told_late["citations"]) == ("q", [1])
    assert told_late["choices"] == [
        {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}
    ]
    # What has changed is not repeated with its old value.
    assert "provider" not in after and "citations" not in after
    assert ended["system_fingerprint"] == "fp"
    assert after["choices"][0]["delta"] == {"content": "b"}


def test_fields_of_a_choice_are_in_it() -> None:
    sent = streamed(
        [[start(answer()), Event(extra_fields=ExtraFields(choice=own(flags={"a": 1})))]]
    )
    assert sent[0]["choices"] == [
        {
            "flags": {"a": 1},
            "index": 0,
            "delta": {"role": "assistant", "content": None},
            "logprobs": None,
            "finish_reason": None,
        }
    ]


@pytest.mark.parametrize("include_usage", [True, False])
def test_fields_behind_the_end_come_last(include_usage: bool) -> None:
    events = [*stream_events(answer(choice(text("a")))), late(timings={"ms": 1})]
    sent = streamed([events], include_usage=include_usage)
    assert sent[-1]["timings"] == {"ms": 1}
    assert ("usage" in sent[-1]) is include_usage
    if include_usage:
        assert sent[-1]["choices"] == []
    assert accumulated(sent).choices[0].finish_reason == "stop"


def test_fields_of_the_answer_are_in_every_chunk() -> None:
    response = answer(choice(text("a")), extra=own(system_fingerprint="fp", id="other"))
    for one in streamed([stream_events(response)]):
        assert (one["system_fingerprint"], one["id"]) == ("fp", "chatcmpl-1")


def test_fields_of_the_end_are_in_its_chunk() -> None:
    ended = choice(text("a"))
    ended.finish.extra.CopyFrom(own(content_filter_results={"hate": 0}, index=7))
    last = streamed([stream_events(answer(ended))])[-2]["choices"][0]
    assert last["content_filter_results"] == {"hate": 0}
    assert (last["index"], last["finish_reason"]) == (0, "stop")


def test_log_probabilities_go_with_their_delta_on_one_line() -> None:
    written = json.dumps(LOGPROBS, indent=1).encode()
    events = [
        start(answer()),
        opened(text("")),
        Event(text="a", logprobs=written),
        Event(block_stop=BlockStop()),
        Event(finish=choice().finish, logprobs=written),
    ]
    given_chunks = streamed([events], include_usage=False)
    assert [one["choices"][0]["logprobs"] for one in given_chunks] == [None, LOGPROBS, LOGPROBS]
    assert given_chunks[1]["choices"][0]["delta"] == {"content": "a"}


def test_choices_begin_in_the_order_of_their_indices() -> None:
    late = [opened(text("")), Event(text="x"), Event(block_stop=BlockStop())]
    for event in late:
        event.choice = 2
    given_chunks = streamed([[start(answer()), *late]], include_usage=False)
    begun = [
        one["choices"][0]["index"] for one in given_chunks if "role" in one["choices"][0]["delta"]
    ]
    assert begun == [0, 1, 2]


def test_an_answer_without_a_finish_reason_raises() -> None:
    stream = ChatStream(CREATED, False)
    with pytest.raises(KeyError):
        stream.encode([start(answer()), Event(finish=Choice().finish)])


def test_a_choice_that_nobody_can_ask_for_is_not_opened() -> None:
    stream = ChatStream(CREATED, False)
    stream.encode([start(answer())])
    for index in (128, 2**31, 2**32 - 1):
        with pytest.raises(ValueError, match="choice"):
            stream.encode([Event(choice=index, block_start=Block(text=""))])


def test_large_fields_of_an_answer_are_sent_once() -> None:
    whole = answer()
    whole.extra.dialect = DIALECT_OPENAI
    for size, times in ((2000, 2), (3000, 1)):
        whole.extra.json = b'{"x":"%b"}' % (b"y" * size)
        stream = ChatStream(CREATED, False)
        raw = stream.encode([start(whole), Event(block_start=Block(text="")), Event(text="a")])
        assert raw.count(b"yyy" * (size // 3)) == times
        assert all(json.loads(one[6:]) for one in raw.split(b"\n\n")[:-1])


def test_a_keepalive_is_a_comment() -> None:
    assert ChatStream(CREATED, True).keepalive() == b": keep-alive\n\n"


def test_a_stream_that_broke_off_ends_with_the_error_alone() -> None:
    error = GatewayError(errors_pb2.REASON_UPSTREAM_OVERLOADED, "too busy\n\nnow")
    raw = ChatStream(CREATED, True).error(error)
    assert raw.startswith(b"data: ") and raw.endswith(b"\n\n") and raw.count(b"\n") == 2
    assert json.loads(raw[6:]) == {
        "error": {
            "message": "too busy\n\nnow",
            "type": "server_error",
            "param": None,
            "code": "upstream_overloaded",
        }
    }


def test_a_start_alone_says_nothing() -> None:
    assert ChatStream(CREATED, True).encode([start(answer())]) == b""


WORDS = st.text(max_size=9)
BLOCKS = st.one_of(
    st.builds(text, WORDS),
    st.builds(thinking, WORDS),
    st.builds(lambda written: Block(refusal=written), st.text(min_size=1, max_size=9)),
    st.builds(call, st.just("c"), st.just("f"), st.sampled_from(["", "{}", '{"é":"\\n"}', "{bro"])),
    st.builds(call, st.just("c"), st.just("k"), WORDS, st.just(True)),
    st.just(Block(redacted_thinking="?")),
    st.just(Block(opaque=FOREIGN)),
)
REASONS = st.sampled_from(["END_TURN", "MAX_TOKENS", "TOOL_USE", "STOP_SEQUENCE", "PAUSE_TURN"])
CHOICES = st.builds(
    lambda blocks, reason: choice(*blocks, reason=reason), st.lists(BLOCKS, max_size=4), REASONS
)


@given(st.data(), st.lists(CHOICES, min_size=1, max_size=3), st.integers(1, 5))
@settings(deadline=None)
def test_the_client_reads_the_same_streamed_as_whole(
    data: st.DataObject, choices: list[Choice], size: int
) -> None:
    response = answer(
        *choices,
        usage=Usage(input_tokens=1, output_tokens=2, reasoning_tokens=1),
        extra=own(system_fingerprint="fp"),
    )
    events = [start(response)]
    waiting = [choice_events(index, one, size) for index, one in enumerate(choices)]
    while waiting := [one for one in waiting if one]:
        events.append(data.draw(st.sampled_from(waiting)).pop(0))
    events.append(Event(usage=response.usage))
    cut = data.draw(st.integers(0, len(events)))
    given_chunks = streamed([events[:cut], events[cut:]])
    assert told(accumulated(given_chunks)) == told(whole(response))


@given(st.lists(CHOICES, min_size=1, max_size=2))
@settings(deadline=None)
def test_every_chunk_is_what_the_client_s_types_say(choices: list[Choice]) -> None:
    finished: dict[int, int] = {}
    roles: dict[int, int] = {}
    for one in streamed([stream_events(answer(*choices))]):
        if b'"custom"' not in json.dumps(one).encode():  # which those types leave out
            ChatCompletionChunk.model_validate(one, strict=True)
        for each in one["choices"]:
            index = each["index"]
            assert index not in finished
            roles[index] = roles.get(index, 0) + ("role" in each["delta"])
            if each["finish_reason"]:
                finished[index] = 1
    assert finished == roles == dict.fromkeys(range(len(choices)), 1)


def test_opaque_deltas_without_a_dialect_stay_out() -> None:
    assert deltas(opened(text("a")), Event(opaque=Opaque(json=b'{"b":1}'))) == [
        {"role": "assistant", "content": "a"}
    ]


def test_citations_are_annotations_at_the_end_of_the_message() -> None:
    cited = Citation(url="https://a.example", title="A", start_index=1, end_index=3)
    blocks = text("ö"), Block(text="abc", citations=[cited])
    events = [*choice_events(0, choice(*blocks), 3)]
    *_, annotated, ended = deltas(*events[:-2], Event(block=1, citation=cited), *events[-2:])
    url = {"start_index": 2, "end_index": 4, "url": "https://a.example", "title": "A"}
    assert annotated == {"annotations": [{"type": "url_citation", "url_citation": url}]}
    assert ended == {}
    (message,) = whole(answer(choice(*blocks))).choices
    assert message.message.content == "öabc"
    assert message.message.annotations[0].url_citation.model_dump() == url
