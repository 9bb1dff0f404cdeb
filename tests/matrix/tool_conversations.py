"""The table of conversations about tools."""

from collections.abc import Sequence
from typing import Any

from tests.matrix.conversations import OTHER_PICTURE, PICTURE
from tests.matrix.upstreams import NATIVE, OPENAIS
from tests.matrix.words import (
    CHAT,
    GRPC,
    MESSAGES,
    RESPONSES,
    Call,
    Conversation,
    Image,
    Refusal,
    Thought,
    Tool,
    assistant,
    result,
    user,
)

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER, TIME = Tool("get_weather", _CITY), Tool("get_time", _CITY)
BOTH = (WEATHER, TIME)
_PARIS = '{"city":"Paris"}'
_ASKED = user("What is the weather, and the time?")
_MANY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "b": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        "c": {"type": "number", "minimum": 0, "default": 1.5},
    },
    "$defs": {"item": {"type": "object", "additionalProperties": {"type": "integer"}}},
}
_RICH = '{"city":"Zürich \\"x\\" 🏔","n":9007199254740993,"f":0.1,"d":{"a":[null,true,{}]},"e":""}'
# Of whose refusals there are words alone.
_NAME_NO_FIELD = frozenset({"gemini-openai", "mistral"})
# They take names of tools of any length.
_ANY_NAME = frozenset({"ollama", "openrouter", "vllm"})
_LONG_NAME = "mcp__a-rather-long-name-of-a-server__" + "and_an_even_longer_name_of_a_tool_of_it" * 2


def _loop(*calls: Call, results: Sequence[Any], **more: Any) -> list[Any]:
    return [_ASKED, assistant(*calls), user(*results)]


CALLS = (
    Conversation("a tool that is not called", [user("Hi")], tools=[WEATHER], says='said "Hi"'),
    Conversation(
        "a call", [user("Use get_weather")], tools=BOTH, calls=["get_weather"], finish="calls"
    ),
    Conversation(
        "calls in parallel",
        [user("Use get_weather and get_time in parallel")],
        tools=BOTH,
        calls=["get_weather", "get_time"],
        finish="calls",
    ),
    Conversation(
        "a call that is left to the model",
        [user("Hi")],
        tools=BOTH,
        choice="auto",
        says='said "Hi"',
    ),
    Conversation(
        "a call that is forced",
        [user("Hi")],
        tools=BOTH,
        choice="any",
        calls=["get_weather"],
        finish="calls",
    ),
    Conversation(
        "a call of a certain tool",
        [user("Hi")],
        tools=BOTH,
        choice="get_time",
        calls=["get_time"],
        finish="calls",
    ),
    Conversation(
        "no call",
        [user("Use get_weather")],
        tools=BOTH,
        choice="none",
        says="Use get_weather",
    ),
    Conversation(
        "one call at most",
        [user("Use get_weather and get_time in parallel")],
        {"parallel": False},
        tools=BOTH,
        any_answer=True,
    ),
    Conversation(
        "a forced call and thinking",
        [user("Hi")],
        {"effort": "high", "max_tokens": 4000},
        tools=[WEATHER],
        choice="any",
        endpoints=(CHAT, GRPC),
        calls=["get_weather"],
        finish="calls",
    ),
    Conversation(
        "a tool with little to say",
        [user("Use do_it")],
        tools=[Tool("do_it", {"type": "object", "properties": {}}, description="")],
        calls=["do_it"],
        finish="calls",
    ),
    Conversation(
        "a tool with a rich schema",
        [user("Use do_it")],
        tools=[Tool("do_it", _MANY)],
        calls=["do_it"],
        finish="calls",
    ),
    Conversation(
        "a strict tool",
        [user("Use get_weather")],
        tools=[Tool("get_weather", {**_CITY, "additionalProperties": False}, strict=True)],
        calls=["get_weather"],
        finish="calls",
    ),
    Conversation(
        "a tool that is marked for the cache",
        [user("Use get_weather")],
        tools=[Tool("get_weather", _CITY, marked=True)],
        calls=["get_weather"],
        finish="calls",
    ),
    Conversation(
        "a long name of a tool",
        [
            user("Call"),
            assistant(Call("c1", _LONG_NAME, _PARIS)),
            user(result("c1", "sunny")),
            assistant("Done."),
            user(f"Use {_LONG_NAME}"),
        ],
        tools=[Tool(_LONG_NAME, _CITY)],
        choice=_LONG_NAME,
        calls=[_LONG_NAME],
        finish="calls",
        # In its own dialect a name is not changed.
        refusals=[
            Refusal(OPENAIS - _NAME_NO_FIELD - _ANY_NAME, {CHAT: "tools[0].function.name"}),
            Refusal(_NAME_NO_FIELD, {CHAT: "maximum"}),
            Refusal(NATIVE, {RESPONSES: "tools[0].name"}),
        ],
    ),
)

RESULTS = (
    Conversation(
        "a result",
        _loop(Call("call_1", "get_weather", _PARIS), results=[result("call_1", "sunny")]),
        tools=BOTH,
        says='The tool answered "sunny"',
    ),
    Conversation(
        "a result without tools",
        _loop(Call("call_1", "get_weather", _PARIS), results=[result("call_1", "sunny")]),
        says='The tool answered "sunny"',
    ),
    Conversation(
        "results of parallel calls",
        _loop(
            Call("call_1", "get_weather", _PARIS),
            Call("call_2", "get_weather", _PARIS),
            Call("call_3", "get_time", _PARIS),
            results=[result("call_1", "sun"), result("call_2", "rain"), result("call_3", "noon")],
        ),
        tools=BOTH,
        says='answered "noon"',
    ),
    Conversation(
        "results in another order",
        _loop(
            Call("call_1", "get_weather", _PARIS),
            Call("call_2", "get_time", _PARIS),
            results=[result("call_2", "noon"), result("call_1", "sun")],
        ),
        tools=BOTH,
        says='answered "sun"',
    ),
    Conversation(
        "a failure of a tool",
        _loop(
            Call("call_1", "get_weather", _PARIS),
            results=[result("call_1", "no such city", is_error=True)],
        ),
        tools=BOTH,
        says='"no such city"',
    ),
    Conversation(
        "an empty result",
        _loop(Call("call_1", "get_weather", _PARIS), results=[result("call_1")]),
        tools=BOTH,
        says='answered ""',
    ),
    Conversation(
        "a result of several texts",
        _loop(Call("call_1", "get_weather", _PARIS), results=[result("call_1", "sun", "rain")]),
        tools=BOTH,
        says="rain",
    ),
    Conversation(
        "a result with a picture",
        _loop(
            Call("call_1", "get_weather", _PARIS),
            Call("call_2", "get_weather", _PARIS),
            results=[
                result("call_1", "Look:", Image(PICTURE)),
                result("call_2", Image(OTHER_PICTURE)),
            ],
        ),
        says="PNG of 3x9 pixels",
    ),
    Conversation(
        "a result and words",
        [
            _ASKED,
            assistant("Let me see. ", Call("call_1", "get_weather", _PARIS)),
            user(result("call_1", "sunny"), "And now?"),
        ],
        tools=BOTH,
        says="And now?",
    ),
    Conversation(
        "several calls one after the other",
        [
            _ASKED,
            assistant("First.", Call("call_1", "get_weather", _PARIS)),
            user(result("call_1", "sunny")),
            assistant("Then.", Call("call_2", "get_time", _PARIS)),
            user(result("call_2", "noon")),
            assistant("It is noon."),
            user("Thanks"),
        ],
        tools=BOTH,
        says="Thanks",
    ),
    Conversation(
        "odd ids of calls",
        _loop(
            Call("functions.get_weather:0", "get_weather", _PARIS),
            Call("functions.get_time:1|ü", "get_time", _PARIS),
            Call("x" * 300, "get_time", _PARIS),
            results=[
                result("functions.get_weather:0", "sun"),
                result("functions.get_time:1|ü", "noon"),
                result("x" * 300, "night"),
            ],
        ),
        tools=BOTH,
        endpoints=(CHAT, GRPC),
        says='answered "night"',
    ),
    Conversation(
        "arguments of every kind",
        _loop(Call("call_1", "get_weather", _RICH), results=[result("call_1", "sunny")]),
        tools=BOTH,
        says="sunny",
    ),
    Conversation(
        "arguments that are no JSON",
        _loop(
            Call("call_1", "get_weather", '{"city":"Par'),
            results=[result("call_1", "bad arguments", is_error=True)],
        ),
        tools=BOTH,
        endpoints=(CHAT, GRPC),
        says="bad arguments",
    ),
    Conversation(
        "arguments that are empty",
        _loop(Call("call_1", "get_weather", ""), results=[result("call_1", "where?")]),
        tools=BOTH,
        endpoints=(CHAT, GRPC),
        says="where?",
    ),
    Conversation(
        "earlier thoughts beside a call",
        [
            _ASKED,
            assistant(Thought("I must look."), "One.", Call("call_1", "get_weather", _PARIS)),
            user(result("call_1", "sunny")),
        ],
        {"effort": "high", "max_tokens": 4000},
        tools=BOTH,
        endpoints=(CHAT, GRPC),
        says="sunny",
    ),
)

LOOPS = (
    Conversation(
        "a loop",
        [user("Use get_weather")],
        tools=BOTH,
        calls=["get_weather"],
        finish="calls",
        results="sunny",
    ),
    Conversation(
        "a loop with thinking",
        [user("Use get_weather")],
        {"effort": "high", "max_tokens": 8000},
        tools=BOTH,
        calls=["get_weather"],
        finish="calls",
        results="sunny",
    ),
    Conversation(
        "a loop of parallel calls with thinking",
        [user("Use get_weather and get_time in parallel")],
        {"budget": 2048, "max_tokens": 8000},
        tools=BOTH,
        endpoints=(MESSAGES, GRPC),
        calls=["get_weather", "get_time"],
        finish="calls",
        results="sunny",
    ),
    Conversation(
        "a loop with hidden thoughts",
        [user("Use get_weather, sandbox: redact")],
        {"effort": "high", "max_tokens": 8000},
        tools=BOTH,
        endpoints=(MESSAGES, GRPC),
        calls=["get_weather"],
        finish="calls",
        results="sunny",
    ),
)
