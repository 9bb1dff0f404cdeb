import base64
import json

import orjson
import pytest

from facade.dialects.anthropic import MessagesBody, parse_count_tokens, parse_messages
from gateway.conversation.v1 import conversation_pb2 as c
from gateway.inference.v1 import inference_pb2 as pb
from tests.facade.dialects.anthropic.bodies import after_question, body, parsed, user
from tests.grid import each_row
from tests.work import lines_run

PNG = b"\x89PNG\r\n\x1a\n"
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def roles_and_texts(request: pb.GenerateRequest) -> list[tuple[str, list[str]]]:
    return [
        (c.Role.Name(message.role), [block.text for block in message.blocks])
        for message in request.messages
    ]


def test_the_smallest_request_sets_only_what_it_says():
    assert parsed() == pb.GenerateRequest(
        model="m",
        max_tokens=4096,
        dialect=c.DIALECT_ANTHROPIC,
        messages=[c.Message(role=c.ROLE_USER, blocks=[c.Block(text="Hi")])],
        ends_with_text=True,
    )


def test_streaming_is_distinguished():
    for stream in (True, False):
        given = parse_messages(orjson.dumps(body(stream=stream)), betas=[], coding=False)
        assert given.stream is stream
    assert parse_messages(orjson.dumps(body()), betas=[], coding=False).stream is False


def test_betas_travel_along():
    request = parse_messages(orjson.dumps(body()), betas=["a", "b"], coding=False).request
    assert list(request.betas) == ["a", "b"]


def test_sampling_and_service_fields_keep_their_values():
    request = parsed(
        temperature=1,
        top_p=0.25,
        top_k=7,
        stop_sequences=["END", "\n\n"],
        service_tier="standard_only",
        metadata={"user_id": "u-1"},
    )
    assert (request.temperature, request.top_p, request.top_k) == (1.0, 0.25, 7)
    assert list(request.stop_sequences) == ["END", "\n\n"]
    assert (request.service_tier, request.end_user) == ("standard_only", "u-1")
    assert not request.HasField("extra")


OPTIONAL = sorted(MessagesBody.model_fields.keys() - {"model", "messages", "max_tokens"})


@each_row("name", OPTIONAL)
def test_null_is_the_same_as_left_out(name):
    assert parsed(**{name: None}) == parsed()


def test_neighbours_of_one_role_become_one_message_in_order():
    request = parsed(
        messages=[
            {"role": "user", "content": "a"},
            {"role": "user", "content": [{"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c"},
            {"role": "assistant", "content": "d"},
            {"role": "user", "content": "e"},
        ]
    )
    assert roles_and_texts(request) == [
        ("ROLE_USER", ["a", "b"]),
        ("ROLE_ASSISTANT", ["c", "d"]),
        ("ROLE_USER", ["e"]),
    ]


def test_empty_text_goes_and_its_neighbours_meet():
    request = parsed(
        messages=[
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": [{"type": "text", "text": ""}]},
            {"role": "user", "content": [{"type": "text", "text": "", "citations": []}]},
            {"role": "user", "content": "b"},
        ]
    )
    assert roles_and_texts(request) == [("ROLE_USER", ["a", "b"])]


def test_a_message_with_its_own_fields_stays_separate():
    request = parsed(
        messages=[
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b", "id": 5},
            {"role": "user", "content": "c"},
        ]
    )
    assert [text for _, text in roles_and_texts(request)] == [["a"], ["b"], ["c"]]
    assert request.messages[1].extra == c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=b'{"id":5}')


def test_a_prefill_keeps_its_bytes():
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": " {\n "}]
    request = parsed(messages=messages)
    assert roles_and_texts(request)[-1] == ("ROLE_ASSISTANT", [" {\n "])


@pytest.mark.parametrize("system", ["Be brief.", [{"type": "text", "text": "Be brief."}]])
def test_the_system_prompt_is_the_first_message(system):
    assert roles_and_texts(parsed(system=system)) == [
        ("ROLE_SYSTEM", ["Be brief."]),
        ("ROLE_USER", ["Hi"]),
    ]


@pytest.mark.parametrize("system", ["", [], [{"type": "text", "text": ""}]])
def test_an_empty_system_prompt_is_none(system):
    assert parsed(system=system) == parsed()


def test_a_later_system_message_stays_at_its_place():
    request = parsed(
        system="First.",
        messages=[
            {"role": "user", "content": ""},
            {"role": "system", "content": "Second."},
            {"role": "user", "content": "Hi"},
            {"role": "system", "content": [{"type": "text", "text": "Third."}]},
            {"role": "user", "content": "Go on"},
        ],
    )
    assert [text for _, (text,) in roles_and_texts(request)] == [
        "First.",
        "Second.",
        "Hi",
        "Third.",
        "Go on",
    ]
    assert request.messages[3].role == c.ROLE_SYSTEM


def test_cache_control_and_citations_stay_with_their_block():
    block = {
        "type": "text",
        "text": "a",
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
        "citations": [{"n": 1.5}],
    }
    for request in (parsed(messages=user(block)), parsed(system=[block])):
        assert request.messages[0].blocks[0] == c.Block(
            text="a",
            cache_control=b'{"type":"ephemeral","ttl":"1h"}',
            extra=c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=b'{"citations":[{"n":1.5}]}'),
        )


@pytest.mark.parametrize(
    ("block", "media"),
    [
        (
            {
                "type": "image",
                "source": {
                    "type": "base64",
                    "media_type": "image/png",
                    "data": base64.b64encode(PNG).decode(),
                },
            },
            c.Media(kind=c.MEDIA_KIND_IMAGE, mime_type="image/png", data=PNG),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "HTTPS://a.example/b.png?c#d"}},
            c.Media(kind=c.MEDIA_KIND_IMAGE, url="HTTPS://a.example/b.png?c#d"),
        ),
        (
            {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
            c.Media(kind=c.MEDIA_KIND_IMAGE, file_id="file-1"),
        ),
        (
            {
                "type": "document",
                "title": "Report",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            },
            c.Media(
                kind=c.MEDIA_KIND_DOCUMENT,
                mime_type="application/pdf",
                data=b"%PDF",
                name="Report",
            ),
        ),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "naïve"},
            },
            c.Media(kind=c.MEDIA_KIND_DOCUMENT, mime_type="text/plain", data="naïve".encode()),
        ),
    ],
)
def test_media_become_bytes_or_a_reference(block, media):
    assert parsed(messages=user(block)).messages[0].blocks[0] == c.Block(media=media)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "search_result", "source": "https://a.example", "content": []},
        {"type": "document", "source": {"type": "content", "content": "a"}, "title": "t"},
        {"type": "image", "source": {"type": "somewhere_new", "at": 1}},
        {"type": "image", "source": {"type": "text", "data": "not an image"}},
        {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {"n": 2**70}},
    ],
)
def test_a_block_without_a_name_here_stays_as_it_is(block):
    body_bytes = json.dumps(body(messages=user(block))).encode()
    request = parse_messages(body_bytes, betas=[], coding=False).request
    opaque = request.messages[0].blocks[0].opaque
    assert opaque.dialect == c.DIALECT_ANTHROPIC
    assert json.loads(opaque.json) == block


def test_thinking_keeps_text_signature_and_order():
    request = parsed(
        messages=after_question(
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "AbC="},
            {"type": "thinking", "thinking": "Unsigned."},
            {"type": "text", "text": "Yes."},
        )
    )
    assert list(request.messages[1].blocks) == [
        c.Block(thinking=c.Thinking(text="Hm.", signature="c2ln")),
        c.Block(redacted_thinking="AbC="),
        c.Block(thinking=c.Thinking(text="Unsigned.")),
        c.Block(text="Yes."),
    ]


def test_a_tool_call_keeps_its_arguments():
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": ["ä", None, 1e3]}}
    request = parsed(messages=after_question(block), tools=[TOOL])
    assert request.messages[1].blocks[0].tool_use == c.ToolUse(
        id="toolu_1", name="look", input='{"at":["ä",null,1000.0]}'
    )


def test_a_tool_result_answers_its_call():
    request = parsed(
        messages=user(
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "is_error": True,
                "content": [
                    {"type": "text", "text": ""},
                    {"type": "text", "text": "broken"},
                    {"type": "image", "source": {"type": "url", "url": "https://a.example/b"}},
                    {"type": "tool_reference", "tool_name": "x"},
                ],
            },
            {"type": "tool_result", "tool_use_id": "b", "content": "fine"},
            {"type": "tool_result", "tool_use_id": "c"},
            {"type": "tool_result", "tool_use_id": "d", "content": ""},
        )
    )
    first, second, third, fourth = (block.tool_result for block in request.messages[0].blocks)
    assert (first.tool_use_id, first.is_error) == ("a", True)
    assert [block.WhichOneof("kind") for block in first.blocks] == ["text", "media", "opaque"]
    assert second == c.ToolResult(tool_use_id="b", blocks=[c.Block(text="fine")])
    assert (third, fourth) == (c.ToolResult(tool_use_id="c"), c.ToolResult(tool_use_id="d"))


@pytest.mark.parametrize("name", ["preserve", "discard", "flatten"])
def test_thinking_block_strategy_by_name(name):
    request = parsed(thinking_block_strategy=name)
    expected = pb.ThinkingBlockStrategy.Value(f"THINKING_BLOCK_STRATEGY_{name.upper()}")
    assert request.thinking_block_strategy == expected


def test_built_in_tools_are_used_only_when_asked_for():
    assert parsed(use_built_in_tools=True).use_built_in_tools
    assert not parsed(use_built_in_tools=False).use_built_in_tools
    assert not parsed(coding=True).use_built_in_tools


def test_counting_needs_no_max_tokens():
    request_body = body(
        max_tokens=..., thinking={"type": "enabled", "budget_tokens": 9000}, tools=[TOOL]
    )
    counted = parse_count_tokens(orjson.dumps(request_body), betas=["b"], coding=False)
    assert counted.stream is False
    assert not counted.request.HasField("max_tokens")
    assert counted.request.thinking.budget_tokens == 9000
    assert list(counted.request.betas) == ["b"]


def test_parsing_work_grows_linearly_with_messages():
    def given(count):
        return [
            {"role": "user" if index % 2 == 0 else "assistant", "content": f"{index} word"}
            for index in range(count)
        ]

    def read(count):
        return parse_messages(orjson.dumps(body(messages=given(count))), betas=[], coding=False)

    request = read(100_000).request
    assert len(request.messages) == 100_000
    assert request.messages[99_999].blocks[0].text == "99999 word"
    assert lines_run(lambda: read(2_000)) < 10.5 * lines_run(lambda: read(200))


def test_a_hundred_thousand_neighbours_become_one_message():
    messages = [{"role": "user", "content": str(index)} for index in range(100_000)]
    request = parsed(messages=messages)
    assert [len(message.blocks) for message in request.messages] == [100_000]
