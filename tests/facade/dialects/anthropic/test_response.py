import orjson
import pytest
from anthropic.types import Message, MessageTokensCount

from facade.dialects.anthropic import render_count, render_message
from gateway.conversation.v1 import conversation_pb2 as c
from gateway.inference.v1 import inference_pb2 as pb
from tests.facade.dialects.anthropic.answers import ANSWERS, answer
from tests.grid import each_row


def rendered(response: pb.GenerateResponse) -> dict:
    return orjson.loads(render_message(response))


@each_row("name", ANSWERS)
def test_every_answer_is_a_message_to_the_sdk(name):
    Message.model_validate_json(render_message(ANSWERS[name]), strict=True)


def test_a_message_has_every_field():
    response = answer(
        c.Block(text="Hi"),
        usage=c.Usage(
            input_tokens=1,
            output_tokens=2,
            cache_creation_input_tokens=3,
            cache_read_input_tokens=4,
        ),
    )
    assert rendered(response) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "up-1",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1,
            "cache_creation_input_tokens": 3,
            "cache_read_input_tokens": 4,
            "output_tokens": 2,
        },
    }


@pytest.mark.parametrize(
    ("upstream", "shown"),
    [
        ("msg_01AbC", "msg_01AbC"),
        ("chatcmpl-9x", "msg_chatcmpl-9x"),
        ("a b/ü\n", "msg_a_b___"),
    ],
)
def test_an_id_begins_as_messages_do(upstream, shown):
    assert rendered(answer(id=upstream))["id"] == shown


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (c.FINISH_REASON_END_TURN, "end_turn"),
        (c.FINISH_REASON_MAX_TOKENS, "max_tokens"),
        (c.FINISH_REASON_TOOL_USE, "tool_use"),
        (c.FINISH_REASON_REFUSAL, "refusal"),
        (c.FINISH_REASON_PAUSE_TURN, "pause_turn"),
        (c.FINISH_REASON_CONTEXT_WINDOW, "model_context_window_exceeded"),
        (c.FINISH_REASON_UNSPECIFIED, None),
    ],
)
def test_stop_reasons_by_name(reason, shown):
    message = rendered(answer(finish=pb.Finish(reason=reason, stop_sequence="not this")))
    assert (message["stop_reason"], message["stop_sequence"]) == (shown, None)


def test_the_stop_sequence_that_matched_is_reported():
    finish = pb.Finish(reason=c.FINISH_REASON_STOP_SEQUENCE, stop_sequence="END")
    message = rendered(answer(finish=finish))
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")


def test_an_unknown_stop_reason_passes_unchanged():
    extra = c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=b'{"stop_reason":"tired"}')
    finish = pb.Finish(reason=c.FINISH_REASON_END_TURN, extra=extra)
    assert rendered(answer(finish=finish))["stop_reason"] == "tired"


def test_a_refusal_is_text_and_a_reason_to_stop():
    message = rendered(answer(c.Block(refusal="I won't.")))
    assert message["content"] == [{"type": "text", "text": "I won't."}]
    assert message["stop_reason"] == "refusal"


def test_thinking_comes_with_its_proof():
    message = rendered(
        answer(
            c.Block(thinking=c.Thinking(text="Hm.", signature="c2ln")),
            c.Block(redacted_thinking="AbC="),
            c.Block(thinking=c.Thinking(signature="c2ln")),
        )
    )
    assert message["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "AbC="},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("", b"{}"),
        ('{"a": 1.50, "b": 123456789012345678901234567890}',
         b'{"a": 1.50, "b": 123456789012345678901234567890}'),
        ('{"a": ', rb'{"INVALID_JSON":"{\"a\": "}'),
        ("[1]", b'{"INVALID_JSON":"[1]"}'),
        ("free text", b'{"INVALID_JSON":"free text"}'),
    ],
)  # fmt: skip
def test_arguments_are_an_object_whatever_the_model_wrote(written, shown):
    response = answer(c.Block(tool_use=c.ToolUse(id="t", name="look", input=written)))
    assert b'"input":' + shown + b"}" in render_message(response)
    assert rendered(response)["content"][0]["name"] == "look"


def test_what_has_no_name_here_is_put_back():
    def kept(json: bytes, dialect: c.Dialect.ValueType = c.DIALECT_ANTHROPIC) -> c.Opaque:
        return c.Opaque(dialect=dialect, json=json)

    response = answer(
        c.Block(text="a", extra=kept(b'{"citations":[{"n":1}]}')),
        c.Block(opaque=kept(b'{"type":"new",\n "n": 1.50}')),
        c.Block(opaque=kept(b'{"type":"foreign"}', c.DIALECT_OPENAI)),
        c.Block(text="b", extra=kept(b'{"annotations":[]}', c.DIALECT_OPENAI)),
        finish=pb.Finish(reason=c.FINISH_REASON_END_TURN, extra=kept(b'{"container":{"id":"c"}}')),
        usage=c.Usage(
            output_tokens=9,
            reasoning_tokens=5,
            extra=kept(b'{"service_tier":"standard","output_tokens":1}'),
        ),
        extra=kept(b'{"diagnostics":null,"role":"user"}'),
    )
    message = rendered(response)
    assert message["content"] == [
        {"citations": [{"n": 1}], "type": "text", "text": "a"},
        {"type": "new", "n": 1.5},
        {"type": "text", "text": "b"},
    ]
    assert message["container"] == {"id": "c"}
    assert message["diagnostics"] is None
    assert message["role"] == "assistant"
    assert message["usage"]["service_tier"] == "standard"
    assert message["usage"]["output_tokens"] == 9
    assert message["usage"]["output_tokens_details"] == {"thinking_tokens": 5}
    assert b'"n": 1.50' in render_message(response)


def test_empty_text_is_not_shown():
    message = rendered(answer(c.Block(text=""), c.Block(refusal=""), c.Block(text="a")))
    assert message["content"] == [{"type": "text", "text": "a"}]


def test_a_block_that_no_answer_can_hold_is_not_lost_silently():
    result = c.Block(tool_result=c.ToolResult(tool_use_id="c1"))
    with pytest.raises(ValueError, match="tool_result"):
        render_message(answer(result))


@pytest.mark.parametrize(
    ("kind", "mime_type", "name"),
    [
        (c.MEDIA_KIND_IMAGE, "image/png", "image"),
        (c.MEDIA_KIND_DOCUMENT, "application/pdf", "document"),
    ],
)
def test_a_medium_that_a_model_made_is_shown_in_base64(kind, mime_type, name):
    media = c.Block(media=c.Media(kind=kind, data=b"\0\1", mime_type=mime_type))
    source = {"type": "base64", "media_type": mime_type, "data": "AAE="}
    assert rendered(answer(media))["content"] == [{"type": name, "source": source}]


def test_a_count_is_one_number():
    body = orjson.loads(render_count(pb.CountTokensResponse(input_tokens=7, estimated=True)))
    assert body == {"input_tokens": 7}
    MessageTokensCount.model_validate(body, strict=True)
