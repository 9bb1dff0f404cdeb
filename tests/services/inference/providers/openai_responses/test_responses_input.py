"""Input items that canonical messages become."""

import base64
from typing import Any

import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    Message,
    Opaque,
    Thinking,
    ToolResult,
    ToolUse,
)
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai_responses.request import build_request
from services.inference.stream.prefill import CONTINUE
from tests.services.inference.providers.openai_responses.responses_calls import (
    ASSISTANT,
    DEVELOPER,
    RESPONSES,
    SYSTEM,
    USER,
    body_of,
    call_of,
    input_of,
    opaque,
    refusal_of,
    says,
    thought,
)

ASKED = says(USER, "hi")
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "so"}],
    "encrypted_content": "gAAAAAB-_x",
    "status": "completed",
}
IMAGE = conversation_pb2.MEDIA_KIND_IMAGE
DOCUMENT = conversation_pb2.MEDIA_KIND_DOCUMENT


def call(name: str = "f", *, id: str = "call_1", freeform: bool = False, **fields: Any) -> Block:
    use = ToolUse(id=id, name=name, input="{}", freeform=freeform)
    return Block(tool_use=use, **fields)


def result(*blocks: Block, id: str = "call_1", **fields: Any) -> Block:
    return Block(tool_result=ToolResult(tool_use_id=id, blocks=blocks, **fields))


def test_a_plain_system_prompt_is_the_instructions() -> None:
    body = body_of(call_of(says(SYSTEM, "Be brief."), ASKED))
    assert body["instructions"] == "Be brief."
    assert body["input"] == [{"type": "message", "role": "user", "content": "hi"}]


def test_a_system_prompt_alone_is_an_item() -> None:
    body = body_of(call_of(says(SYSTEM, "Say hello.")))
    assert "instructions" not in body
    assert body["input"] == [{"type": "message", "role": "system", "content": "Say hello."}]


def test_other_prompts_are_messages_at_their_places() -> None:
    items = input_of(
        says(SYSTEM, "One", extra=opaque({"status": "completed"})),
        says(DEVELOPER, "Two"),
        ASKED,
        says(SYSTEM, "Three"),
    )
    assert [item["role"] for item in items] == ["system", "developer", "user", "system"]
    assert items[0] == {
        "type": "message",
        "role": "system",
        "status": "completed",
        "content": [{"type": "input_text", "text": "One"}],
    }


def test_a_whole_turn_goes_back_as_it_came() -> None:
    message = {"id": "msg_1", "status": "completed", "phase": "commentary"}
    citation = {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "", "url": "u"}
    kept = {"annotations": [citation]}
    call_fields = {"id": "fc_1", "status": "completed"}
    items = input_of(
        ASKED,
        says(
            ASSISTANT,
            thought(REASONING),
            Block(text="a", extra=opaque(kept)),
            Block(refusal="no"),
            call(extra=opaque(call_fields)),
            extra=opaque(message),
        ),
        says(USER, result(Block(text="sunny"))),
    )
    assert items[1:] == [
        REASONING,
        {
            "type": "message",
            "role": "assistant",
            **message,
            "content": [
                {"type": "output_text", "text": "a", **kept},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
        | call_fields,
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    ]


def test_outputs_of_custom_tools_are_theirs() -> None:
    items = input_of(
        ASKED,
        says(ASSISTANT, call(freeform=True), call("g", id="call_2")),
        says(USER, result()),
        says(USER, result(Block(text="a"), Block(text="b"), id="call_2")),
    )
    assert items[1] == {
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "f",
        "input": "{}",
    }
    assert items[3] == {"type": "custom_tool_call_output", "call_id": "call_1", "output": ""}
    assert items[4]["output"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b"},
    ]


def test_items_of_other_types_go_back_byte_for_byte() -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    shell = {"type": "new_call", "id": "n_1", "call_id": "c_1"}
    items = input_of(
        ASKED,
        Message(role=ASSISTANT, extra=opaque(search)),
        says(ASSISTANT, "a", Block(opaque=opaque(shell)), "b"),
        says(USER, "go on"),
        known=False,
    )
    assert items[1:5] == [
        search,
        {"type": "message", "role": "assistant", "content": "a"},
        shell,
        {"type": "message", "role": "assistant", "content": "b"},
    ]


def sent_of(json: bytes) -> bytes:
    """Return the body with an item that a gRPC caller wrote as this JSON."""
    item = Block(opaque=Opaque(dialect=RESPONSES, json=json))
    return build_request(call_of(says(ASSISTANT, item)), Server("acme", True, False, False))


def test_an_item_keeps_numbers_of_any_size() -> None:
    item = b'{"type": "new_call", "many": 1000000000000000000000000000000}'
    assert item in sent_of(item)


@pytest.mark.parametrize("name", [b"file_id", b"file\\u005fid"])
def test_of_a_repeated_member_the_checked_one_is_sent(name: bytes) -> None:
    sent = sent_of(b'{"type":"new_call","file_id":"file-1","%b":null}' % name)
    assert b"file-1" not in sent
    assert b'"new_call"' in sent


def test_parts_of_unknown_types_stay_in_their_message() -> None:
    part = {"type": "input_video", "video": "…"}
    (item,) = input_of(says(USER, "see", Block(opaque=opaque(part))), known=False)
    assert item["content"] == [{"type": "input_text", "text": "see"}, part]


def test_media_by_value() -> None:
    pdf = Media(kind=DOCUMENT, data=b"%PDF", mime_type="application/pdf", name="a.pdf")
    png = Media(kind=IMAGE, data=b"png", mime_type="image/png", detail="low")
    (item,) = input_of(says(USER, Block(media=png), Block(media=pdf)))
    image, file = item["content"]
    data = base64.b64encode(b"png").decode()
    assert image == {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{data}",
        "detail": "low",
    }
    assert (file["type"], file["filename"]) == ("input_file", "a.pdf")
    assert file["file_data"].startswith("data:application/pdf;base64,")


def test_media_of_tool_outputs_stay_there() -> None:
    png = Block(media=Media(kind=IMAGE, data=b"png", mime_type="image/png"))
    items = input_of(ASKED, says(ASSISTANT, call()), says(USER, result(png)))
    assert items[-1]["output"][0]["type"] == "input_image"


def test_media_by_address_go_to_servers_that_fetch() -> None:
    png = says(USER, Block(media=Media(kind=IMAGE, url="https://a.test/b.png")))
    pdf = says(USER, Block(media=Media(kind=DOCUMENT, url="https://a.test/b.pdf")))
    (image,), (file,) = (
        item["content"] for item in input_of(png, pdf, fetches_urls=True)
    )  # fmt: skip
    assert (image["image_url"], file["file_url"]) == (
        "https://a.test/b.png",
        "https://a.test/b.pdf",
    )
    assert refusal_of(call_of(png)) == ("UNSUPPORTED", "messages[0].blocks[0]")


def test_reasoning_that_is_not_encrypted_stays_out_of_openai() -> None:
    plain = thought({"type": "reasoning", "id": "rs_1", "summary": []})
    call_ = call_of(ASKED, says(ASSISTANT, plain, "a"), says(USER, "b"))
    assert [item.get("type") for item in body_of(call_)["input"]] == ["message"] * 3
    assert call_.dropped == ["messages[].blocks[].thinking"]
    items = input_of(ASKED, says(ASSISTANT, plain, "a"), says(USER, "b"), newest=False)
    assert [item.get("type") for item in items] == ["message"] * 3
    said = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "so"}]}
    items = input_of(ASKED, says(ASSISTANT, thought(said), "a"), says(USER, "b"), newest=False)
    assert items[1] == said


def test_reasoning_without_its_item_is_made_anew() -> None:
    thinking = Block(thinking=Thinking(text="so", signature="gAAAA"))
    items = input_of(ASKED, says(ASSISTANT, thinking, "a"), says(USER, "b"))
    assert items[1] == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "so"}],
        "encrypted_content": "gAAAA",
    }


def test_hidden_thoughts_of_others_stay_out() -> None:
    items = input_of(ASKED, says(ASSISTANT, Block(redacted_thinking="x"), "a"), says(USER, "b"))
    assert [item["type"] for item in items] == ["message"] * 3


def test_a_prefill_is_asked_to_be_continued() -> None:
    items = input_of(ASKED, says(ASSISTANT, "It is"))
    assert items[-1] == {"type": "message", "role": "user", "content": CONTINUE}


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (says(USER, Block(media=Media(kind=IMAGE, file_id="file-1"))), ""),
        (says(USER, Block(opaque=opaque({"type": "input_new", "file_id": "file-1"}))), ".file_id"),
        (says(USER, Block(opaque=opaque({"type": "item_reference", "id": "msg_1"}))), ".id"),
        (says(USER, Block(opaque=opaque({"id": "msg_1"}))), ""),
    ],
)
def test_what_is_kept_at_the_provider_may_not_be_named(message: Message, path: str) -> None:
    assert refusal_of(call_of(message)) == ("INVALID_REQUEST", f"messages[0].blocks[0]{path}")
    assert input_of(message, pass_stateful=True, known=False)


def test_films_and_foreign_parts_are_refused_by_their_path() -> None:
    film = Block(media=Media(kind=conversation_pb2.MEDIA_KIND_VIDEO, data=b"x"))
    assert refusal_of(call_of(says(USER, "a", film)))[1] == "messages[0].blocks[1]"
    foreign = Block(opaque=opaque({"type": "x"}, conversation_pb2.DIALECT_ANTHROPIC))
    assert refusal_of(call_of(says(USER, foreign))) == ("UNSUPPORTED", "messages[0].blocks[0]")


def test_what_a_result_cannot_say_is_named() -> None:
    call_ = call_of(ASKED, says(ASSISTANT, call()), says(USER, result(is_error=True)))
    body_of(call_)
    assert call_.dropped == ["messages[].blocks[].tool_result.is_error"]
