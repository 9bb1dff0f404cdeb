"""Messages as Gemini's contents."""

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Block, Thinking, ToolResult, ToolUse
from gateway.inference.v1.inference_pb2 import ThinkingBlockStrategy
from services.inference.providers.gemini import signatures
from services.inference.providers.gemini.request import build_request
from tests.services.inference.providers.caller_paths import dropped_of
from tests.services.inference.providers.gemini_calls import (
    ANTHROPIC,
    ASSISTANT,
    DEVELOPER,
    SYSTEM,
    USER,
    body_of,
    call_of,
    called,
    contents_of,
    medium,
    opaque,
    refusal_of,
    result,
    says,
)

DUMMY = signatures.NOT_SIGNED
DISCARD = ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_DISCARD


def chat_signature(text: str):
    return opaque({"extra_content": {"google": {"thought_signature": text}}})


def test_neighbours_of_one_role_are_one_content() -> None:
    assert contents_of(
        says(USER, "a"), says(USER, "b", "c"), says(ASSISTANT, "d"), says(USER, "e")
    ) == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]},
        {"role": "model", "parts": [{"text": "d"}]},
        {"role": "user", "parts": [{"text": "e"}]},
    ]


def test_all_system_messages_become_the_instruction() -> None:
    body = body_of(call_of(says(SYSTEM, "a"), says(USER, "hi"), says(DEVELOPER, "b")))
    assert body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert len(body["contents"]) == 1


def test_billing_headers_go_to_anthropic_alone() -> None:
    billing = "x-anthropic-billing-header: cc_version=2.1.117.48f; cc_entrypoint=cli; cch=71fea;"
    for system in ((billing, "Be brief."), (f"{billing}\nBe brief.",)):
        call = call_of(says(SYSTEM, *system, has_billing_line=True), says(USER, "hi"))
        assert body_of(call)["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
        assert dropped_of(call) == ["messages[].has_billing_line"]
    alone = call_of(says(SYSTEM, billing, has_billing_line=True), says(USER, "hi"))
    assert "systemInstruction" not in body_of(alone)
    chat = call_of(says(SYSTEM, billing), says(USER, "hi"))
    assert body_of(chat)["systemInstruction"] == {"parts": [{"text": billing}]}


def test_a_chat_of_a_system_message_alone_asks_it() -> None:
    body = body_of(call_of(says(SYSTEM, "a")))
    assert body == {"contents": [{"role": "user", "parts": [{"text": "a"}]}]}


def test_calls_and_results_have_names_and_ids() -> None:
    contents = contents_of(
        says(USER, "hi"),
        says(ASSISTANT, "I call.", called("1", "f", '{"n":1.50}'), called("2", "g")),
        says(USER, result("1", "sun", "ny"), result("2", "no", is_error=True), "and now?"),
    )
    assert contents[1]["parts"] == [
        {"text": "I call."},
        {
            "functionCall": {"id": "1", "name": "f", "args": {"n": 1.5}},
            "thoughtSignature": DUMMY,
        },
        {"functionCall": {"id": "2", "name": "g", "args": {}}},
    ]
    assert contents[2]["parts"] == [
        {"functionResponse": {"id": "1", "name": "f", "response": {"output": "sun\nny"}}},
        {"functionResponse": {"id": "2", "name": "g", "response": {"error": "no"}}},
        {"text": "and now?"},
    ]


def test_malformed_arguments_stay_readable() -> None:
    contents = contents_of(
        says(USER, "hi"), says(ASSISTANT, called("1", "f", '{"a')), says(USER, result("1"))
    )
    assert contents[1]["parts"][0]["functionCall"]["args"] == {"malformed": '{"a'}


def test_models_before_gemini_3_get_no_signature_that_is_none() -> None:
    call = call_of(
        says(USER, "hi"),
        says(ASSISTANT, called("1")),
        says(USER, result("1")),
        model="gemini-2.5-pro",
    )
    # The sandbox plays Gemini 3, and would refuse this.
    body = orjson.loads(build_request(call, pass_stateful=False, fetches_urls=False))
    assert "thoughtSignature" not in body["contents"][1]["parts"][0]


def test_a_chats_signature_goes_back_on_its_call() -> None:
    call = called("1", extra=chat_signature("c2ln"))
    messages = says(USER, "hi"), says(ASSISTANT, call), says(USER, result("1", "x"))
    (part,) = contents_of(*messages)[1]["parts"]
    assert part["thoughtSignature"] == "c2ln"
    doubted = body_of(call_of(*messages, thinking_block_strategy=DISCARD))
    assert doubted["contents"][1]["parts"][0]["thoughtSignature"] == DUMMY


@pytest.mark.parametrize("given", ["no base64!", "", 7, None, {"a": 1}])
def test_a_signature_that_cannot_be_one_is_not_sent(given) -> None:
    call = called("1", extra=chat_signature(given))
    contents = contents_of(says(USER, "hi"), says(ASSISTANT, call), says(USER, result("1", "x")))
    assert contents[1]["parts"][0]["thoughtSignature"] == DUMMY


def test_thoughts_go_back_with_the_signature_of_their_part() -> None:
    def thought(text: str, carried: str) -> Block:
        return Block(thinking=Thinking(text=text, signature=carried))

    contents = contents_of(
        says(USER, "hi"),
        says(
            ASSISTANT,
            thought("hm", "thought:aaaa"),
            Block(redacted_thinking="call:bbbb"),
            called("1"),
            thought("so", "call:cccc"),
            called("2"),
        ),
        says(USER, result("1", "x"), result("2", "y")),
        says(ASSISTANT, "done", Block(redacted_thinking="text:dddd")),
        says(ASSISTANT, Block(redacted_thinking="somebody else's"), thought("", "x")),
        says(USER, "bye"),
    )
    assert [
        (part.get("text", "call"), part.get("thought"), part.get("thoughtSignature"))
        for part in contents[1]["parts"]
    ] == [
        ("hm", True, "aaaa"),
        ("call", None, "bbbb"),
        ("so", True, None),
        ("call", None, "cccc"),
    ]
    assert contents[3]["parts"] == [{"text": "done", "thoughtSignature": "dddd"}]


def test_a_signature_without_a_text_has_an_empty_one() -> None:
    last = says(ASSISTANT, called("1"), Block(redacted_thinking="text:dddd"))
    contents = contents_of(says(USER, "hi"), last, says(USER, result("1", "x")))
    assert contents[1]["parts"][1] == {"text": "", "thoughtSignature": "dddd"}


def test_a_chats_message_keeps_the_signature_of_its_text() -> None:
    contents = contents_of(
        says(USER, "hi"), says(ASSISTANT, "hello", extra=chat_signature("eeee")), says(USER, "x")
    )
    assert contents[1]["parts"] == [{"text": "hello", "thoughtSignature": "eeee"}]


@pytest.mark.parametrize(
    ("kind", "mime", "theirs"),
    [
        ("image", "image/png", "image/png"),
        ("image", "image/jpg", "image/jpeg"),
        ("audio", "audio/mpeg", "audio/mp3"),
        ("video", "video/mp4", "video/mp4"),
        ("document", "application/pdf", "application/pdf"),
    ],
)
def test_media_go_by_value(kind: str, mime: str, theirs: str) -> None:
    (content,) = contents_of(says(USER, medium(kind, data=b"\0\1", mime_type=mime)))
    assert content["parts"] == [{"inlineData": {"mimeType": theirs, "data": "AAE="}}]


def test_a_picture_that_the_model_drew_goes_back() -> None:
    url = {"url": "data:image/png;base64,AAE="}
    images = [{"type": "image_url", "image_url": url}, {"image_url": {"url": "https://x"}}, 7]
    drawn = says(ASSISTANT, "see", extra=opaque({"images": images}))
    contents = contents_of(says(USER, "draw"), drawn, says(USER, "another"))
    assert contents[1]["parts"] == [
        {"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": "AAE="}},
    ]


def test_text_documents_are_text() -> None:
    document = medium("document", data="ä".encode(), mime_type="text/plain; x=y", name="a.txt")
    assert contents_of(says(USER, document))[0]["parts"] == [{"text": "[a.txt]\nä"}]


def test_media_of_results_stand_behind_them() -> None:
    picture = medium("image", data=b"\0", mime_type="image/png")
    contents = contents_of(
        says(USER, "hi"), says(ASSISTANT, called("1")), says(USER, result("1", "see", picture))
    )
    response, words, data = contents[2]["parts"]
    assert response["functionResponse"]["response"] == {"output": "see"}
    assert words == {"text": "[Attached to the result 1]"}
    assert data["inlineData"]["mimeType"] == "image/png"


def test_an_address_goes_to_servers_that_fetch() -> None:
    picture = medium("image", url="https://x.test/a.png")
    message = says(USER, "see", picture)
    parts = contents_of(message, fetches_urls=True)[0]["parts"]
    assert parts[1] == {"fileData": {"fileUri": "https://x.test/a.png"}}
    assert refusal_of(call_of(message)) == ("UNSUPPORTED", "messages[0].content[1]")


def test_a_file_kept_at_google_is_named_where_that_is_allowed() -> None:
    film = medium("video", file_id="files/abc", mime_type="video/mp4")
    (content,) = contents_of(says(USER, film), pass_stateful=True)
    assert content["parts"] == [{"fileData": {"fileUri": "files/abc", "mimeType": "video/mp4"}}]
    assert refusal_of(call_of(says(USER, film)))[0] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (says(USER, medium("document", data=b"x", mime_type="application/zip")), "content[0]"),
        (says(USER, medium("document", data=b"\xff", mime_type="text/plain")), "content[0]"),
        (says(USER, "a", Block(opaque=opaque({"type": "x"}))), "content[1]"),
        (says(ASSISTANT, "a", extra=opaque({"audio": {"id": "x"}})), "audio"),
    ],
)
def test_what_cannot_be_carried_is_refused(message, path: str) -> None:
    assert refusal_of(call_of(message)) == ("UNSUPPORTED", f"messages[0].{path}")


def test_what_says_nothing_to_google_is_dropped_and_named() -> None:
    text = Block(text="a", cache_control=b"{}", extra=opaque({"citations": []}, ANTHROPIC))
    call = call_of(says(USER, text, name="bob", extra=opaque({"x": 1}, ANTHROPIC)))
    assert body_of(call)["contents"] == [{"role": "user", "parts": [{"text": "a"}]}]
    assert set(dropped_of(call)) == {
        "messages[].content[].cache_control",
        "messages[].content[].citations",
        "messages[].name",
        "messages[].x",
    }


def test_a_text_between_a_call_and_its_result_follows_it() -> None:
    calls = [Block(tool_use=ToolUse(id=one, name="f", input="{}")) for one in "ab"]
    results = [
        Block(tool_result=ToolResult(tool_use_id=one, blocks=[Block(text=one)])) for one in "ab"
    ]
    contents = body_of(
        call_of(
            says(USER, "go"),
            says(ASSISTANT, *calls),
            says(USER, "by the way"),
            says(USER, results[0]),
            says(USER, "and"),
            says(USER, results[1]),
        )
    )["contents"]
    kinds = [next(iter(part)) for part in contents[-1]["parts"]]
    assert kinds == ["functionResponse", "functionResponse", "text", "text"]
