import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult
from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.sandbox import anthropic_wire, gemini_wire
from services.sandbox.model import openai_shapes, requests
from services.sandbox.model.answers import written
from services.sandbox.model.behaviours import answer, cut_at_stop
from services.sandbox.model.models import (
    MAX_OUTPUT_TOKENS,
    SandboxError,
    TooLongError,
    find_model,
)
from services.sandbox.model.requests import tokens
from services.sandbox.model.schema_budget import MAX_CHARACTERS
from tests.grid import each_row

ECHO = find_model("echo")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="get_weather", input_schema=orjson.dumps(CITY))
CLOCK = Tool(name="clock", input_schema=b"{}")
THINKING = {"thinking": ThinkingConfig(mode=ThinkingConfig.MODE_ENABLED)}
IMAGE = conversation_pb2.MEDIA_KIND_IMAGE


def message(role, *blocks):
    blocks = [Block(text=block) if isinstance(block, str) else block for block in blocks]
    return Message(role=role, blocks=blocks)


def system(*blocks):
    return message(conversation_pb2.ROLE_SYSTEM, *blocks)


def user(*blocks):
    return message(conversation_pb2.ROLE_USER, *blocks)


def assistant(*blocks):
    return message(conversation_pb2.ROLE_ASSISTANT, *blocks)


def media(**fields):
    return Block(media=Media(**fields))


def request(*messages, **fields):
    messages = [user(one) if isinstance(one, str) else one for one in messages]
    return GenerateRequest(messages=messages, **fields)


def ask(*messages, model=ECHO, **fields):
    return answer(request(*messages, **fields), model)


def text_of(answered):
    return "".join(block.text for block in answered.choices[0].blocks)


def calls(answered):
    blocks = answered.choices[0].blocks
    return [
        (block.tool_use.name, block.tool_use.input)
        for block in blocks
        if block.HasField("tool_use")
    ]


def call_ids(answered):
    blocks = answered.choices[0].blocks
    return [block.tool_use.id for block in blocks if block.HasField("tool_use")]


def finish(answered):
    reason = answered.choices[0].finish.reason
    name = conversation_pb2.FinishReason.Name(reason)
    return name.removeprefix("FINISH_REASON_")


def as_schema(schema):
    form = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=orjson.dumps(schema))
    return {"output_format": form}


def test_echo_says_that_it_is_a_sandbox_and_what_it_was_sent():
    answered = ask(system("be brief"), "hi")
    assert text_of(answered) == 'Sandbox echo: you said "hi". The system prompt is "be brief".'
    assert finish(answered) == "END_TURN"


def test_only_what_waits_for_an_answer_is_echoed():
    assert text_of(ask("old", assistant("reply"), "new", "newer")) == (
        'Sandbox echo: you said "new\nnewer".'
    )


def test_long_texts_are_not_echoed_whole():
    assert len(text_of(ask("x" * 100_000))) < 5_000


@given(st.text(max_size=200))
def test_tokens_joined_are_the_text(text):
    assert "".join(tokens(text)) == text


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=3), max_size=3))
def test_the_same_prompt_gets_the_same_answer(text, stops):
    assert ask(text, stop_sequences=stops) == ask(text, stop_sequences=stops)


def test_a_named_tool_is_called_with_input_from_its_schema():
    answered = ask("please get weather", tools=(CLOCK, WEATHER))
    assert calls(answered) == [("get_weather", '{"city":"please get weather"}')]
    assert text_of(answered) == "Sandbox echo: I call get_weather."
    assert finish(answered) == "TOOL_USE"


def test_the_word_tool_calls_the_first():
    assert [name for name, _ in calls(ask("use the tool", tools=(CLOCK, WEATHER)))] == ["clock"]


def test_tools_stay_unchanged_where_nothing_mentions_them():
    assert calls(ask("hi, stool", tools=(WEATHER,))) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("clock and get_weather", ["get_weather", "clock"]),
        ("in parallel", ["get_weather", "clock"]),
        ("clock, parallel", ["clock", "clock"]),
    ],
)
def test_parallel_calls(text, names):
    answered = ask(text, tools=(WEATHER, CLOCK))
    assert [name for name, _ in calls(answered)] == names
    assert len(set(call_ids(answered))) == 2
    choice = ToolChoice(disable_parallel_tool_use=True)
    alone = ask(text, tools=(WEATHER, CLOCK), tool_choice=choice)
    assert len(calls(alone)) == 1


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (ToolChoice(mode=ToolChoice.MODE_ANY), ["get_weather"]),
        (ToolChoice(mode=ToolChoice.MODE_TOOL, name="clock"), ["clock"]),
        (ToolChoice(mode=ToolChoice.MODE_NONE), []),
    ],
)
def test_a_tool_choice_decides(choice, names):
    answered = ask("hi", tools=(WEATHER, CLOCK), tool_choice=choice)
    assert [name for name, _ in calls(answered)] == names
    assert bool(text_of(answered)) == (not names)


def test_results_are_quoted_and_call_nothing_more():
    sunny = Block(tool_result=ToolResult(tool_use_id="a", blocks=[Block(text="sunny")]))
    broken = ToolResult(tool_use_id="b", blocks=[Block(text="broken")], is_error=True)
    results = user(sunny, Block(tool_result=broken))
    answered = ask("use the tool", assistant(), results, tools=(CLOCK,))
    assert text_of(answered) == (
        'Sandbox echo: The tool answered "sunny". The tool failed with "broken".'
    )
    with_words = user("another tool?", sunny)
    answered = ask("use the tool", assistant(), with_words, tools=(CLOCK,))
    assert calls(answered) == []
    assert text_of(answered) == (
        'Sandbox echo: you said "another tool?". The tool answered "sunny".'
    )


def test_calls_of_later_turns_have_other_ids():
    first = ask("use the tool", tools=(CLOCK,))
    later = ask("hi", assistant("x"), "use the tool", tools=(CLOCK,))
    assert call_ids(first) != call_ids(later)


def test_thinking_comes_first_and_can_be_hidden():
    blocks = ask("hi", **THINKING).choices[0].blocks
    assert [block.WhichOneof("kind") for block in blocks] == ["thinking", "text"]
    hidden = ask("sandbox: redact", **THINKING).choices[0].blocks[0]
    assert "The sandbox thinks" not in hidden.redacted_thinking
    assert written(hidden).startswith("The sandbox thinks")


def test_the_stop_string_that_is_complete_first_ends_the_answer():
    answered = ask("one two", stop_sequences=["two", "you said", "said"])
    assert text_of(answered) == "Sandbox echo: "
    assert finish(answered) == "STOP_SEQUENCE"
    assert answered.choices[0].finish.stop_sequence == "you said"


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=4), max_size=4))
def test_a_stop_string_is_found_as_one_reading_on_would(text, stops):
    expected = (text, "")
    for end in range(len(text) + 1):
        if ended_stops := [stop for stop in stops if text[:end].endswith(stop)]:
            expected = (text[: end - len(ended_stops[0])], ended_stops[0])
            break
    kept, stop = cut_at_stop(text, stops)
    assert (len(kept) + len(stop), bool(stop)) == (sum(map(len, expected)), bool(expected[1]))


def test_a_prefill_is_continued_and_not_repeated():
    assert text_of(ask("hi", assistant("Sandbox echo: you"))) == ' said "hi".'
    assert text_of(ask("hi", assistant("Well,"))) == ' Sandbox echo: you said "hi".'
    assert text_of(ask("hi", assistant("Well, "))) == 'Sandbox echo: you said "hi".'


def test_all_that_was_sent_can_be_recited_on_demand():
    messages = system("Be brief."), user("Hi", "sandbox: recite")
    assert text_of(ask(*messages)) == "[system]\nBe brief.\n\n[user]\nHi\n\n[user]\nsandbox: recite"


def test_a_prefill_can_be_repeated_on_demand():
    assert text_of(ask("sandbox: repeat", assistant("Well,"))).startswith("Well, Sandbox")


@each_row("limit", [0, 1, 3, 10, 1000])
@each_row("thinking", [True, False])
def test_max_tokens_bounds_all_that_is_written(limit, thinking):
    fields = THINKING if thinking else {}
    whole = ask("one two three", **fields)
    answered = ask("one two three", max_tokens=limit, **fields)
    assert answered.usage.output_tokens == min(limit, whole.usage.output_tokens)
    cut = limit < whole.usage.output_tokens
    assert finish(answered) == ("MAX_TOKENS" if cut else "END_TURN")
    assert text_of(whole).startswith(text_of(answered))


def test_a_call_that_does_not_fit_is_not_made():
    answered = ask("use the tool", tools=(WEATHER,), max_tokens=7)
    assert calls(answered) == []
    assert finish(answered) == "MAX_TOKENS"


def test_a_schema_is_filled():
    assert json.loads(text_of(ask("Rome", **as_schema(CITY)))) == {"city": "Rome"}
    form = OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT)
    assert json.loads(text_of(ask("Rome", output_format=form))) == {
        "sandbox": "echo",
        "said": "Rome",
    }


def test_a_schema_that_cannot_be_filled_is_refused():
    with pytest.raises(SandboxError, match="cannot fill the schema") as raised:
        ask("hi", **as_schema({"$ref": "#"}))
    assert raised.value.status == 400


def test_choices_and_calls_share_the_work_on_schemas():
    thousand = {"type": "array", "minItems": 1_000, "items": {"type": "integer"}}
    answered = ask("hi", n=50, **as_schema(thousand))
    assert {choice.blocks[0].text for choice in answered.choices} == {f"[{'0,' * 999}0]"}
    long = {"type": "string", "minLength": MAX_CHARACTERS // 2 - 100}
    ask("hi", **as_schema(long))
    with pytest.raises(SandboxError, match="too long"):
        ask("hi", n=3, **as_schema(long))
    tools = [Tool(name=f"t{n}", input_schema=orjson.dumps(thousand)) for n in range(20)]
    with pytest.raises(SandboxError, match="too large"):
        ask(" ".join(tool.name for tool in tools), tools=tools)


def test_choices_share_the_longest_answer():
    answered = ask("sandbox: recite " + "a " * MAX_OUTPUT_TOKENS, n=64)
    assert answered.usage.output_tokens == MAX_OUTPUT_TOKENS
    assert finish(answered) == "MAX_TOKENS"


def test_a_choice_makes_at_most_a_hundred_calls():
    tools = [Tool(name=f"t{n}") for n in range(1_000)]
    assert len(calls(ask(" ".join(tool.name for tool in tools), tools=tools))) == 100


def test_a_refusal():
    answered = ask("sandbox: refuse, please")
    assert finish(answered) == "REFUSAL"
    assert [block.WhichOneof("kind") for block in answered.choices[0].blocks] == ["refusal"]


def test_several_choices_differ():
    answered = ask("hi", n=3)
    texts = [choice.blocks[0].text for choice in answered.choices]
    assert len(set(texts)) == 3
    assert answered.usage.output_tokens == sum(len(tokens(text)) for text in texts)


def test_the_cache_gives_or_takes_half():
    def usage(text, mark):
        used = ask(user(Block(text=text, cache_control=mark))).usage
        cached = used.cache_creation_input_tokens, used.cache_read_input_tokens
        return (used.input_tokens, *cached)

    assert usage("x" * 400, b"") == (100, 0, 0)
    assert usage("x" * 400, b"{}") == (50, 50, 0)
    assert usage("sandbox: cached" + "x" * 385, b"{}") == (50, 0, 50)


def test_input_is_counted_alike_however_it_is_cut():
    whole = request("abcdefgh")
    parts = request("abc", user("de", "fgh"))
    assert requests.input_tokens(whole) == requests.input_tokens(parts) == 2


def test_text_refuses_media_and_vision_reads_images_alone():
    image = media(kind=IMAGE, mime_type="image/png", data=b"?")
    kind = conversation_pb2.MEDIA_KIND_AUDIO
    recording = media(kind=kind, mime_type="audio/wav", data=b"?")
    with pytest.raises(SandboxError, match="text does not read images"):
        ask(user("see", image), model=find_model("text"))
    with pytest.raises(SandboxError, match="vision does not read audio"):
        ask(user("hear", recording), model=find_model("vision"))


def test_media_are_named_by_format_and_size():
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02"
    document = conversation_pb2.MEDIA_KIND_DOCUMENT
    blocks = (
        media(kind=IMAGE, mime_type="image/png", data=png),
        media(kind=IMAGE, url="https://example.com/a.png"),
        media(kind=document, mime_type="application/pdf", data=b"%PDF", name="a.pdf"),
    )
    assert text_of(ask(user("see", *blocks))) == (
        'Sandbox echo: you said "see". Medium 1 is an image, PNG of 3x2 pixels, 24 bytes. '
        'Medium 2 is an image, at "https://example.com/a.png". '
        'Medium 3 is a document, named "a.pdf", application/pdf, 4 bytes.'
    )


@pytest.mark.parametrize(
    ("name", "kind", "status", "waits"),
    [
        ("fail-429", "rate_limit", 429, 1),
        ("fail-500", "server", 500, None),
        ("fail-529", "overloaded", 529, 1),
        ("fail-context", "context_length", 400, None),
    ],
)
def test_a_failing_model_fails(name, kind, status, waits):
    with pytest.raises(SandboxError) as raised:
        ask("hi", model=find_model(name))
    failure = raised.value
    assert (failure.kind, failure.status, failure.retry_after_s) == (kind, status, waits)


def test_a_prompt_that_is_too_long_is_refused_in_three_ways():
    small = find_model("small")
    assert text_of(ask("word " * 30_000, model=small)).startswith("Sandbox small: you said")
    with pytest.raises(TooLongError) as raised:
        ask("word " * 50_000, model=small)
    error = raised.value
    assert error.size > error.most == small.context_window
    error_object = openai_shapes.error_body(error)["error"]
    words = f"This model's maximum context length is {error.most} tokens. However, your messages"
    assert (error_object["code"], error_object["message"].startswith(words)) == (
        "context_length_exceeded",
        True,
    )
    words = f"prompt is too long: {error.size} tokens > {error.most} maximum"
    assert anthropic_wire.error_body(error, "r")["error"]["message"] == words
    words = f"The input token count ({error.size}) exceeds the maximum number of tokens allowed "
    assert gemini_wire.error_body(error)["error"]["message"] == f"{words}({error.most})."


def test_more_tokens_than_a_model_writes_are_refused():
    with pytest.raises(SandboxError) as raised:
        ask("hi", max_tokens=MAX_OUTPUT_TOKENS + 1)
    assert raised.value.path == ("max_tokens",)


def test_an_unknown_model_is_not_found():
    with pytest.raises(SandboxError) as raised:
        find_model("gpt-4o")
    assert raised.value.status == 404
    assert find_model("sandbox/echo") is ECHO
