"""Input items as canonical messages."""

import base64
import json

from facade.dialects.responses import messages_of_items
from gateway.conversation.v1 import conversation_pb2 as conversation
from tests.facade.dialects.responses.bodies import json_of, messages, refused
from tests.grid import each_row

CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a":1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "found"}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "gw1.k.m.s",
}
DATA = base64.b64encode(b"%PDF-1").decode()


def user(*parts: dict) -> dict:
    return {"role": "user", "content": list(parts)}


def test_roles() -> None:
    given = messages(*({"role": role, "content": "x"} for role in ("developer", "system", "user")))
    assert [message.role for message in given] == [
        conversation.ROLE_DEVELOPER,
        conversation.ROLE_SYSTEM,
        conversation.ROLE_USER,
    ]


def test_media_by_value_address_and_id() -> None:
    (message,) = messages(
        user(
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
            {"type": "input_image", "image_url": "https://a/b.png"},
            {"type": "input_image", "file_id": "file-1"},
            {"type": "input_file", "file_data": DATA, "filename": "a.pdf"},
            {"type": "input_file", "file_url": "https://a/b.pdf"},
            {"type": "input_file", "file_id": "file-2"},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        )
    )
    media = [block.media for block in message.blocks]
    assert [one.WhichOneof("source") for one in media] == [
        *("data", "url", "file_id", "data", "url", "file_id", "data")
    ]
    assert (media[0].detail, media[0].mime_type) == ("low", "image/png")
    assert (media[3].mime_type, media[3].name) == ("application/pdf", "a.pdf")
    assert media[6].kind == conversation.MEDIA_KIND_AUDIO


@each_row(
    ("part", "param"),
    [
        ({"type": "input_image"}, ""),
        ({"type": "input_image", "image_url": "x", "file_id": "y"}, ""),
        ({"type": "input_image", "image_url": "ftp://x"}, ".image_url"),
        ({"type": "input_file", "filename": "x"}, ""),
        ({"type": "input_file", "file_url": "ftp://x"}, ".file_url"),
        ({"type": "input_file", "file_data": "?"}, ".file_data"),
        ({"type": "input_text"}, ".text"),
        ({"type": "refusal", "refusal": "no"}, ".type"),
    ],
)
def test_wrong_parts_are_refused(part: dict, param: str) -> None:
    assert refused(input=[user(part)]).param == f"input[0].content[0]{param}"


def test_the_assistant_has_no_media() -> None:
    item = {**user({"type": "input_image", "file_id": "f"}), "role": "assistant"}
    assert refused(input=[item]).param == "input[0].content[0].type"


def test_an_answer_sent_back_is_one_message() -> None:
    said = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
            {"type": "refusal", "refusal": "b"},
        ],
    }
    free = {"type": "custom_tool_call", "call_id": "c2", "name": "f", "input": "x", "id": "ctc_1"}
    message, first, second = messages(
        THOUGHT, said, CALL, free, OUTPUT, {**OUTPUT, "type": "custom_tool_call_output"}
    )
    assert json_of(message.extra) == {"id": "msg_1", "status": "completed", "phase": "commentary"}
    thought, text, refusal, call, custom = message.blocks
    assert (thought.thinking.text, thought.thinking.signature) == ("hm", "gw1.k.m.s")
    assert json_of(thought.extra) == THOUGHT
    assert (text.text, text.HasField("extra"), refusal.refusal) == ("a", False, "b")
    assert (call.tool_use.id, call.tool_use.input, call.tool_use.freeform) == (
        *("c1", '{"a":1}'),
        False,
    )
    assert (custom.tool_use.input, custom.tool_use.freeform) == ("x", True)
    assert list(custom.extra.covered_paths) == ["id"]
    for result in (first, second):
        assert result.role == conversation.ROLE_USER
        assert result.blocks[0].tool_result.tool_use_id == "c1"
        assert result.blocks[0].tool_result.blocks[0].text == "found"


def test_texts_of_two_items_are_two_messages() -> None:
    message = {"role": "assistant", "content": "x"}
    assert len(messages(message, message)) == 2
    assert len(messages(CALL, message, OUTPUT)) == 2


def test_outputs_may_have_parts() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "file_id": "file-1"}]
    _, result = messages(CALL, {**OUTPUT, "output": parts})
    first, second = result.blocks[0].tool_result.blocks
    assert (first.text, second.media.file_id) == ("a", "file-1")


def test_redacted_thoughts_come_back() -> None:
    item = {"type": "reasoning", "summary": [], "encrypted_content": "redacted.xyz"}
    (message,) = messages(item)
    assert message.blocks[0].redacted_thinking == "xyz"


def test_other_items_are_opaque() -> None:
    shell = {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "call_id": "s", "output": []}
    first, second = messages(shell, output)
    assert (first.role, json_of(first.blocks[0].opaque)) == (conversation.ROLE_ASSISTANT, shell)
    assert (second.role, json_of(second.blocks[0].opaque)) == (conversation.ROLE_USER, output)
    part = {"type": "computer_screenshot", "image_url": "x"}
    (message,) = messages(user(part))
    assert json_of(message.blocks[0].opaque) == part


def test_searches_are_items_but_the_gateways_own_are_left_out() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    assistant_message = {"role": "assistant", "content": "x"}
    (message,) = messages(search, assistant_message)
    assert json_of(message.blocks[0].opaque) == search
    assert message.blocks[1].text == "x"
    assert len(messages({**search, "id": "ws_gw1"}, assistant_message)[0].blocks) == 1
    calls, result = messages(CALL, search, OUTPUT)
    assert [block.WhichOneof("kind") for block in calls.blocks] == ["tool_use", "opaque"]
    assert result.blocks[0].HasField("tool_result")


def test_stored_items_become_the_same_messages() -> None:
    items = [THOUGHT, CALL, OUTPUT, {"role": "user", "content": "x"}]
    assert messages_of_items([json.dumps(item).encode() for item in items]) == messages(*items)


def test_thirty_thousand_calls_are_one_message() -> None:
    # Comparing each with those before it would take minutes.
    calls = [{**CALL, "call_id": f"c{number}"} for number in range(30_000)]
    (message,) = messages(*calls)
    assert len(message.blocks) == len(calls)


def test_additional_tools_are_instructions_of_their_own() -> None:
    tools = {"type": "additional_tools", "role": "developer", "tools": []}
    called, added, result = messages(CALL, tools, OUTPUT)
    assert [called.role, added.role, result.role] == [
        conversation.ROLE_ASSISTANT,
        conversation.ROLE_DEVELOPER,
        conversation.ROLE_USER,
    ]
    assert json_of(added.blocks[0].opaque) == tools
