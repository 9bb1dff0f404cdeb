"""Values that Anthropic's dialect allows and OpenAI's does not, in requests and in answers."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Block, ToolResult, ToolUse
from gateway.inference.v1.inference_pb2 import (
    Event,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.common.ids import new_id
from services.common.settings import Limits
from services.inference.learned.refusals import all_refused
from services.inference.providers.base import Call
from services.inference.providers.openai import sanitizing
from services.inference.providers.openai.events import StreamReader, events_from_whole
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.request import build_request
from tests.services.inference.providers.caller_paths import dropped_of
from tests.services.inference.providers.openai_calls import (
    ANTHROPIC,
    ASSISTANT,
    OPENAI,
    SYSTEM,
    USER,
    body_of,
    call_of,
    medium,
    opaque,
    refusal_of,
    says,
    sent,
)

LONG = "mcp__server__" + "read_" * 20 + "file"
BILLING = "x-anthropic-billing-header: cc_version=2.1.117.48f; cc_entrypoint=cli; cch=71fea;"
DISABLED = ThinkingConfig(mode=ThinkingConfig.MODE_DISABLED)


class Answers:
    """A provider whose answers must not fail."""

    name = "acme"
    limits = Limits()

    def in_band(self, body: bytes) -> Any:
        raise AssertionError(body)


def using(*names: str, dialect: int = ANTHROPIC, **fields: Any) -> Call:
    return call_of(tools=[Tool(name=name) for name in names], dialect=dialect, **fields)


@pytest.mark.parametrize("name", [LONG, "files.read", "Suche-für-Akten", "a" * 65, "."])
def test_a_tool_goes_by_a_name_that_the_dialect_takes(name: str) -> None:
    call = using(name, "plain", tool_choice=ToolChoice(mode=ToolChoice.MODE_TOOL, name=name))
    body = body_of(call)
    shown = body["tools"][0]["function"]["name"]
    assert shown == sanitizing.tool_name(name) != name
    assert body["tools"][1]["function"]["name"] == "plain"
    assert body["tool_choice"]["function"]["name"] == shown
    assert call.tool_names == {shown: name}


def test_names_with_the_same_prefix_stay_separate() -> None:
    assert sanitizing.tool_name(LONG + "1") != sanitizing.tool_name(LONG + "2")
    assert sanitizing.tool_name("a.b") != sanitizing.tool_name("a:b")


def test_the_history_uses_the_names_of_the_tools() -> None:
    use = Block(tool_use=ToolUse(id="c1", name=LONG, input="{}"))
    result = Block(tool_result=ToolResult(tool_use_id="c1", blocks=[Block(text="4")]))
    messages = (says(USER, "a"), says(ASSISTANT, use), says(USER, result))
    call = using(LONG)
    call.request.ClearField("messages")
    call.request.messages.extend(messages)
    body = body_of(call)
    [called] = body["messages"][1]["tool_calls"]
    assert called["function"]["name"] == body["tools"][0]["function"]["name"]


def test_a_chat_names_its_tools_itself() -> None:
    call = using(LONG, dialect=OPENAI)
    assert body_of(call)["tools"][0]["function"]["name"] == LONG
    assert call.tool_names == {}


def test_the_caller_s_own_tool_name_is_restored() -> None:
    call = using(LONG, stream=True)
    shown = body_of(call)["tools"][0]["function"]["name"]
    function = {"name": shown, "arguments": "{}"}
    called = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    whole = {"choices": [{"index": 0, "message": called, "finish_reason": "tool_calls"}]}
    events = events_from_whole(whole, call, Answers(), new_id)
    assert names_in(events) == [LONG]

    reader, streamed = StreamReader(call, Answers(), new_id), list[Event]()
    choice = {"index": 0, "delta": called, "finish_reason": "tool_calls"}
    reader.feed(b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n", streamed)
    assert names_in(streamed) == [LONG]


def names_in(events: list[Event]) -> list[str]:
    uses = (event.block_start.tool_use for event in events if event.HasField("block_start"))
    return [use.name for use in uses]


@pytest.mark.parametrize(
    ("dialect", "newest", "is_kept"),
    [
        (ANTHROPIC, True, False),
        (ANTHROPIC, False, False),
        (OPENAI, True, False),
        (OPENAI, False, True),
    ],
)
def test_an_id_of_an_end_user_that_is_too_long_is_hashed(
    dialect: int, newest: bool, is_kept: bool
) -> None:
    given = "user_" + "0" * 64 + "_account__session_" + "1" * 36
    user = body_of(call_of(end_user=given, dialect=dialect), newest=newest)["user"]
    assert (user == given) == is_kept
    assert is_kept or len(user) <= sanitizing.MAX_USER
    assert body_of(call_of(end_user="ada", dialect=dialect), newest=newest)["user"] == "ada"


def test_billing_headers_go_to_anthropic_alone() -> None:
    call = call_of(says(SYSTEM, BILLING, "Be brief.", has_billing_line=True), says(USER, "hi"))
    assert body_of(call)["messages"][0]["content"] == "Be brief."
    assert dropped_of(call) == ["messages[].has_billing_line"]
    alone = call_of(says(SYSTEM, BILLING, has_billing_line=True), says(USER, "hi"))
    assert [message["role"] for message in body_of(alone)["messages"]] == ["user"]
    joined = call_of(says(SYSTEM, f"{BILLING}\nBe brief.", has_billing_line=True), says(USER, "hi"))
    assert body_of(joined)["messages"][0]["content"] == "Be brief."
    chat = call_of(says(SYSTEM, BILLING), says(USER, "hi"))
    assert body_of(chat)["messages"][0]["content"] == BILLING
    marked = call_of(says(SYSTEM, has_billing_line=True), says(USER, "hi"))
    assert [message["role"] for message in body_of(marked)["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("newest", "newer", "name"),
    [
        (True, True, "max_completion_tokens"),
        (True, None, "max_completion_tokens"),
        (False, True, "max_completion_tokens"),
        (False, None, "max_tokens"),
    ],
)
def test_the_limit_of_tokens_keeps_the_callers_name(
    newest: bool, newer: bool | None, name: str
) -> None:
    body = body_of(call_of(max_tokens=9, names_max_completion_tokens=newer), newest=newest)
    assert {key: value for key, value in body.items() if key.startswith("max_")} == {name: 9}


@pytest.mark.parametrize("off", [{"enable_thinking": False}, {"thinking": {"type": "disabled"}}])
def test_not_to_think_is_said_with_the_providers_own_switch(off: dict[str, Any]) -> None:
    call = call_of(thinking=DISABLED, dialect=ANTHROPIC)
    call = replace(call, target=replace(call.target, thinking_off=off))
    assert off.items() <= body_of(call, newest=False, known=False).items()
    assert dropped_of(call) == []


@pytest.mark.parametrize(("thinks", "dropped"), [(None, ["thinking"]), (False, [])])
def test_not_to_think_is_dropped_where_nobody_knows_a_switch(
    thinks: bool | None, dropped: list[str]
) -> None:
    call = call_of(thinking=DISABLED, dialect=ANTHROPIC)
    call = replace(call, target=replace(call.target, thinks=thinks))
    body = body_of(call, newest=False)
    assert not body.keys() & {"thinking", "reasoning_effort"}
    assert dropped_of(call) == dropped


def test_an_effort_that_only_its_own_dialect_knows_stays_there() -> None:
    config = ThinkingConfig(effort="default")
    assert body_of(call_of(thinking=config), known=False)["reasoning_effort"] == "default"
    call = call_of(thinking=config, dialect=ANTHROPIC)
    assert "reasoning_effort" not in body_of(call)
    assert dropped_of(call) == ["output_config.effort"]


@pytest.mark.parametrize(
    ("form", "known"),
    [
        ({"type": "grammar", "grammar": "root ::= 'a'"}, None),
        (
            {"type": "json_object", "schema": {"type": "object"}},
            OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT),
        ),
    ],
)
def test_a_form_with_more_than_is_known_goes_whole(
    form: dict[str, Any], known: OutputFormat | None
) -> None:
    call = call_of(extra=opaque({"response_format": form}), output_format=known)
    assert body_of(call, known=False)["response_format"] == form


def test_a_named_choice_keeps_what_else_it_says() -> None:
    choice = {"type": "function", "function": {"name": "f", "mine": 1}, "yours": 2}
    chosen = ToolChoice(mode=ToolChoice.MODE_TOOL, name="f", extra=opaque(choice))
    body = body_of(using("f", dialect=OPENAI, tool_choice=chosen), known=False)
    assert body["tool_choice"] == choice


def test_an_address_of_an_image_goes_to_servers_that_fetch_it() -> None:
    message = says(USER, medium("image", url="https://pictures.test/a.png"))
    [written] = sent(message, newest=False, fetches_urls=True)
    assert written["content"][0]["image_url"]["url"] == "https://pictures.test/a.png"
    assert refusal_of(call_of(message), fetches_urls=False) == (
        "UNSUPPORTED",
        "messages[0].content[0]",
    )


def test_a_model_is_not_sent_what_it_is_known_to_refuse() -> None:
    refuses = frozenset({"temperature", "max_tokens"})
    call = call_of(temperature=0.2, max_tokens=9)
    call = replace(call, refused_fields=refuses)
    body = orjson.loads(build_request(call, Server("acme", False, False, False)))
    assert "temperature" not in body
    assert body["max_completion_tokens"] == 9
    assert dropped_of(call) == ["temperature"]


def test_of_a_limits_two_names_the_one_that_was_refused_counts() -> None:
    call = call_of(max_tokens=9)
    learnt = frozenset({"max_completion_tokens"})
    call.refused_fields = all_refused(frozenset({"max_tokens"}), learnt)
    body = orjson.loads(build_request(call, Server("acme", False, False, False)))
    assert body["max_tokens"] == 9


def test_ids_of_tool_calls_have_the_length_that_a_server_wants() -> None:
    ids = ("toolu_01A09q90qw90lq917835lq9", "D681PevKs")
    uses = (Block(tool_use=ToolUse(id=one, name="f", input="{}")) for one in ids)
    results = (Block(tool_result=ToolResult(tool_use_id=one)) for one in ids)
    call = call_of(says(USER, "a"), says(ASSISTANT, *uses), says(USER, *results))
    call.refused_fields = frozenset({"long_ids"})
    _, asked, *answered = body_of(call)["messages"]
    sent_ids = [one["id"] for one in asked["tool_calls"]]
    assert [one["tool_call_id"] for one in answered] == sent_ids
    assert sent_ids[1] == ids[1]
    assert len(sent_ids[0]) == 9
    assert sent_ids[0].isalnum()


@pytest.mark.parametrize(
    ("budget", "efforts", "effort"),
    [(1024, (), "low"), (1024, ("low", "high"), "low"), (30_000, ("low", "medium"), "medium")],
)
def test_a_budget_is_worth_an_effort_that_the_model_knows(
    budget: int, efforts: tuple[str, ...], effort: str
) -> None:
    config = ThinkingConfig(mode=ThinkingConfig.MODE_ENABLED, budget_tokens=budget)
    call = call_of(thinking=config, dialect=ANTHROPIC)
    call = replace(call, target=replace(call.target, efforts=efforts))
    assert body_of(call)["reasoning_effort"] == effort
