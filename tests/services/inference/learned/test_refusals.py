"""Optional fields that models refuse: found in providers' own words."""

import json
from collections.abc import Iterable

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.inference.circuit_breaker import ModelKey
from services.inference.learned.refusals import OF_MESSAGES, Refusals, new_refusals
from tests.grid import each_row

# From the providers' public error texts.
TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.2 with this model. "
    "Only the default (1) value is supported."
)
MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)


def openai(message: str, param: str | None = None, code: str | None = None) -> str:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return json.dumps({"error": error})


def anthropic(message: str) -> str:
    error = {"type": "invalid_request_error", "message": message}
    return json.dumps({"type": "error", "error": error})


def fields(
    body: str,
    reason: errors_pb2.Reason.ValueType = errors_pb2.REASON_UPSTREAM_REJECTED,
    known: Iterable[str] = (),
) -> list[str]:
    return new_refusals(UpstreamError(reason, "refused", status=400, body=body), frozenset(known))


def field(
    body: str,
    reason: errors_pb2.Reason.ValueType = errors_pb2.REASON_UPSTREAM_REJECTED,
    known: Iterable[str] = (),
) -> str:
    return next(iter(fields(body, reason, known)), "")


@each_row(
    ("body", "name"),
    [
        (openai(TEMPERATURE, "temperature", "unsupported_value"), "temperature"),
        (openai(TEMPERATURE), "temperature"),
        (openai("invalid temperature: only 1 is allowed for this model"), "temperature"),
        (openai("invalid top_p: only 0.95 is allowed for this model"), "top_p"),
        (openai(MAX_TOKENS, "max_tokens", "unsupported_parameter"), "max_tokens"),
        (openai(MAX_TOKENS), "max_tokens"),
        (openai("Unrecognized request argument supplied: top_k"), "top_k"),
        (openai("Unknown parameter: 'reasoning.effort'.", "reasoning.effort"), "reasoning"),
        (openai("Unsupported parameter: 'reasoning_effort'", None), "reasoning_effort"),
        (anthropic("temperature: Extra inputs are not permitted"), "temperature"),
        (
            anthropic(
                "`temperature` and `top_p` cannot both be specified for this model. "
                "Please use only one."
            ),
            "top_p",
        ),
        (anthropic('"thinking.type.enabled" is not supported for this model.'), "thinking_budget"),
        (openai('"llama3.1:8b" does not support thinking'), "any_thinking"),
        (openai('think value "medium" is not supported for this model'), "any_thinking"),
        (
            openai("The `reasoning_content` in the thinking mode must be passed back to the API."),
            "calls_without_thoughts",
        ),
        (
            openai("Missing `reasoning_content` field in the assistant message at index 2."),
            "calls_without_thoughts",
        ),
        (
            openai("reasoning_content is missing in assistant tool call message at index 1"),
            "calls_without_thoughts",
        ),
        (
            openai(
                "Param Incorrect", "The reasoning_content in the thinking mode must be passed back"
            ),
            "calls_without_thoughts",
        ),
        (
            anthropic(
                "The `content[].thinking` in the thinking mode must be passed back to the API."
            ),
            "calls_without_thoughts",
        ),
        (
            openai("reasoning_content is required for assistant messages with tool_calls"),
            "calls_without_thoughts",
        ),
        (
            anthropic("Thinking may not be enabled when tool_choice forces tool use."),
            "thinking_with_forced_tool",
        ),
        (openai("Unknown parameter: 'prompt_cache_options'."), "prompt_cache_options"),
        (
            openai("Invalid 'messages[1].tool_calls[0].id': string too long. Expected …"),
            "long_ids",
        ),
        (openai("Invalid 'messages[2].tool_call_id': string too long."), "long_ids"),
        (
            json.dumps({"message": {"detail": [{"loc": ["body", "messages", 0, "user", "name"]}]}}),
            "messages.name",
        ),
        (json.dumps({"message": "Unexpected role 'user' after role 'tool'"}), "user_after_tool"),
        (
            openai("Tool call id was c1 but must be a-z, A-Z, 0-9, with a length of 9."),
            "long_ids",
        ),
        (
            openai("Function call is missing a thought_signature in functionCall parts."),
            "unsigned_calls",
        ),
        (
            openai('invalid reasoning value: \'max\' (must be "high", "low", or "none")'),
            "reasoning_effort",
        ),
        (
            json.dumps([{"error": {"message": "Function call is missing a thought_signature in"}}]),
            "unsigned_calls",
        ),
        (openai("the 3. content block is missing a `thought_signature`."), "unsigned_calls"),
        (
            json.dumps({"error": "property 'reasoning_content' is unsupported"}),
            "reasoning_content",
        ),
        (openai("Thinking level MINIMAL is not supported for this model."), "thinking"),
        (openai("Thinking is not enabled for models/gemini-2.0-flash"), "thinking"),
        (openai("thinking_level is not supported by this model"), "thinking"),
        ("user: unexpected keyword argument", "user"),
        (openai("Unknown parameter: 'response_format'", "response_format"), "response_format"),
        # What callers wrote stands beside the name, and is none itself.
        (
            json.dumps(
                {
                    "message": {
                        "detail": [
                            {
                                "loc": ["body", "foo"],
                                "msg": "Extra inputs are not permitted",
                                "input": "temperature",
                            },
                            {"loc": ["body", "logprobs"], "input": False},
                        ]
                    }
                }
            ),
            "foo",
        ),
        (
            openai(
                "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), "
                "'msg': 'Extra inputs are not permitted', 'input': 800}]"
            ),
            "max_completion_tokens",
        ),
        # OpenRouter quotes the provider behind it.
        (
            json.dumps(
                {
                    "error": {
                        "message": "Provider returned error",
                        "code": 400,
                        "metadata": {"raw": openai(TEMPERATURE)},
                    }
                }
            ),
            "temperature",
        ),
        (
            anthropic(
                "This model does not support assistant message prefill. "
                "The conversation must end with a user message."
            ),
            "prefill",
        ),
    ],
)
def test_the_field_is_found(body, name):
    assert field(body) == name


EXTRA = "Extra inputs are not permitted"
UNKNOWN = "unknown_parameter"
CALLS = "messages[].content[].x"
GROQ = "'messages.1' : for 'role:user' the following must be satisfied[('messages.1' : {})]"


def located(*place: str | int) -> str:
    return json.dumps({"detail": [{"loc": place, "msg": EXTRA, "input": {"a": None}}]})


@each_row(
    ("body", "name"),
    [
        (openai(f"Invalid 'messages[2].x_y': {EXTRA}", "messages[2].x_y"), "messages[].x_y"),
        (openai("Unknown parameter: 'messages[2].x'.", "messages[2].x"), "messages[].x"),
        (openai(GROQ.format("property 'status' is unsupported")), "messages[].status"),
        (openai(GROQ.format("property 'annotations' is unsupported")), "annotations"),
        (
            openai("Additional properties are not allowed ('id' was unexpected) - 'messages.0'"),
            "messages[].id",
        ),
        (openai(f"messages.1.assistant.x: {EXTRA}"), "messages[].x"),
        (
            json.dumps(
                {"detail": [{"loc": ["body", "messages", 1, "assistant", "x"], "msg": EXTRA}]}
            ),
            "messages[].x",
        ),
        (anthropic(f"messages.0.content.0.cache_control: {EXTRA}"), "cache_control"),
        (
            json.dumps(
                {
                    "detail": [
                        {
                            "loc": ["body", "messages", 0, "user", "content", 0, "cache_control"],
                            "msg": EXTRA,
                        }
                    ]
                }
            ),
            "cache_control",
        ),
        (anthropic(f"messages.65.content.1.tool_use.x: {EXTRA}"), "messages[].content[].x"),
        (
            anthropic(f"messages.2.content.0.tool_result.content.0.text.x: {EXTRA}"),
            "messages[].content[].x",
        ),
        (openai(f"Unknown parameter: 'messages[1].tool_calls[0].x': {EXTRA}"), CALLS),
        (openai("Not permitted.", "messages[1].tool_calls[0].function.x", UNKNOWN), CALLS),
        (
            openai("[('messages.1.tool_calls.0' : property 'x' is unsupported)]"),
            CALLS,
        ),
        (located("body", "messages", 1, "assistant", "tool_calls", 0, "x"), CALLS),
        (located("body", "messages", 1, "assistant", "tool_calls", 0, "function", "x"), CALLS),
        (located("body", "messages", 1, "tool_calls", 0, "extra_content"), "extra_content"),
        (openai(str({"loc": ("body", "messages", 1, "content", 0, "x"), "msg": EXTRA})), CALLS),
        (located("body", "messages", 2, "assistant", "tool_calls", 0, "name"), ""),
        (located("body", "messages", 0, "user", "content", 0, "image_url"), ""),
        (openai(f"messages.0.user.name: {EXTRA}"), ""),
        (openai("messages[1].audio is not supported", "messages[1].audio"), ""),
        (openai(f"messages[1].tool_calls[0].function: {EXTRA}"), ""),
    ],
)
def test_fields_of_messages_are_found_by_any_name(body, name):
    assert field(body) == name


NOT = "Invalid schema for function 'f': In context=('properties', 'a'),"


@each_row(
    ("words", "names"),
    [
        # Anthropic
        (f"tools.0.custom.strict: {EXTRA}", ["tools[].custom.strict"]),
        (f"tools.3.custom.defer_loading: {EXTRA}", ["tools[].custom.defer_loading"]),
        (f"tools.0.custom.name: {EXTRA}", []),
        (f"context_hint: {EXTRA}", ["context_hint"]),
        (f"output_config.task_budget: {EXTRA}", ["output_config.task_budget"]),
        (f"output_config.format: {EXTRA}", []),
        (f"thinking.adaptive.display: {EXTRA}", ["thinking.adaptive.display"]),
        (
            f"system.1.cache_control.ephemeral.scope: {EXTRA}",
            ["cache_control.ephemeral.scope"],
        ),
        (
            f"messages.0.content.2.text.cache_control.ephemeral.ttl: {EXTRA}",
            ["cache_control.ephemeral.ttl"],
        ),
        (f"tools.0.custom.cache_control: {EXTRA}", ["cache_control"]),
        (
            "Unexpected value(s) `a-2025-01-01`, `b-1` for the `anthropic-beta` header.",
            ["betas.a-2025-01-01", "betas.b-1"],
        ),
        ('Unexpected beta header "advisor-tool-2026-03-01"', ["betas.advisor-tool-2026-03-01"]),
        # Bedrock
        ("invalid beta flag", ["betas.*"]),
        ("#: extraneous key [top_k] is not permitted, please reformat", ["top_k"]),
        (
            "#/tools/0: extraneous key [strict] is not permitted#: subject must not be valid",
            ["tools[].strict"],
        ),
        ("The following errors: output_format: " + EXTRA, []),
        # OpenAI, Azure
        ("Unrecognized request arguments supplied: made_up, seed", ["made_up", "seed"]),
        ("Unknown parameter: 'tools[0].function.strict'.", ["tools[].function.strict"]),
        ("Unknown parameter: 'input[2].status'.", ["input[].status"]),
        ("Unknown parameter: 'input[2].content'.", []),
        (f"{NOT} 'minLength' is not permitted.", ["schema.minLength"]),
        (f"{NOT} 'required' is required to be supplied", ["tool.f"]),
        # NVIDIA
        ("Validation: Unsupported parameter(s): `prompt_cache_key`", ["prompt_cache_key"]),
        ("Validation: Unsupported parameter(s): reasoning_budget", ["reasoning_budget"]),
        (f"body -> made_up\n  {EXTRA} (type=extra_forbidden)\nbody -> seed\n  {EXTRA}", None),
        ("Failed to validate: Unknown parameter: function.strict", ["function.strict"]),
        # Fireworks, Rust, Go, Google, litellm, xAI
        (f"{EXTRA}, field: 'messages[1].x', value: None", ["messages[].x"]),
        (f"{EXTRA}, field: 'made_up', value: 1", ["made_up"]),
        ("tools[0].function: unknown field `strict`, expected", ["tools[].function.strict"]),
        ('json: unknown field "made_up"', ["made_up"]),
        ('Invalid JSON payload received. Unknown name "top_x": Cannot find field.', ["top_x"]),
        (
            "Unknown name \"topX\" at 'generation_config': Cannot find field.",
            ["generation_config.topX"],
        ),
        (
            'Unknown name "pattern" at \'tools[0].function_declarations[0].parameters'
            ".properties[0].value': Cannot find field.",
            ["schema.pattern"],
        ),
        ("m does not support parameters: ['made_up'], for model=m", ["made_up"]),
        ("Argument not supported on this model: reasoningEffort", ["reasoning_effort"]),
        ("Model grok-9 does not support parameter presencePenalty.", ["presence_penalty"]),
        # Cerebras
        ("messages.2: property 'messages.2.x' is unsupported", ["messages[].x"]),
        # What changes the meaning.
        (f"guided_json: {EXTRA}", []),
        (f"stop: {EXTRA}", []),
        (f"safety_settings: {EXTRA}", []),
        (f"tools.0.allowed_domains: {EXTRA}", []),
        (f"response_format.json_schema.schema.properties.a.pattern: {EXTRA}", []),
        # Lengths.
        (
            "Invalid 'tools[0].function.description': string too long. Expected a string with "
            "maximum length 1024, but got a string with length 1311 instead.",
            ["tools[].function.description<=1024"],
        ),
        ("tools.0.custom.description: String should have at most 1024 characters", None),
        ("Invalid 'tools[0].function.name': string too long. Expected a string with", []),
    ],
)
def test_every_server_has_its_own_words(words, names):
    assert names is None or fields(openai(words)) == names
    assert names is not None or fields(openai(words))


def test_all_fields_of_a_list_are_learnt_at_once():
    problems = [{"loc": ["body", name], "msg": EXTRA} for name in ("a", "temperature", "b")]
    wrong = {"loc": ["body", "seed"], "msg": "Input should be a valid integer"}
    body = json.dumps({"detail": [*problems, wrong]})
    assert fields(body) == ["a", "temperature", "b"]
    assert fields(body, known=["a"]) == ["temperature", "b"]


def test_words_of_the_caller_are_no_names_of_fields():
    problem = {"loc": ["body", "foo"], "msg": EXTRA, "input": "temperature, top_p"}
    assert fields(json.dumps({"detail": [problem]})) == ["foo"]


def test_what_is_known_to_be_refused_is_no_news():
    assert field(openai(TEMPERATURE), known=["temperature"]) == ""


def test_so_many_fields_of_messages_are_remembered():
    body = openai("Unknown parameter: 'messages[2].x'.")
    made_up = [f"{OF_MESSAGES}{number}" for number in range(40)]
    assert field(body, known=made_up[1:]) == "messages[].x"
    assert field(body, known=made_up) == ""
    assert field(openai(TEMPERATURE), known=made_up) == "temperature"


@each_row(
    "body",
    [
        openai("Invalid 'temperature': must be at most 2.", "temperature", "decimal_above_max"),
        anthropic("temperature: range: -1..1"),
        openai("Unsupported parameter: 'tools'", "tools", "unsupported_parameter"),
        anthropic("max_tokens: 64000 > 32000, which is the maximum allowed number"),
        openai("The model does not support images of this size"),
        openai("Image format is not supported"),
        openai("image/tiff is not supported"),
        "",
        "[1]",
        '{"error": 7}',
    ],
)
def test_other_refusals_are_for_the_caller(body):
    assert field(body) == ""


def test_only_refusals_of_the_request_count():
    body = openai(TEMPERATURE, "temperature", "unsupported_value")
    assert field(body, errors_pb2.REASON_UPSTREAM_ERROR) == ""


def test_so_many_models_are_remembered():
    refusals = Refusals()
    for number in range(1_001):
        refusals.add(ModelKey("p", str(number)), "top_p")
    refusals.add(ModelKey("p", "1000"), "seed")
    assert refusals.of(ModelKey("p", "0")) == frozenset()
    assert refusals.of(ModelKey("p", "1000")) == {"top_p", "seed"}


@each_row(
    ("words", "name"),
    [
        # OpenAI, Ollama, DeepSeek, llama.cpp, vLLM, OpenRouter, as their users report them.
        ("Invalid content type. image_url is only supported by certain models.", "media.image"),
        ("this model does not support image input (ref: b8bd630e)", "media.image"),
        ("messages[137]: unknown variant `image_url`, expected `text`", "media.image"),
        ("image input is not supported - hint: you may need to provide the mmproj", "media.image"),
        ('Failed to parse messages: Unsupported content part type: "image_url"', "media.image"),
        ("At most 0 image(s) may be provided in one request.", "media.image"),
        ("m is not a multimodal model", "media.image"),
        ("No endpoints found that support image input", "media.image"),
        ("The model text does not read images (sandbox).", "media.image"),
        ("messages[0]: unknown variant `file`, expected `text`", "media.document"),
        ("Unknown part type: file", "media.document"),
        ("Input tag 'file' found using 'type' does not match any of", "media.document"),
        ('Unsupported content part type: "file"', "media.document"),
        ("The model text does not read documents", "media.document"),
        ("audio input is not supported", "media.audio"),
        ('Unsupported content part type: "input_audio"', "media.audio"),
    ],
)
def test_a_medium_that_a_model_does_not_read_is_learnt(words, name):
    assert field(openai(words)) == name
    assert field(openai(words), known=[name]) == ""
