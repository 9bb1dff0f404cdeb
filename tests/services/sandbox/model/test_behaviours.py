import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.sandbox import anthropic_wire, gemini_wire
from services.sandbox.model import openai_shapes
from services.sandbox.model.behaviours import answer, cut_at_stop
from services.sandbox.model.models import (
    MAX_OUTPUT_TOKENS,
    SandboxError,
    TooLongError,
    find_model,
)
from services.sandbox.model.requests import (
    Call,
    Finish,
    Medium,
    Prompt,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    Turn,
    tokens,
)

ECHO = find_model("echo")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER, CLOCK = Tool("get_weather", CITY), Tool("clock", {})


def user(text, **fields):
    return Turn("user", (text,), **fields)


def ask(*turns, model=ECHO, **fields):
    turns = tuple(user(turn) if isinstance(turn, str) else turn for turn in turns)
    return answer(Prompt(turns, **fields), model)


def said(answered):
    return "".join(piece.text for piece in answered.replies[0].pieces if isinstance(piece, Text))


def calls(answered):
    pieces = answered.replies[0].pieces
    return [(piece.name, piece.input) for piece in pieces if isinstance(piece, Call)]


def test_echo_says_that_it_is_a_sandbox_and_what_it_was_sent():
    answered = ask(Turn("system", ("be brief",)), "hi")
    assert said(answered) == 'Sandbox echo: you said "hi". The system prompt is "be brief".'
    assert answered.replies[0].finish is Finish.END_TURN


def test_only_what_waits_for_an_answer_is_echoed():
    assert said(ask("old", Turn("assistant", ("reply",)), "new", "newer")) == (
        'Sandbox echo: you said "new\nnewer".'
    )


def test_long_texts_are_not_echoed_whole():
    assert len(said(ask("x" * 100_000))) < 5_000


@given(st.text(max_size=200))
def test_tokens_joined_are_the_text(text):
    assert "".join(tokens(text)) == text


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=3), max_size=3))
def test_the_same_prompt_gets_the_same_answer(text, stops):
    assert ask(text, stop=tuple(stops)) == ask(text, stop=tuple(stops))


def test_a_named_tool_is_called_with_input_from_its_schema():
    answered = ask("please get weather", tools=(CLOCK, WEATHER))
    assert calls(answered) == [("get_weather", '{"city":"please get weather"}')]
    assert said(answered) == "Sandbox echo: I call get_weather."
    assert answered.replies[0].finish is Finish.TOOL_USE


def test_the_word_tool_calls_the_first():
    assert [name for name, _ in calls(ask("use the tool", tools=(CLOCK, WEATHER)))] == ["clock"]


def test_tools_are_left_alone_where_nothing_speaks_of_them():
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
    keys = [piece.key for piece in answered.replies[0].pieces if isinstance(piece, Call)]
    assert len(set(keys)) == 2
    alone = ask(text, tools=(WEATHER, CLOCK), tool_choice=ToolChoice(parallel=False))
    assert len(calls(alone)) == 1


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (ToolChoice("any"), ["get_weather"]),
        (ToolChoice("tool", "clock"), ["clock"]),
        (ToolChoice("none"), []),
    ],
)
def test_a_tool_choice_decides(choice, names):
    answered = ask("hi", tools=(WEATHER, CLOCK), tool_choice=choice)
    assert [name for name, _ in calls(answered)] == names
    assert bool(said(answered)) == (not names)


def test_results_are_quoted_and_call_nothing_more():
    results = (ToolResult("a", "sunny"), ToolResult("b", "broken", is_error=True))
    answered = ask("use the tool", Turn("assistant"), Turn("user", results=results), tools=(CLOCK,))
    assert said(answered) == (
        'Sandbox echo: The tool answered "sunny". The tool failed with "broken".'
    )
    with_words = Turn("user", ("another tool?",), results=results[:1])
    answered = ask("use the tool", Turn("assistant"), with_words, tools=(CLOCK,))
    assert calls(answered) == []
    assert said(answered) == ('Sandbox echo: you said "another tool?". The tool answered "sunny".')


def test_calls_of_later_turns_have_other_ids():
    first = ask("use the tool", tools=(CLOCK,))
    later = ask("hi", Turn("assistant", ("x",)), "use the tool", tools=(CLOCK,))
    assert first.replies[0].pieces[1].key != later.replies[0].pieces[1].key


def test_thinking_comes_first_and_can_be_hidden():
    pieces = ask("hi", thinking=True).replies[0].pieces
    assert [type(piece) for piece in pieces] == [Thinking, Text]
    assert not pieces[0].redacted
    assert ask("sandbox: redact", thinking=True).replies[0].pieces[0].redacted


def test_the_stop_string_that_is_complete_first_ends_the_answer():
    answered = ask("one two", stop=("two", "you said", "said"))
    assert said(answered) == "Sandbox echo: "
    assert answered.replies[0].finish is Finish.STOP_SEQUENCE
    assert answered.replies[0].stop_sequence == "you said"


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=4), max_size=4))
def test_a_stop_string_is_found_as_one_reading_on_would(text, stops):
    expected = (text, "")
    for end in range(len(text) + 1):
        if found := [stop for stop in stops if text[:end].endswith(stop)]:
            expected = (text[: end - len(found[0])], found[0])
            break
    kept, stop = cut_at_stop(text, tuple(stops))
    assert (len(kept) + len(stop), bool(stop)) == (sum(map(len, expected)), bool(expected[1]))


def test_a_prefill_is_continued_and_not_repeated():
    assert said(ask("hi", Turn("assistant", ("Sandbox echo: you",)))) == ' said "hi".'
    assert said(ask("hi", Turn("assistant", ("Well,",)))) == ' Sandbox echo: you said "hi".'
    assert said(ask("hi", Turn("assistant", ("Well, ",)))) == 'Sandbox echo: you said "hi".'


def test_all_that_was_sent_can_be_recited_on_demand():
    turns = Turn("system", ("Be brief.",)), Turn("user", ("Hi", "sandbox: recite"))
    assert said(ask(*turns)) == "[system]\nBe brief.\n\n[user]\nHi\n\n[user]\nsandbox: recite"


def test_a_prefill_can_be_repeated_on_demand():
    assert said(ask("sandbox: repeat", Turn("assistant", ("Well,",)))).startswith("Well, Sandbox")


@pytest.mark.parametrize("limit", [0, 1, 3, 10, 1000])
@pytest.mark.parametrize("thinking", [True, False])
def test_max_tokens_bounds_all_that_is_written(limit, thinking):
    whole = ask("one two three", thinking=thinking)
    answered = ask("one two three", thinking=thinking, max_tokens=limit)
    assert answered.usage.output == min(limit, whole.usage.output)
    cut = limit < whole.usage.output
    assert answered.replies[0].finish is (Finish.MAX_TOKENS if cut else Finish.END_TURN)
    assert said(whole).startswith(said(answered))


def test_a_call_that_does_not_fit_is_not_made():
    answered = ask("use the tool", tools=(WEATHER,), max_tokens=7)
    assert calls(answered) == []
    assert answered.replies[0].finish is Finish.MAX_TOKENS


def test_a_schema_is_filled():
    assert json.loads(said(ask("Rome", schema=CITY))) == {"city": "Rome"}
    assert json.loads(said(ask("Rome", json_object=True))) == {"sandbox": "echo", "said": "Rome"}


def test_a_schema_that_cannot_be_filled_is_refused():
    with pytest.raises(SandboxError, match="cannot fill the schema") as raised:
        ask("hi", schema={"$ref": "#"})
    assert raised.value.status == 400


def test_a_refusal():
    answered = ask("sandbox: refuse, please")
    assert answered.replies[0].finish is Finish.REFUSAL
    assert [piece.refusal for piece in answered.replies[0].pieces] == [True]


def test_several_choices_differ():
    answered = ask("hi", n=3)
    texts = [reply.pieces[0].text for reply in answered.replies]
    assert len(set(texts)) == 3
    assert answered.usage.output == sum(len(tokens(text)) for text in texts)


def test_the_cache_gives_or_takes_half():
    plain, marked = ask("x" * 400).usage, ask("x" * 400, cache_marks=True).usage
    read = ask("sandbox: cached" + "x" * 385, cache_marks=True).usage
    assert (plain.input, plain.cache_creation, plain.cache_read) == (100, 0, 0)
    assert (marked.input, marked.cache_creation, marked.cache_read) == (50, 50, 0)
    assert (read.input, read.cache_creation, read.cache_read) == (50, 0, 50)


def test_input_is_counted_alike_however_it_is_cut():
    whole = Prompt((user("abcdefgh"),))
    parts = Prompt((user("abc"), Turn("user", ("de", "fgh"))))
    assert whole.input_tokens() == parts.input_tokens() == 2


def test_text_refuses_media_and_vision_reads_images_alone():
    image, recording = Medium("image", "image/png", b"?"), Medium("audio", "audio/wav", b"?")
    with pytest.raises(SandboxError, match="text does not read images"):
        ask(user("see", media=(image,)), model=find_model("text"))
    with pytest.raises(SandboxError, match="vision does not read audio"):
        ask(user("hear", media=(recording,)), model=find_model("vision"))


def test_media_are_named_by_format_and_size():
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02"
    media = (
        Medium("image", "image/png", png),
        Medium("image", reference="https://example.com/a.png"),
        Medium("document", "application/pdf", b"%PDF", name="a.pdf"),
    )
    assert said(ask(user("see", media=media))) == (
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


def test_more_tokens_than_a_model_reads_are_refused_in_each_provider_s_words():
    small = find_model("small")
    assert said(ask("word " * 30_000, model=small)).startswith("Sandbox small: you said")
    with pytest.raises(TooLongError) as raised:
        ask("word " * 50_000, model=small)
    error = raised.value
    assert error.size > error.most == small.context_window
    told = openai_shapes.error_body(error)["error"]
    words = f"This model's maximum context length is {error.most} tokens. However, your messages"
    assert (told["code"], told["message"].startswith(words)) == ("context_length_exceeded", True)
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
