"""Fields of a request as Gemini's, for callers of every dialect."""

from typing import Any

import pytest

from gateway.inference.v1.inference_pb2 import (
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
    WebTool,
)
from services.common.errors import GatewayError
from services.inference.providers.gemini import sanitizing
from tests.grid import each_row
from tests.services.inference.providers.caller_paths import dropped_of
from tests.services.inference.providers.gemini_calls import (
    ANTHROPIC,
    ASSISTANT,
    NONE,
    SCHEMA,
    USER,
    body_of,
    call_of,
    config_of,
    opaque,
    refusal_of,
    says,
    tool,
)

PRO, FLASH, LITE = "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.0-flash"
THREE = "gemini-3-pro-preview"


def test_a_plain_request_is_its_contents() -> None:
    assert body_of(call_of()) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_sampling_has_googles_names() -> None:
    call = call_of(
        temperature=2,
        top_p=0.5,
        top_k=4,
        seed=-7,
        presence_penalty=-1,
        frequency_penalty=1,
        max_tokens=9,
        stop_sequences=["a", "b"],
        n=2,
        logprobs=True,
        top_logprobs=3,
    )
    assert config_of(call) == {
        "temperature": 2,
        "topP": 0.5,
        "topK": 4,
        "seed": -7,
        "presencePenalty": -1,
        "frequencyPenalty": 1,
        "maxOutputTokens": 9,
        "stopSequences": ["a", "b"],
        "candidateCount": 2,
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert dropped_of(call) == []


def test_what_google_has_nothing_for_is_dropped_and_named() -> None:
    call = call_of(
        end_user="u",
        service_tier="flex",
        betas=["b"],
        seed=2**40,
        extra=opaque({"diagnostics": 1, "store": False, "nothing": None}),
    )
    assert set(body_of(call)) == {"contents"}
    named = {"user", "service_tier", "betas", "seed", "diagnostics", "store"}
    assert set(dropped_of(call)) == named


def test_fields_are_named_in_the_callers_own_words() -> None:
    call = call_of(dialect=ANTHROPIC, end_user="u", betas=["b"])
    body_of(call)
    assert set(dropped_of(call)) == {"metadata.user_id", "anthropic-beta"}


def test_what_the_model_has_refused_is_left_out() -> None:
    call = call_of(presence_penalty=1, temperature=1, refused_fields=("presence_penalty",))
    assert config_of(call) == {"temperature": 1}
    assert dropped_of(call) == ["presence_penalty"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"web_search": WebTool(kind=WebTool.KIND_SEARCH)}, "web_search_options"),
        ({"extra": opaque({"audio": {"voice": "x"}})}, "audio"),
        ({"extra": opaque({"container": "c"}, ANTHROPIC), "dialect": ANTHROPIC}, "container"),
        ({"extra": opaque({"modalities": ["text", "audio"]})}, "modalities"),
    ],
)
def test_what_would_change_the_answer_is_refused(fields: Any, path: str) -> None:
    assert refusal_of(call_of(**fields)) == ("UNSUPPORTED", path)


def test_pictures_can_be_asked_for() -> None:
    assert config_of(call_of(extra=opaque({"modalities": ["text", "image"]}))) == {
        "responseModalities": ["TEXT", "IMAGE"]
    }
    assert config_of(call_of(extra=opaque({"modalities": ["text"]}))) == {}


def test_what_googles_own_endpoint_takes_beside_openais_fields() -> None:
    config = {"thinking_level": "LOW", "include_thoughts": True}
    own = {"google": {"thinking_config": config, "cached_content": "c/1", "x": 1}}
    call = call_of(extra=opaque({"extra_body": own}))
    body = body_of(call, pass_stateful=True)
    thinking = {"thinkingLevel": "LOW", "includeThoughts": True}
    assert body["generationConfig"] == {"thinkingConfig": thinking}
    assert body["cachedContent"] == "c/1"
    assert dropped_of(call) == ["extra_body.google.x"]
    assert refusal_of(call) == ("INVALID_REQUEST", "extra_body.google.cached_content")


def test_tools_are_functions_with_json_schemas() -> None:
    call = call_of(tools=[tool(description="d", strict=True), tool("g", input_schema=b"{}")])
    assert body_of(call)["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "d", "parametersJsonSchema": _SCHEMA},
                {"name": "g"},
            ]
        }
    ]
    assert dropped_of(call) == ["tools[].function.strict"]


_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def test_a_tool_that_takes_anything_says_so() -> None:
    schema = b'{"type":"object","additionalProperties":true}'
    (declared,) = body_of(call_of(tools=[tool(input_schema=schema)]))["tools"][0].values()
    assert declared[0]["parametersJsonSchema"] == {"type": "object", "additionalProperties": True}


def test_a_tool_of_another_type_is_refused() -> None:
    own = Tool(opaque=True, extra=opaque({"type": "web_search"}))
    assert refusal_of(call_of(tools=[own])) == ("UNSUPPORTED", "tools[0]")


@pytest.mark.parametrize("name", ["1st", "-x", "a" * 65, "x" * 128])
def test_invalid_tool_names_are_replaced_and_restored(name: str) -> None:
    call = call_of(tools=[tool(name)], tool_choice=ToolChoice(mode=ToolChoice.MODE_TOOL, name=name))
    body = body_of(call)
    (declared,) = body["tools"][0]["functionDeclarations"]
    assert body["toolConfig"]["functionCallingConfig"] == {
        "mode": "ANY",
        "allowedFunctionNames": [declared["name"]],
    }
    assert sanitizing.given_names([name, "f"]) == {declared["name"]: name}


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice(mode=ToolChoice.MODE_AUTO), {"mode": "AUTO"}),
        (ToolChoice(mode=ToolChoice.MODE_ANY), {"mode": "ANY"}),
        (ToolChoice(mode=ToolChoice.MODE_NONE), {"mode": "NONE"}),
    ],
)
def test_choices_of_tools(choice: ToolChoice, config: Any) -> None:
    body = body_of(call_of(tools=[tool()], tool_choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": config}


def test_a_choice_without_tools_says_nothing() -> None:
    choice = ToolChoice(mode=ToolChoice.MODE_NONE)
    assert set(body_of(call_of(tool_choice=choice))) == {"contents"}


def test_parallel_calls_cannot_be_turned_off() -> None:
    choice = ToolChoice(mode=ToolChoice.MODE_AUTO, disable_parallel_tool_use=True)
    call = call_of(tools=[tool()], tool_choice=choice)
    body_of(call)
    assert dropped_of(call) == ["parallel_tool_calls"]


def test_forms_of_answers() -> None:
    form = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=SCHEMA, name="n", strict=True)
    config = config_of(call_of(output_format=form))
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"] == {"city": {"type": "string"}}
    form = OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT)
    assert config_of(call_of(output_format=form)) == {"responseMimeType": "application/json"}
    assert config_of(call_of(output_format=OutputFormat(kind=OutputFormat.KIND_TEXT))) == {}


def enabled(budget: int) -> ThinkingConfig:
    return ThinkingConfig(mode=ThinkingConfig.MODE_ENABLED, budget_tokens=budget)


def effort(name: str) -> ThinkingConfig:
    return ThinkingConfig(effort=name)


OFF = ThinkingConfig(mode=ThinkingConfig.MODE_DISABLED)
ADAPTIVE = ThinkingConfig(mode=ThinkingConfig.MODE_ADAPTIVE)


@each_row(
    ("model", "thinking", "config"),
    [
        (FLASH, enabled(2048), {"thinkingBudget": 2048, "includeThoughts": True}),
        (FLASH, enabled(100_000), {"thinkingBudget": 24576, "includeThoughts": True}),
        (FLASH, effort("low"), {"thinkingBudget": 1024, "includeThoughts": True}),
        (FLASH, effort("xhigh"), {"thinkingBudget": 24576, "includeThoughts": True}),
        (FLASH, ADAPTIVE, {"thinkingBudget": -1, "includeThoughts": True}),
        (FLASH, OFF, {"thinkingBudget": 0}),
        (FLASH, effort("none"), {"thinkingBudget": 0}),
        (PRO, OFF, {"thinkingBudget": 128}),
        (THREE, enabled(2048), {"thinkingLevel": "LOW", "includeThoughts": True}),
        (THREE, enabled(30_000), {"thinkingLevel": "HIGH", "includeThoughts": True}),
        (THREE, effort("max"), {"thinkingLevel": "HIGH", "includeThoughts": True}),
        (THREE, effort("medium"), {"thinkingLevel": "LOW", "includeThoughts": True}),
        (THREE, effort("minimal"), {"thinkingLevel": "LOW", "includeThoughts": True}),
        (THREE, ADAPTIVE, {"includeThoughts": True}),
        (THREE, OFF, {"thinkingLevel": "LOW"}),
    ],
)
def test_how_much_to_think(model: str, thinking: ThinkingConfig, config: Any) -> None:
    efforts = ("low", "high") if model == THREE else ()
    call = call_of(model=model, thinking=thinking, efforts=efforts)
    assert config_of(call) == {"thinkingConfig": config}


def test_thinking_leaves_room_for_the_answer() -> None:
    call = call_of(model=FLASH, thinking=effort("high"), max_tokens=4000)
    assert config_of(call)["thinkingConfig"]["thinkingBudget"] == 3000


def test_a_model_that_does_not_think_is_not_asked_to() -> None:
    call = call_of(model=LITE, thinking=effort("high"))
    assert config_of(call) == {}
    assert dropped_of(call) == ["reasoning_effort"]


def test_thinking_that_the_model_refused_is_left_out() -> None:
    call = call_of(thinking=enabled(2048), dialect=ANTHROPIC, refused_fields=("thinking",))
    assert config_of(call) == {}
    assert dropped_of(call) == ["thinking"]


def test_a_prefill_is_asked_for_in_words() -> None:
    call = call_of(says(USER, "hi"), says(ASSISTANT, "hel"), dialect=NONE)
    last = body_of(call)["contents"][-1]
    assert last["role"] == "user"
    assert last["parts"][0]["text"].startswith("Continue your last message")


@pytest.mark.parametrize("name", ["../v1/x", "models/../x", "a b", "", "x?y", "x:count", "files/x"])
def test_what_cannot_be_a_model_is_not_asked_for(name: str) -> None:
    with pytest.raises(GatewayError) as raised:
        sanitizing.model_path(name)
    assert raised.value.http_status == 404


def test_paths_of_models() -> None:
    assert sanitizing.model_path("gemini-2.5-pro") == "models/gemini-2.5-pro"
    assert sanitizing.model_path("models/gemini-x") == "models/gemini-x"
    assert sanitizing.model_path("tunedModels/mine-1") == "tunedModels/mine-1"


def test_a_mode_of_thinking_without_a_name_is_left_to_the_model() -> None:
    mode = ThinkingConfig(mode=ThinkingConfig.MODE_OPAQUE)
    call = call_of(thinking=mode, dialect=ANTHROPIC)
    assert "thinkingConfig" not in body_of(call).get("generationConfig", {})
    assert dropped_of(call) == ["thinking"]


@pytest.mark.parametrize("kind", [OutputFormat.KIND_JSON_OBJECT, OutputFormat.KIND_JSON_SCHEMA])
def test_older_models_take_no_format_beside_tools(kind: OutputFormat.Kind.ValueType) -> None:
    form = OutputFormat(kind=kind, schema=b'{"type":"object"}')
    older = call_of(tools=[tool()], output_format=form, model="gemini-2.5-flash")
    assert refusal_of(older) == ("UNSUPPORTED", "response_format")
    newer = call_of(tools=[tool()], output_format=form, model="gemini-3-pro")
    assert body_of(newer)["generationConfig"]["responseMimeType"] == "application/json"
