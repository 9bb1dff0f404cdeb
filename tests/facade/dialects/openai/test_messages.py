"""Messages of a chat, and what becomes of them."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult, ToolUse
from tests.facade.dialects.openai.bodies import HELLO, json_of, message, refused, request
from tests.grid import each_row

PNG = base64.b64encode(b"\x89PNG picture").decode()
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def part(**fields: Any) -> Block:
    """Return what becomes of one content part of a user's."""
    (only,) = message(role="user", content=[fields]).blocks
    return only


@each_row(
    ("role", "becomes"),
    [
        ("system", conversation.ROLE_SYSTEM),
        ("developer", conversation.ROLE_DEVELOPER),
        ("user", conversation.ROLE_USER),
        ("assistant", conversation.ROLE_ASSISTANT),
    ],
)
@each_row("content", ["hé", [{"type": "text", "text": "hé"}]])
def test_text_comes_from_its_role(
    role: str, becomes: conversation.Role.ValueType, content: object
) -> None:
    assert message(role=role, content=content) == Message(role=becomes, blocks=[Block(text="hé")])


def test_messages_and_parts_keep_their_order() -> None:
    changed = request(
        messages=[
            {"role": "user", "content": [{"type": "text", "text": t} for t in "ab"]},
            {"role": "system", "content": "c"},
            {"role": "user", "content": "d", "name": "Ann"},
            {"role": "user", "content": "e"},
        ]
    )
    told = [[block.text for block in one.blocks] for one in changed.messages]
    assert told == [["a", "b"], ["c"], ["d"], ["e"]]
    assert [one.name for one in changed.messages] == ["", "", "Ann", ""]


def test_empty_texts_and_empty_messages_are_left_out() -> None:
    changed = request(
        messages=[
            {"role": "system", "content": ""},
            {"role": "user", "content": []},
            {"role": "user", "content": [{"type": "text", "text": ""}]},
            {"role": "user", "content": [{"type": "text", "text": ""}, *HELLO_PARTS]},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": "", "name": "x"},
        ]
    )
    assert changed.messages == [Message(role=conversation.ROLE_USER, blocks=[Block(text="hello")])]


HELLO_PARTS = [{"type": "text", "text": "hello"}]


def test_a_tool_result_answers_its_call() -> None:
    result = message(role="tool", tool_call_id="c1", content=HELLO_PARTS)
    assert result == Message(
        role=conversation.ROLE_USER,
        blocks=[
            Block(tool_result=ToolResult(tool_use_id="c1", blocks=[Block(text="hello")])),
        ],
    )


@pytest.mark.parametrize("content", ["", []])
def test_a_tool_result_may_be_empty(content: object) -> None:
    result = message(role="tool", tool_call_id="c1", content=content)
    assert result.blocks == [Block(tool_result=ToolResult(tool_use_id="c1"))]


def test_a_tool_result_may_hold_an_image() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    result = message(role="tool", tool_call_id="c1", content=[picture])
    assert result.blocks[0].tool_result.blocks[0].media.url == "https://example.com/a.png"


def test_tool_calls_keep_their_bytes() -> None:
    calls = [
        CALL,
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{bro"}},
        {"id": "c3", "type": "function", "function": {"name": "h", "arguments": ""}},
        {"id": "c4", "type": "custom", "custom": {"name": "k", "input": "free"}},
        {"id": "c5", "type": "custom", "custom": {"name": "k", "input": ""}},
    ]
    assert message(role="assistant", content=None, tool_calls=calls).blocks == [
        Block(tool_use=ToolUse(id="c1", name="f", input='{"a": 1}')),
        Block(tool_use=ToolUse(id="c2", name="g", input="{bro")),
        Block(tool_use=ToolUse(id="c3", name="h", input="{}")),
        Block(tool_use=ToolUse(id="c4", name="k", input="free", freeform=True)),
        Block(tool_use=ToolUse(id="c5", name="k", input="", freeform=True)),
    ]


def test_assistant_blocks_are_thinking_text_refusal_calls() -> None:
    parsed = message(
        role="assistant",
        tool_calls=[CALL],
        refusal="no more",
        content=[{"type": "text", "text": "yes"}, {"type": "refusal", "refusal": "no"}],
        reasoning_content="hm",
    )
    assert [block.WhichOneof("kind") for block in parsed.blocks] == [
        "thinking",
        "text",
        "refusal",
        "refusal",
        "tool_use",
    ]
    assert parsed.blocks[0].thinking == conversation.Thinking(text="hm")
    assert [parsed.blocks[i].refusal for i in (2, 3)] == ["no", "no more"]


def test_thinking_alone_is_a_message() -> None:
    (block,) = message(role="assistant", content=None, reasoning_content="hm").blocks
    assert block.thinking.text == "hm"


def test_an_answer_can_be_sent_back_as_clients_print_it() -> None:
    parsed = message(
        role="assistant",
        content="hi",
        refusal=None,
        annotations=None,
        audio=None,
        function_call=None,
        tool_calls=None,
    )
    assert parsed == Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="hi")])


def test_what_has_no_name_stays_where_it_was() -> None:
    parsed = message(
        role="assistant",
        content=[{"type": "text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}}],
        tool_calls=[{**CALL, "extra_content": {"google": {"thought_signature": "s"}}}],
        prefix=True,
    )
    assert json_of(parsed.extra) == {"prefix": True}
    text, call = parsed.blocks
    assert json_of(text.extra) == {"prompt_cache_breakpoint": {"mode": "explicit"}}
    assert json_of(call.extra) == {"extra_content": {"google": {"thought_signature": "s"}}}


@pytest.mark.parametrize(
    ("fields", "field", "rest"),
    [
        ({"reasoning": "hm"}, "reasoning", {}),
        ({"reasoning": "hm", "reasoning_content": "hm"}, "reasoning", {}),
        ({"reasoning": "a", "reasoning_content": "hm"}, "", {"reasoning": "a"}),
        ({"reasoning": {"a": 1}, "reasoning_content": "hm"}, "", {"reasoning": {"a": 1}}),
    ],
)
def test_thoughts_keep_the_name_they_came_under(
    fields: dict[str, Any], field: str, rest: dict[str, Any]
) -> None:
    parsed = message(role="assistant", content="a", **fields)
    thinking = parsed.blocks[0].thinking
    assert (thinking.text, thinking.field) == ("hm", field)
    assert (json_of(parsed.extra) if rest else {}) == rest
    assert parsed.HasField("extra") == bool(rest)


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}])
def test_a_message_may_be_a_recording_alone(content: dict[str, Any]) -> None:
    parsed = message(role="assistant", audio={"id": "audio_1"}, **content)
    assert (list(parsed.blocks), json_of(parsed.extra)) == ([], {"audio": {"id": "audio_1"}})


def test_fields_of_a_function_without_a_name_stay_in_it() -> None:
    call = {**CALL, "function": {**CALL["function"], "v": 1}}
    (block,) = message(role="assistant", tool_calls=[call]).blocks
    assert json_of(block.extra) == {"function": {"v": 1}}


def test_parts_of_an_unknown_type_stay_as_they_are() -> None:
    film = {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}
    assert json_of(part(**film).opaque) == film


def test_thinking_that_the_gateway_hid_is_known_again() -> None:
    hidden = {"type": "redacted_thinking", "data": "gw1.key.model.hash"}
    others = {"type": "redacted_thinking", "data": "made elsewhere"}
    known, unknown = message(role="assistant", content=[hidden, others]).blocks
    assert known.redacted_thinking == hidden["data"]
    assert json_of(unknown.opaque) == others


@pytest.mark.parametrize(
    ("image", "becomes"),
    [
        ({"url": "HTTPS://example.com/a"}, Media(url="HTTPS://example.com/a")),
        ({"url": "http://a.b/c", "detail": "high"}, Media(url="http://a.b/c", detail="high")),
        ({"url": "http://a.b/c", "detail": None}, Media(url="http://a.b/c")),
        ({"url": "file-01HZ"}, Media(file_id="file-01HZ")),
        (
            {"url": f"data:image/png;base64,{PNG}"},
            Media(data=b"\x89PNG picture", mime_type="image/png"),
        ),
        (
            {"url": f"DATA:Image/SVG+XML;charset=utf-8;base64,{PNG}"},
            Media(data=b"\x89PNG picture", mime_type="image/svg+xml"),
        ),
    ],
)
def test_an_image_comes_by_address_by_value_or_by_id(image: dict[str, Any], becomes: Media) -> None:
    becomes.kind = conversation.MEDIA_KIND_IMAGE
    assert part(type="image_url", image_url=image) == Block(media=becomes)


@pytest.mark.parametrize(("form", "mime"), [("wav", "audio/wav"), ("mp3", "audio/mpeg")])
def test_a_recording_comes_by_value(form: str, mime: str) -> None:
    sound = part(type="input_audio", input_audio={"data": PNG, "format": form})
    assert sound.media == Media(
        kind=conversation.MEDIA_KIND_AUDIO, data=b"\x89PNG picture", mime_type=mime
    )


@each_row(
    ("file", "kind", "mime"),
    [
        ({"file_data": b"%PDF-1.7"}, "DOCUMENT", "application/pdf"),
        ({"file_data": b"hello", "filename": "A.TXT"}, "DOCUMENT", "text/plain"),
        ({"file_data": b"PK", "filename": "a.docx"}, "DOCUMENT", "officedocument"),
        ({"file_data": b"?", "filename": "a"}, "DOCUMENT", "application/octet-stream"),
        ({"file_data": b"?", "mime": "application/pdf"}, "DOCUMENT", "application/pdf"),
        ({"file_data": b"?", "mime": "image/png"}, "IMAGE", "image/png"),
        ({"file_data": b"?", "mime": "audio/wav"}, "AUDIO", "audio/wav"),
        ({"file_data": b"?", "mime": "video/mp4"}, "VIDEO", "video/mp4"),
        ({"file_data": b"%PDF-", "mime": "", "filename": "x"}, "DOCUMENT", "application/pdf"),
    ],
)
def test_a_file_is_what_its_type_says(file: dict[str, Any], kind: str, mime: str) -> None:
    data: bytes = file["file_data"]
    written = base64.b64encode(data).decode()
    if "mime" in file:
        written = f"data:{file['mime']};base64,{written}"
    name = file.get("filename")
    media = part(type="file", file={"file_data": written, "filename": name}).media
    assert media.kind == conversation.MediaKind.Value(f"MEDIA_KIND_{kind}")
    assert mime in media.mime_type
    assert (media.data, media.name) == (data, name or "")


def test_a_stored_file_is_named_by_its_id() -> None:
    media = part(type="file", file={"file_id": "file-1", "filename": "a.pdf"}).media
    assert media == Media(kind=conversation.MEDIA_KIND_DOCUMENT, file_id="file-1", name="a.pdf")


def user_part(**fields: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [fields]}]


def image(url: object) -> list[dict[str, Any]]:
    return user_part(type="image_url", image_url={"url": url})


def file(**fields: Any) -> list[dict[str, Any]]:
    return user_part(type="file", file=fields)


def calls(*given_calls: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "tool_calls": list(given_calls)}]


PART = "messages[0].content[0]"


@each_row(
    ("messages", "param"),
    [
        ([HELLO, {"content": "x"}], "messages[1].role"),
        ([HELLO, {"role": "function", "name": "f", "content": "x"}], "messages[1].role"),
        ([HELLO, {"role": "function", "content": "x"}], "messages[1].role"),
        (
            [{"role": "user", "content": "x", "function_call": {"name": "f", "arguments": ""}}],
            "messages[0].function_call",
        ),
        (
            [{"role": "assistant", "function_call": {"name": "f"}}],
            "messages[0].function_call.arguments",
        ),
        ([{"role": "User", "content": "x"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": None}], "messages[0].content"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "content": {"type": "text", "text": "x"}}], "messages[0].content"),
        ([{"role": "user", "content": ["x"]}], "messages[0].content[0]"),
        ([{"role": "user", "content": "x", "name": 5}], "messages[0].name"),
        ([{"role": "system", "content": None}], "messages[0].content"),
        ([{"role": "assistant"}], "messages[0].content"),
        ([{"role": "assistant", "content": None, "tool_calls": []}], "messages[0].content"),
        ([{"role": "assistant", "function_call": None}], "messages[0].content"),
        ([{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
        ([{"role": "tool", "content": "x", "tool_call_id": ""}], "messages[0].tool_call_id"),
        ([{"role": "tool", "tool_call_id": "c"}], "messages[0].content"),
        ([{"role": "user", "content": "x", "tool_call_id": "c"}], "messages[0].tool_call_id"),
        ([{"role": "user", "content": "x", "tool_calls": [CALL]}], "messages[0].tool_calls"),
        ([{"role": "user", "content": "x", "refusal": "no"}], "messages[0].refusal"),
        (
            [{"role": "user", "content": "x", "reasoning_content": "hm"}],
            "messages[0].reasoning_content",
        ),
        ([{"role": "user", "content": ""}], "messages"),
        (user_part(text="x"), f"{PART}.type"),
        (user_part(type=""), f"{PART}.type"),
        (user_part(type="text"), f"{PART}.text"),
        (user_part(type="text", text=5), f"{PART}.text"),
        (user_part(type="text", text=None), f"{PART}.text"),
        (user_part(type="refusal", refusal="no"), f"{PART}.type"),
        (user_part(type="image_url"), f"{PART}.image_url"),
        (user_part(type="image_url", image_url="http://a.b"), f"{PART}.image_url"),
        (user_part(type="image_url", image_url={}), f"{PART}.image_url.url"),
        (
            user_part(type="image_url", image_url={"url": "http://a.b", "detail": "max"}),
            f"{PART}.image_url.detail",
        ),
        (image(""), f"{PART}.image_url.url"),
        (image("ftp://a.b/c"), f"{PART}.image_url.url"),
        (image("http://"), f"{PART}.image_url.url"),
        (image("picture.png"), f"{PART}.image_url.url"),
        (image("data:image/png,raw"), f"{PART}.image_url.url"),
        (image("data:image/png;base64,"), f"{PART}.image_url.url"),
        (image("data:image/png;base64,a"), f"{PART}.image_url.url"),
        (image("data:image/png;base64,ab==cd"), f"{PART}.image_url.url"),
        (image("data:image/png;base64,é==="), f"{PART}.image_url.url"),
        (image("data:image/png;base64,iVBO\nRw=="), f"{PART}.image_url.url"),
        (image(f"data:application/pdf;base64,{PNG}"), f"{PART}.image_url.url"),
        (image(f"data:;base64,{PNG}"), f"{PART}.image_url.url"),
        (user_part(type="input_audio", input_audio={"data": PNG}), f"{PART}.input_audio.format"),
        (
            user_part(type="input_audio", input_audio={"data": PNG, "format": "au"}),
            f"{PART}.input_audio.format",
        ),
        (
            user_part(type="input_audio", input_audio={"data": "?", "format": "wav"}),
            f"{PART}.input_audio.data",
        ),
        (file(), f"{PART}.file"),
        (file(filename="a.pdf"), f"{PART}.file"),
        (file(file_id="file-1", file_data=PNG), f"{PART}.file"),
        (file(file_id=""), f"{PART}.file.file_id"),
        (file(file_data="?"), f"{PART}.file.file_data"),
        (file(file_data="data:text/plain,hello"), f"{PART}.file.file_data"),
        ([{"role": "system", "content": [{"type": "image_url"}]}], f"{PART}.type"),
        ([{"role": "assistant", "content": [{"type": "file"}]}], f"{PART}.type"),
        (calls({**CALL, "id": ""}), "messages[0].tool_calls[0].id"),
        (calls(CALL, {**CALL, "type": "web"}), "messages[0].tool_calls[1].type"),
        (calls({"id": "c", "function": {}}), "messages[0].tool_calls[0].type"),
        (calls({"id": "c", "type": "function"}), "messages[0].tool_calls[0].function"),
        (calls({**CALL, "type": "custom"}), "messages[0].tool_calls[0].custom"),
        (
            calls({**CALL, "function": {"name": "f", "arguments": {}}}),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            calls({**CALL, "function": {"name": "", "arguments": ""}}),
            "messages[0].tool_calls[0].function.name",
        ),
    ],
)
def test_a_message_that_breaks_a_rule_is_named(messages: list[Any], param: str) -> None:
    assert refused(messages=messages).param == param


def test_a_hundred_thousand_messages_are_taken() -> None:
    assert len(request(messages=[HELLO] * 100_000).messages) == 100_000


TEXTS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(min_size=1)), min_size=1)


@given(TEXTS)
def test_texts_come_through_unharmed_as_strings_and_as_parts(texts: list[tuple[str, str]]) -> None:
    strings = [{"role": role, "content": text} for role, text in texts]
    parts = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in texts]
    read = request(messages=strings).messages
    assert [one.blocks[0].text for one in read] == [text for _, text in texts]
    assert request(messages=parts).messages == read


@given(st.binary(min_size=1))
def test_media_come_through_unharmed(data: bytes) -> None:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    assert part(type="image_url", image_url={"url": url}).media.data == data
