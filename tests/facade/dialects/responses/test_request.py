"""Bodies of responses as canonical requests."""

import json

import pytest
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

from facade.dialects.paths import CallerPaths
from facade.dialects.responses import FIELD_NAMES, ResponseState, StoredConversation
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.inference.v1.inference_pb2 import OutputFormat, ToolChoice, WebTool
from services.common.ids import new_conversation_id
from tests.facade.dialects.responses.bodies import FUNCTION, json_of, parse, refused, request
from tests.grid import each_row

SCHEMA = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}


def test_a_text_is_a_message_of_the_user() -> None:
    sent_request = request()
    assert sent_request.dialect == conversation.DIALECT_RESPONSES
    (message,) = sent_request.messages
    assert (message.role, message.blocks[0].text) == (conversation.ROLE_USER, "hello")


def test_instructions_are_the_first_message() -> None:
    first, second = request(instructions="be kind").messages
    assert (first.role, first.blocks[0].text) == (conversation.ROLE_SYSTEM, "be kind")
    assert second.role == conversation.ROLE_USER


def test_settings_have_their_canonical_names() -> None:
    sent_request = request(
        max_output_tokens=7,
        temperature=0.5,
        top_p=0.25,
        user="u",
        service_tier="flex",
        reasoning={"effort": "low"},
        include=["message.output_text.logprobs"],
        top_logprobs=3,
    )
    assert (sent_request.max_tokens, sent_request.temperature, sent_request.top_p) == (7, 0.5, 0.25)
    assert (sent_request.end_user, sent_request.service_tier) == ("u", "flex")
    assert (sent_request.thinking.effort, sent_request.logprobs, sent_request.top_logprobs) == (
        "low",
        True,
        3,
    )


def test_a_format_is_canonical() -> None:
    form = request(text={"format": SCHEMA}).output_format
    assert (form.kind, form.name, form.strict) == (OutputFormat.KIND_JSON_SCHEMA, "n", True)
    assert json.loads(form.schema) == {"type": "object"}
    assert not request(text={"format": SCHEMA}).HasField("extra")
    without_name = {"type": "json_schema", "schema": {}}
    assert refused(text={"format": without_name}).param == "text.format.name"


def test_a_format_without_a_schema_is_any_object() -> None:
    form = {"type": "json_schema", "name": "n"}
    sent_request = request(text={"format": form})
    assert sent_request.output_format.kind == OutputFormat.KIND_JSON_OBJECT
    assert json_of(sent_request.extra) == {"text": {"format": form}}


def test_an_unknown_format_is_for_this_dialect_alone() -> None:
    sent_request = request(text={"format": {"type": "grammar"}})
    assert json_of(sent_request.extra) == {"text": {"format": {"type": "grammar"}}}
    assert list(sent_request.extra.required) == ["text"]


def test_fields_without_a_name_are_kept() -> None:
    sent_request = request(
        reasoning={"effort": "low", "summary": "auto"},
        text={"verbosity": "low", "format": SCHEMA},
        include=["reasoning.encrypted_content"],
        metadata={"a": "b"},
        truncation="auto",
        prompt_cache_key="k",
        newest={"x": 1},
        nothing=None,
    )
    assert json_of(sent_request.extra) == {
        "newest": {"x": 1},
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low", "format": SCHEMA},
        "include": ["reasoning.encrypted_content"],
        "metadata": {"a": "b"},
        "truncation": "auto",
        "prompt_cache_key": "k",
    }
    named = set(sent_request.extra.covered_paths)
    assert {"include", "metadata", "reasoning.effort", "text.format.schema"} <= named
    assert not named & {"truncation", "prompt_cache_key", "newest"}


def test_a_stored_prompt_cannot_be_left_out() -> None:
    assert list(request(prompt={"id": "p"}).extra.required) == ["prompt"]


@each_row(
    ("fields", "param"),
    [
        ({"input": ...}, "input"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": 3}, "input"),
        ({"model": ...}, "model"),
        ({"messages": []}, "messages"),
        ({"max_tokens": 3}, "max_tokens"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"metadata": {"k": 1}}, "metadata.k"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ({"stream_options": {}}, "stream_options"),
        ({"background": True, "store": False}, "background"),
        ({"previous_response_id": "r", "conversation": "c"}, "previous_response_id"),
        ({"conversation": {"id": "\n"}}, "conversation"),
        ({"conversation": {}}, "conversation.id"),
        ({"input": [{"role": "cook", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"type": 3}]}, "input[0].type"),
        ({"input": [{"type": "function_call", "name": "n"}]}, "input[0].call_id"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"fallback": "enabled"}, "fallback_config"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_its_path(fields: dict, param: str) -> None:
    assert refused(**fields).param == param


def test_tools() -> None:
    free = {"type": "custom", "name": "free", "format": {"type": "grammar"}}
    search = {"type": "web_search", "search_context_size": "low", "external_web_access": False}
    sent_request = request(
        tools=[{**FUNCTION, "strict": True, "defer_loading": True}, free, {"type": "mcp"}, search],
        tool_choice={"type": "function", "name": "look"},
        parallel_tool_calls=False,
        max_tool_calls=2,
    )
    function, custom, mcp, web = sent_request.tools
    assert (function.name, function.strict) == ("look", True)
    assert json_of(function.extra) == {"defer_loading": True}
    assert (custom.name, custom.opaque, json_of(custom.extra)) == ("free", True, free)
    assert (mcp.name, mcp.opaque, json_of(mcp.extra)) == ("", True, {"type": "mcp"})
    assert json_of(web.extra) == search
    assert web.web == WebTool(
        kind=WebTool.KIND_SEARCH,
        max_results=3,
        max_uses=2,
        foreign_fields=["external_web_access"],
    )
    assert (sent_request.tool_choice.mode, sent_request.tool_choice.name) == (
        ToolChoice.MODE_TOOL,
        "look",
    )
    assert sent_request.tool_choice.disable_parallel_tool_use


@pytest.mark.parametrize(
    ("tools", "choice", "param"),
    [
        ([FUNCTION, FUNCTION], "auto", "tools[1].name"),
        ([{**FUNCTION, "name": "a b"}], "auto", "tools[0].name"),
        ([FUNCTION], {"type": "function", "name": "other"}, "tool_choice.name"),
        ([FUNCTION], {"type": "function"}, "tool_choice.name"),
        (
            [FUNCTION],
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function"}]},
            "tool_choice.tools[0].name",
        ),
    ],
)
def test_wrong_tools_are_refused(tools: list, choice: object, param: str) -> None:
    assert refused(tools=tools, tool_choice=choice).param == param


def test_a_search_may_be_chosen() -> None:
    sent_request = request(
        tools=[{"type": "web_search_preview"}], tool_choice={"type": "web_search"}
    )
    assert (sent_request.tool_choice.mode, sent_request.tool_choice.name) == (
        ToolChoice.MODE_TOOL,
        "web_search",
    )


@pytest.mark.parametrize(
    "name", ["c", "conv_1", f"conv_{48 * 'a'}", f"conv_gw{45 * 'a'}", f"conv_gw{44 * 'A'}"]
)
def test_a_conversation_of_any_other_name_is_a_memory(name: str) -> None:
    parsed = parse(conversation={"id": name})
    assert parsed.request.memory.memory_id == name
    assert parsed.state.conversation is None
    assert parse(conversation=name, memory_id="m").request.memory.memory_id == "m"


def test_the_id_of_a_stored_conversation_is_no_memory() -> None:
    name = new_conversation_id()
    for given in (name, {"id": name}):
        parsed = parse(conversation=given, input=..., store=False)
        assert not parsed.request.HasField("memory")
        assert parsed.state.conversation == StoredConversation(name)
        assert ResponseState.load(parsed.state.dump()).conversation == StoredConversation(name)
    assert refused(conversation=name, memory_id="m").param == "memory_id"


def test_items_for_a_conversation_are_complete() -> None:
    given = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho", "status": None},
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "https://a.example/b", "detail": None}
            ],
        },
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}", "id": "fc_1"},
        {"type": "reasoning"},
    ]
    state = parse(conversation=new_conversation_id(), input=given, store=False).state
    items = [json.loads(item) for item in state.input_items]
    assert all(item.pop("id") for item in items)
    said = {"type": "output_text", "text": "Ho", "annotations": [], "logprobs": []}
    assert items == [
        {
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": "Hi"}],
        },
        {"type": "message", "role": "assistant", "status": "completed", "content": [said]},
        {
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [
                {"type": "input_image", "image_url": "https://a.example/b", "detail": "auto"}
            ],
        },
        {
            "type": "function_call",
            "call_id": "c",
            "name": "n",
            "arguments": "{}",
            "status": "completed",
        },
        {"type": "reasoning", "summary": []},
    ]


def test_state_of_a_request() -> None:
    state = parse(store=False).state
    assert (state.store, state.background, state.previous_response_id) == (False, False, None)
    assert state.input_items == ()
    state = parse(background=True, previous_response_id="resp_1").state
    assert (state.store, state.background, state.previous_response_id) == (True, True, "resp_1")


def test_stored_input_items_have_ids() -> None:
    given = [{"role": "user", "content": "x"}, {"type": "function_call_output", "id": "fco_9"}]
    given[1] |= {"call_id": "c", "output": ""}
    state = parse(input=given).state
    first, second = (json.loads(item) for item in state.input_items)
    assert first.pop("id").startswith("msg_")
    assert first == {"type": "message", "role": "user", "content": "x"}
    assert second == given[1]
    (only,) = (json.loads(item) for item in parse(input="hello").state.input_items)
    assert only["content"] == [{"type": "input_text", "text": "hello"}]


def test_references_are_told() -> None:
    parsed = parse(input=[{"role": "user", "content": "x"}, {"id": "msg_1"}], store=False)
    (reference,) = parsed.state.references
    assert (reference.index, reference.item_id, reference.path) == (1, "msg_1", "input[1]")
    assert json.loads(parsed.state.input_items[1])["type"] == "item_reference"
    assert len(parsed.request.messages) == 1


def test_state_survives_another_process() -> None:
    state = parse(input=[{"id": "msg_1"}], instructions="ü", metadata={"k": "v"}).state
    dumped = json.loads(json.dumps(state.dump()))
    assert ResponseState.load(dumped) == state


def test_a_step_sets_other_parameters() -> None:
    steps = [{"step_id": "s", "model": "n", "parameters": {"instructions": "b", "top_p": 0.5}}]
    sent_request = request(
        instructions="a",
        metadata={"k": "v"},
        fallback="enabled",
        fallback_config={"strategy": {"mode": "sequential"}, "steps": steps},
    )
    (step,) = sent_request.fallback_config.steps
    assert [message.blocks[0].text for message in step.parameters.messages] == ["b", "hello"]
    assert step.parameters.top_p == 0.5
    assert not step.parameters.HasField("extra")


def test_paths_are_those_of_the_body() -> None:
    items = [
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "input_text", "text": "a"}] * 2},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"role": "assistant", "content": "b"},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": ""},
        {"type": "function_call_output", "call_id": "c", "output": "d"},
        {"role": "user", "content": "e"},
    ]
    parsed = parse(instructions="i", input=items)
    paths = CallerPaths(FIELD_NAMES, parsed.source_map)
    assert len(parsed.request.messages) == 5
    for canonical, path in {
        "messages[0]": "instructions",
        "messages[0].blocks[0]": "instructions",
        "messages[1].blocks[1]": "input[1].content[1]",
        "messages[2].blocks[0].thinking": "input[2]",
        "messages[2].blocks[1]": "input[3].content[0]",
        "messages[2].blocks[2].tool_use": "input[4]",
        "messages[3].blocks[0].tool_result.blocks[0]": "input[5].output[0]",
        "messages[4]": "input[6]",
        "max_tokens": "max_output_tokens",
        "extra.verbosity": "verbosity",
        "tools[1].input_schema": "tools[1].parameters",
    }.items():
        assert paths.path(canonical) == path
    alone = CallerPaths(FIELD_NAMES, parse(instructions="i").source_map)
    assert alone.path("messages[1].blocks[0]") == "input"


def test_what_the_sdk_lets_write_is_taken() -> None:
    adapter = TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming)
    written = {
        "model": "m",
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": "http://a/b", "detail": "auto"}],
            },
            {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "y"},
        ],
        "tools": [{"type": "web_search"}, {**FUNCTION, "strict": None}],
        "text": {"format": SCHEMA, "verbosity": "low"},
        "reasoning": {"effort": "high", "summary": "concise"},
        "store": False,
    }
    adapter.validate_python(written)
    assert len(request(**written).messages) == 3


def test_numbers_of_any_size_are_repeated() -> None:
    large = 2**70
    schema = {"type": "integer", "maximum": large}
    state = parse(tools=[{**FUNCTION, "parameters": schema}]).state
    assert b'"maximum":%d' % large in state.echo.json
