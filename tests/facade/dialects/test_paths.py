"""Paths of the canonical request in the words of a caller's body."""

from typing import Any

import orjson
import pytest

from facade.dialects import anthropic, openai
from facade.dialects.paths import CallerPaths, FieldNames, SourceMap
from services.common.errors import unsupported
from tests.grid import each_row

PNG = "data:image/png;base64,aaaa"
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}
PNG_BLOCK = {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}
WORD = {"type": "text", "text": "a"}
EMPTY = {"type": "text", "text": ""}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def of_chat(**fields: Any) -> CallerPaths:
    """Return the paths of a chat."""
    body = orjson.dumps({"model": "m", **fields})
    return CallerPaths(openai.FIELD_NAMES, openai.parse_chat(body).source_map)


def of_messages(**fields: Any) -> CallerPaths:
    """Return the paths of a body of Anthropic's."""
    body = orjson.dumps({"model": "m", "max_tokens": 9, **fields})
    parsed = anthropic.parse_messages(body, betas=[], coding=False)
    return CallerPaths(anthropic.FIELD_NAMES, parsed.source_map)


@each_row(
    ("canonical", "chat", "message"),
    [
        ("temperature", "temperature", "temperature"),
        ("end_user", "user", "metadata.user_id"),
        ("thinking.effort", "reasoning_effort", "output_config.effort"),
        ("stop_sequences[1]", "stop[1]", "stop_sequences[1]"),
        ("betas", "betas", "anthropic-beta"),
        ("output_format", "response_format", "output_config.format"),
        ("output_format.name", "response_format.json_schema.name", "output_config.format.name"),
        ("tools[2].input_schema", "tools[2].function.parameters", "tools[2].input_schema"),
        ("tools[].strict", "tools[].function.strict", "tools[].strict"),
        ("tools[].extra.x", "tools[].x", "tools[].x"),
        ("extra.verbosity", "verbosity", "verbosity"),
        ("extra.response_format.mine", "response_format.mine", "response_format.mine"),
        ("messages[].extra.x", "messages[].x", "messages[].x"),
        ("messages[].blocks[].extra.x", "messages[].content[].x", "messages[].content[].x"),
        ("messages", "messages", "messages"),
        ("", "", ""),
    ],
)
def test_fields_have_the_names_of_each_dialect(canonical, chat, message):
    assert openai.FIELD_NAMES.translate(canonical, SourceMap()) == chat
    assert anthropic.FIELD_NAMES.translate(canonical, SourceMap()) == message


@pytest.mark.parametrize(
    ("canonical", "chat"),
    [
        ("web_search", "web_search_options"),
        ("web_search.ads", "web_search_options.ads"),
        ("web_search.allowed_domains[1]", "web_search_options.filters.allowed_domains[1]"),
        ("messages[].blocks[].thinking", "messages[].reasoning_content"),
        ("messages[].blocks[].media.detail", "messages[].content[].image_url.detail"),
    ],
)
def test_some_fields_are_of_chats_alone(canonical, chat):
    assert openai.FIELD_NAMES.translate(canonical, SourceMap()) == chat


@pytest.mark.parametrize(
    ("canonical", "message"),
    [
        ("tools[3].web.allowed_domains[0]", "tools[3].allowed_domains[0]"),
        ("messages[].blocks[].thinking", "messages[].content[].thinking"),
        ("messages[1].blocks[2].tool_use.input", "messages[1].content[2].input"),
    ],
)
def test_some_fields_are_of_messages_alone(canonical, message):
    assert anthropic.FIELD_NAMES.translate(canonical, SourceMap()) == message


def test_fields_of_a_step_stand_below_it():
    path = "fallback_config.steps[2].parameters"
    assert openai.FIELD_NAMES.translate(f"{path}.end_user", SourceMap()) == f"{path}.user"


def test_a_chats_empty_messages_and_parts_are_counted():
    paths = of_chat(messages=[user(EMPTY), user(EMPTY, IMAGE, EMPTY, IMAGE), user(IMAGE)])
    assert paths.path("messages[0].blocks[0]") == "messages[1].content[1]"
    assert paths.path("messages[0].blocks[1]") == "messages[1].content[3]"
    assert paths.path("messages[1].blocks[0].media") == "messages[2].content[0]"
    assert paths.path("messages[1].extra.x") == "messages[2].x"


def test_blocks_of_a_chats_assistant_stand_in_their_own_fields():
    message = {"role": "assistant", "reasoning_content": "hm", "content": [WORD], "refusal": "no"}
    result = {"role": "tool", "tool_call_id": "c1", "content": [WORD, IMAGE]}
    paths = of_chat(
        messages=[
            user(IMAGE),
            {**message, "tool_calls": [CALL, {**CALL, "id": "c2"}]},
            result,
            user(IMAGE),
        ]
    )
    assert [paths.path(f"messages[1].blocks[{place}]") for place in range(5)] == [
        "messages[1].reasoning_content",
        "messages[1].content[0]",
        "messages[1].refusal",
        "messages[1].tool_calls[0]",
        "messages[1].tool_calls[1]",
    ]
    assert paths.path("messages[2].blocks[0]") == "messages[2]"
    assert paths.path("messages[2].blocks[0].tool_result.blocks[1]") == "messages[2].content[1]"
    assert paths.path("messages[3].blocks[0]") == "messages[3].content[0]"


def test_the_system_prompt_is_separate_from_messages():
    paths = of_messages(system=[EMPTY, WORD], messages=[user(PNG_BLOCK)])
    assert paths.path("messages[0].blocks[0]") == "system[1]"
    assert paths.path("messages[0]") == "system"
    assert paths.path("messages[1].blocks[0].media") == "messages[0].content[0]"


def test_an_empty_system_prompt_is_not_counted():
    paths = of_messages(system=[EMPTY], messages=[user(PNG_BLOCK)])
    assert paths.path("messages[0].blocks[0]") == "messages[0].content[0]"


def test_paths_of_merged_messages_are_distinct():
    paths = of_messages(
        messages=[user(EMPTY), user(PNG_BLOCK, EMPTY), user(EMPTY, PNG_BLOCK, PNG_BLOCK)]
    )
    assert paths.path("messages[0].blocks[0]") == "messages[1].content[0]"
    assert paths.path("messages[0].blocks[1]") == "messages[2].content[1]"
    assert paths.path("messages[0].blocks[2].extra.x") == "messages[2].content[2].x"


def test_results_of_tools_hold_content():
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [PNG_BLOCK]}
    paths = of_messages(messages=[user(result)])
    path = "messages[0].blocks[0].tool_result.blocks[0]"
    assert paths.path(path) == "messages[0].content[0].content[0]"


def test_messages_of_a_step_are_its_own():
    step = {"step_id": "a", "model": "m", "parameters": {"messages": [user(EMPTY), user(IMAGE)]}}
    config = {"strategy": {"mode": "sequential"}, "steps": [step]}
    paths = of_chat(messages=[user(IMAGE)], fallback="strict", fallback_config=config)
    path = "fallback_config.steps[0].parameters.messages"
    assert paths.path(f"{path}[0].blocks[0]") == f"{path}[1].content[0]"


def test_origins_are_the_same_after_a_way_through_json():
    step = {"step_id": "a", "model": "m", "parameters": {"messages": [user(EMPTY), user(IMAGE)]}}
    config = {"strategy": {"mode": "sequential"}, "steps": [step]}
    body = {"model": "m", "messages": [user(EMPTY), user(IMAGE)], "fallback": "strict"}
    source_map = openai.parse_chat(orjson.dumps({**body, "fallback_config": config})).source_map
    assert SourceMap.load(orjson.loads(orjson.dumps(source_map.dump()))) == source_map


def test_a_plain_conversation_needs_no_marks():
    messages = [user(WORD), {"role": "assistant", "content": "b"}]
    body = orjson.dumps({"model": "m", "messages": messages * 3})
    assert openai.parse_chat(body).source_map == SourceMap()


def test_an_error_names_the_callers_field():
    paths = CallerPaths(FieldNames({"end_user": "user"}), SourceMap())
    error = paths.translate(unsupported("end_user", "end_user: is too long"))
    assert (error.param, error.message) == ("user", "user: is too long")
    error = paths.translate(unsupported("", "the request is odd"))
    assert (error.param, error.message) == ("", "the request is odd")


def test_each_dropped_field_is_named_once():
    paths = CallerPaths(openai.FIELD_NAMES, SourceMap())
    assert list(paths.dropped(["thinking", "thinking.effort"])) == ["reasoning_effort"]
    adapted = ["messages[0].blocks[1]:image-described"]
    assert list(paths.adapted(adapted)) == ["messages[0].content[1]:image-described"]
