"""Requests that the upstream refuses: by the SDKs' types, and by rules that types don't express."""

from services.sandbox.model.signatures import redact, sign
from tests.grid import each_row
from tests.upstream import anthropic_rules, openai_rules
from tests.upstream.checks import load_checks

HI = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
TOOL = {"name": "weather", "input_schema": SCHEMA}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
USE = {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}
USING = {"role": "assistant", "content": [USE]}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
TEXT = {"type": "text", "text": "and?"}
EPHEMERAL = {"type": "ephemeral"}


def chat(*messages, **fields):
    return {"model": "echo", "messages": list(messages) or [HI], **fields}


def messages(*spoken, **fields):
    return {"model": "echo", "max_tokens": 9, "messages": list(spoken) or [HI], **fields}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def find_chat_problem(body):
    return load_checks().chat(body) or openai_rules.find_problem(body)


def find_messages_problem(body):
    return load_checks().messages(body) or anthropic_rules.find_problem(body)


@each_row(
    "body",
    [
        chat(),
        chat(stream=True, stream_options={"include_usage": True}, stop=["a", "b"], seed=1),
        chat(tools=[CHAT_TOOL], tool_choice="required", parallel_tool_calls=False),
        chat(HI, CALLING, {"role": "tool", "tool_call_id": "c1", "content": "sunny"}),
        chat(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}),
        chat({"role": "developer", "content": [{"type": "text", "text": "brief"}]}, HI),
        chat(user({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}})),
        chat(temperature=2, top_p=1, n=2, logprobs=True, top_logprobs=3, max_tokens=1),
        chat({"role": "user", "content": "as JSON"}, response_format={"type": "json_object"}),
    ],
)
def test_a_chat_request_that_openai_takes_is_taken(body):
    assert find_chat_problem(body) is None


@each_row(
    ("body", "path"),
    [
        (chat(bogus=1), ("bogus",)),
        ({"messages": [HI]}, ("model",)),
        (chat(temperature="1"), ("temperature",)),
        (chat(temperature=True), ("temperature",)),
        (chat(stream="yes"), ("stream",)),
        (chat(stop=[1]), ("stop", 0)),
        (chat({"role": "user"}), ("messages", 0, "content")),
        (chat({"role": "robot", "content": "hi"}), ("messages", 0)),
        (chat({**HI, "reasoning_content": "x"}), ("messages", 0, "reasoning_content")),
        (chat(user({"type": "text", "txt": "hi"})), ("messages", 0, "content", 0, "text")),
        (chat(user({"type": "tex", "text": "hi"})), ("messages", 0, "content", 0)),
        (
            chat(HI, {**CALLING, "tool_calls": [{**CALL, "function": {"name": "x"}}]}),
            ("messages", 1, "tool_calls", 0, "function", "arguments"),
        ),
        (
            chat(response_format={"type": "json_schema", "json_schema": {"schema": {}}}),
            ("response_format", "json_schema", "name"),
        ),
        (chat(stream=True, stream_options={"usage": True}), ("stream_options", "usage")),
        ({"model": "echo", "messages": []}, ("messages",)),
        (chat(temperature=2.1), ("temperature",)),
        (chat(n=0), ("n",)),
        (chat(max_tokens=0), ("max_tokens",)),
        (chat(max_tokens=5, max_completion_tokens=5), ("max_tokens",)),
        (chat(stop=list("abcde")), ("stop",)),
        (chat(stream_options={"include_usage": True}), ("stream_options",)),
        (chat(top_logprobs=2), ("top_logprobs",)),
        (chat(tools=[]), ("tools",)),
        (chat(tool_choice="required"), ("tool_choice",)),
        (chat(parallel_tool_calls=True), ("parallel_tool_calls",)),
        (
            chat(tools=[{"type": "function", "function": {"name": "a b"}}]),
            ("tools", 0, "function", "name"),
        ),
        (
            chat(
                tools=[CHAT_TOOL],
                tool_choice={"type": "function", "function": {"name": "other"}},
            ),
            ("tool_choice",),
        ),
        (chat(HI, CALLING, HI), ("messages", 1)),
        (chat(HI, CALLING), ("messages", 1)),
        (
            chat(HI, {"role": "tool", "tool_call_id": "c1", "content": "x"}),
            ("messages", 1, "tool_call_id"),
        ),
        (
            chat(HI, CALLING, {"role": "tool", "tool_call_id": "c2", "content": "x"}),
            ("messages", 2, "tool_call_id"),
        ),
        (chat(HI, {"role": "assistant", "content": ""}), ("messages", 1, "content")),
        (chat(HI, {**CALLING, "tool_calls": []}), ("messages", 1, "tool_calls")),
        (
            chat(user({"type": "image_url", "image_url": {"url": "file-1"}})),
            ("messages", 0, "content", 0, "image_url", "url"),
        ),
        (chat(response_format={"type": "json_object"}), ("messages",)),
    ],
)
def test_what_openai_refuses_in_a_chat_is_refused_by_its_field(body, path):
    assert find_chat_problem(body).path == path


@each_row(
    "body",
    [
        messages(),
        messages(stream=True, temperature=1, top_p=0.5, top_k=3, stop_sequences=["a"]),
        messages(HI, HI, {"role": "assistant", "content": "Well,"}),
        messages({"role": "assistant", "content": "Well?"}, HI),
        messages(HI, USING, user(RESULT, TEXT), tools=[TOOL]),
        messages(HI, USING, user(RESULT), user(TEXT), tools=[TOOL]),
        messages({"role": "system", "content": "x"}, HI, USING,
                 {"role": "system", "content": "x"}, user(RESULT)),
        messages(HI, USING, {"role": "assistant", "content": [{**USE, "id": "t2"}]}, user(
            {**RESULT, "tool_use_id": "t2"}, RESULT)),
        messages(tools=[TOOL], tool_choice={"type": "tool", "name": "weather"}),
        messages(system=[{"type": "text", "text": "x", "cache_control": EPHEMERAL}]),
        messages(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=1025),
        messages(HI, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": sign("hm")},
            {"type": "redacted_thinking", "data": redact("hm")},
            TEXT,
        ]}, HI),
        messages(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
        messages(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    ],
)  # fmt: skip
def test_a_request_that_anthropic_takes_is_taken(body):
    assert find_messages_problem(body) is None


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


@each_row(
    ("body", "path"),
    [
        (messages(bogus=1), ("bogus",)),
        (chat(), ("max_tokens",)),
        (messages(temperature="hot"), ("temperature",)),
        (messages(max_tokens="9"), ("max_tokens",)),
        (messages(user({"type": "text"})), ("messages", 0, "content", 0, "text")),
        (messages(user({"type": "tex"})), ("messages", 0, "content", 0)),
        (messages(user({**TEXT, "x": 1})), ("messages", 0, "content", 0, "x")),
        (
            messages(user({**TEXT, "cache_control": {"type": "eternal"}})),
            ("messages", 0, "content", 0, "cache_control", "type"),
        ),
        (
            messages(HI, USING, user({**RESULT, "content": [{"type": "text"}]})),
            ("messages", 2, "content", 0, "content", 0, "text"),
        ),
        (messages(tools=[{"name": "weather"}]), ("tools", 0, "input_schema")),
        (messages(tools=[CHAT_TOOL]), ("tools", 0)),
        (messages(thinking={"type": "enabled"}), ("thinking", "budget_tokens")),
        ({"model": "echo", "max_tokens": 9, "messages": []}, ("messages",)),
        (messages(max_tokens=-1), ("max_tokens",)),
        (messages(temperature=1.1), ("temperature",)),
        (messages(top_p=2), ("top_p",)),
        (messages(stop_sequences=[" "]), ("stop_sequences", 0)),
        (messages(tools=[TOOL, TOOL]), ("tools", 1, "name")),
        (messages(tools=[{**TOOL, "name": "a b"}]), ("tools", 0, "name")),
        (messages(tools=[{**TOOL, "input_schema": {}}]), ("tools", 0, "input_schema", "type")),
        (messages(tool_choice={"type": "any"}), ("tool_choice",)),
        (
            messages(tools=[TOOL], tool_choice={"type": "tool", "name": "x"}),
            ("tool_choice", "name"),
        ),
        (messages({"role": "user", "content": ""}), ("messages", 0, "content", "text")),
        (messages(user({"type": "text", "text": ""})), ("messages", 0, "content", 0, "text")),
        (messages(system=[{"type": "text", "text": " "}]), ("system", 0, "text")),
        (messages(HI, USING), ("messages", 1, "content", 0)),
        (messages(HI, USING, HI), ("messages", 1, "content", 0)),
        (messages(HI, USING, user(TEXT, RESULT)), ("messages", 1, "content", 0)),
        (messages(HI, user(RESULT)), ("messages", 1, "content", 0, "tool_use_id")),
        (messages(HI, USING, user(RESULT, RESULT)), ("messages", 2, "content", 1, "tool_use_id")),
        (
            messages(HI, {"role": "assistant", "content": "Well, "}),
            ("messages", 1, "content"),
        ),
        (messages(HI, assistant({**TEXT, "text": "a\n"})), ("messages", 1, "content", 0)),
        (
            messages(HI, assistant({"type": "thinking", "thinking": "a", "signature": sign("b")})),
            ("messages", 1, "content", 0, "signature"),
        ),
        (
            messages(HI, assistant({"type": "redacted_thinking", "data": "b3RoZXI="})),
            ("messages", 1, "content", 0, "data"),
        ),
        (
            messages(thinking={"type": "enabled", "budget_tokens": 1023}, max_tokens=2000),
            ("thinking", "budget_tokens"),
        ),
        (
            messages(thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=2000),
            ("max_tokens",),
        ),
        (
            messages(
                thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000, temperature=0
            ),
            ("temperature",),
        ),
        (
            messages(
                thinking={"type": "enabled", "budget_tokens": 1024},
                max_tokens=2000,
                tools=[TOOL],
                tool_choice={"type": "any"},
            ),
            ("tool_choice",),
        ),
        (
            messages(*[user({**TEXT, "cache_control": EPHEMERAL})] * 5),
            ("cache_control",),
        ),
    ],
)
def test_what_anthropic_refuses_is_refused_by_its_field(body, path):
    assert find_messages_problem(body).path == path


def test_a_budget_between_tools_may_exceed_max_tokens():
    body = messages(max_tokens=2_000, thinking={"type": "enabled", "budget_tokens": 4_000})
    problem = anthropic_rules.find_problem(body, ["other"])
    assert problem is not None
    assert problem.path == ("max_tokens",)
    assert anthropic_rules.find_problem(body, ["interleaved-thinking-2025-05-14"]) is None


def test_a_count_needs_no_max_tokens():
    body = chat()
    assert load_checks().count_tokens(body) is None
    assert anthropic_rules.find_problem(body) is None
