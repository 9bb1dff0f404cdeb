"""One table of conversations, each in both callers' words, and what must come of it."""

import base64
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any


def png(width: int, height: int) -> bytes:
    """Return a black picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = (b"\0" + b"\0\0\0" * width) * height
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PICTURE = base64.b64encode(png(7, 5)).decode()
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": "d", "parameters": WEATHER}}
    for name in ("get_weather", "get_time")
]
MESSAGES_TOOLS = [
    {"name": name, "description": "d", "input_schema": WEATHER}
    for name in ("get_weather", "get_time")
]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


EVERY_PROVIDER = ("sandbox/echo", "openai/echo", "anthropic/echo", "gemini/echo")


@dataclass(frozen=True)
class Outcome:
    """Content of an answer, in the same form for every dialect.

    Attributes:
        text: all of its text.
        tools: name and arguments of each call, in order.
        finish: Anthropic's word for why it stopped.
        stop_sequence: the string that stopped it, where the dialect tells.
        thinking: whether it shows thinking.
        refused: whether it refuses.
        cached: tokens read from the provider's cache.
    """

    text: str
    tools: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    finish: str = "end_turn"
    stop_sequence: str | None = None
    thinking: bool = False
    refused: bool = False
    cached: bool = False


@dataclass(frozen=True)
class Conversation:
    """A request in both dialects, without its model, and what must come of it.

    `chat` or `messages` is None where the dialect has no words for it; `but` says what
    differs for a provider that speaks another dialect.
    """

    name: str
    chat: dict[str, Any] | None
    messages: dict[str, Any] | None
    outcome: Outcome
    models: tuple[str, ...] = EVERY_PROVIDER


_RESULTS_CHAT = [
    user("What is the weather, and the time? Ask your tools in parallel."),
    assistant(
        None,
        tool_calls=[
            {
                "id": f"call_{name}",
                "type": "function",
                "function": {"name": name, "arguments": '{"city":"Paris"}'},
            }
            for name in ("get_weather", "get_time")
        ],
    ),
    {"role": "tool", "tool_call_id": "call_get_weather", "content": "sunny"},
    {"role": "tool", "tool_call_id": "call_get_time", "content": "noon"},
]
_RESULTS_MESSAGES = [
    user("What is the weather, and the time? Ask your tools in parallel."),
    assistant(
        [
            {"type": "tool_use", "id": f"call_{name}", "name": name, "input": {"city": "Paris"}}
            for name in ("get_weather", "get_time")
        ]
    ),
    user(
        [
            {"type": "tool_result", "tool_use_id": "call_get_weather", "content": "sunny"},
            {"type": "tool_result", "tool_use_id": "call_get_time", "content": "noon"},
        ]
    ),
]

CONVERSATIONS = [
    Conversation(
        "text",
        {"messages": [user("Hello, Wörld ☕")]},
        {"messages": [user("Hello, Wörld ☕")]},
        Outcome('Sandbox echo: you said "Hello, Wörld ☕".'),
    ),
    Conversation(
        "system prompt",
        {"messages": [{"role": "system", "content": "Be brief."}, user("Hi")]},
        {"system": "Be brief.", "messages": [user("Hi")]},
        Outcome('Sandbox echo: you said "Hi". The system prompt is "Be brief.".'),
    ),
    Conversation(
        "neighbours of one role",
        {"messages": [user("One."), user("Two.")]},
        {"messages": [user("One."), user([{"type": "text", "text": "Two."}])]},
        Outcome('Sandbox echo: you said "One.\nTwo.".'),
    ),
    Conversation(
        "several turns",
        {"messages": [user("Hi"), assistant("Hello."), user("Bye")]},
        {"messages": [user("Hi"), assistant("Hello."), user("Bye")]},
        Outcome('Sandbox echo: you said "Bye".'),
    ),
    Conversation(
        "an image",
        {
            "messages": [
                user(
                    [
                        {"type": "text", "text": "See"},
                        {
                            "type": "image_url",
                            "image_url": {"url": f"data:image/png;base64,{PICTURE}"},
                        },
                    ]
                )
            ]
        },
        {
            "messages": [
                user(
                    [
                        {"type": "text", "text": "See"},
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": PICTURE,
                            },
                        },
                    ]
                )
            ]
        },
        Outcome(
            'Sandbox vision: you said "See". '
            f"Medium 1 is an image, PNG of 7x5 pixels, {len(png(7, 5))} bytes."
        ),
        models=("sandbox/vision", "see-openai", "see-anthropic", "see-gemini"),
    ),
    Conversation(
        "parallel tool calls",
        {
            "messages": [user("Use get_weather and get_time in parallel")],
            "tools": CHAT_TOOLS,
            "tool_choice": "required",
        },
        {
            "messages": [user("Use get_weather and get_time in parallel")],
            "tools": MESSAGES_TOOLS,
            "tool_choice": {"type": "any"},
        },
        Outcome(
            "",
            tools=[
                ("get_weather", {"city": "Use get_weather and get_time in parallel"}),
                ("get_time", {"city": "Use get_weather and get_time in parallel"}),
            ],
            finish="tool_use",
        ),
    ),
    Conversation(
        "text before a tool call",
        {"messages": [user("Ask get_time")], "tools": CHAT_TOOLS},
        {"messages": [user("Ask get_time")], "tools": MESSAGES_TOOLS},
        Outcome(
            "Sandbox echo: I call get_time.",
            tools=[("get_time", {"city": "Ask get_time"})],
            finish="tool_use",
        ),
    ),
    Conversation(
        "tools forbidden",
        {"messages": [user("Ask get_time")], "tools": CHAT_TOOLS, "tool_choice": "none"},
        {
            "messages": [user("Ask get_time")],
            "tools": MESSAGES_TOOLS,
            "tool_choice": {"type": "none"},
        },
        Outcome('Sandbox echo: you said "Ask get_time".'),
    ),
    Conversation(
        "one named tool, no parallel calls",
        {
            "messages": [user("parallel, please")],
            "tools": CHAT_TOOLS,
            "tool_choice": {"type": "function", "function": {"name": "get_time"}},
            "parallel_tool_calls": False,
        },
        {
            "messages": [user("parallel, please")],
            "tools": MESSAGES_TOOLS,
            "tool_choice": {
                "type": "tool",
                "name": "get_time",
                "disable_parallel_tool_use": True,
            },
        },
        Outcome("", tools=[("get_time", {"city": "parallel, please"})], finish="tool_use"),
        # Gemini has no word against parallel calls.
        models=EVERY_PROVIDER[:3],
    ),
    Conversation(
        "results of parallel calls",
        {"messages": _RESULTS_CHAT, "tools": CHAT_TOOLS},
        {"messages": _RESULTS_MESSAGES, "tools": MESSAGES_TOOLS},
        Outcome('Sandbox echo: The tool answered "sunny". The tool answered "noon".'),
    ),
    Conversation(
        "thinking",
        {"messages": [user("Think")], "reasoning_effort": "low", "max_tokens": 4000},
        {
            "messages": [user("Think")],
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "max_tokens": 4000,
        },
        Outcome('Sandbox echo: you said "Think".', thinking=True),
    ),
    Conversation(
        "refusal",
        {"messages": [user("sandbox: refuse")]},
        {"messages": [user("sandbox: refuse")]},
        Outcome("Sandbox echo: I refuse, as I was asked to.", finish="refusal", refused=True),
    ),
    Conversation(
        "a stop string",
        {"messages": [user("one two three")], "stop": ["two", "never"]},
        {"messages": [user("one two three")], "stop_sequences": ["never", "two"]},
        Outcome('Sandbox echo: you said "one ', finish="stop_sequence", stop_sequence="two"),
    ),
    Conversation(
        "the end of the tokens",
        {"messages": [user("one two three")], "max_tokens": 3},
        {"messages": [user("one two three")], "max_tokens": 3},
        Outcome("Sandbox echo: you", finish="max_tokens"),
    ),
    Conversation(
        "a prefill",
        {"messages": [user("Hi"), assistant("Sandbox echo: you said")]},
        {"messages": [user("Hi"), assistant("Sandbox echo: you said")]},
        Outcome(' "Hi".'),
        models=("sandbox/echo", "anthropic/echo"),
    ),
    Conversation(
        "a prefill that the model repeats",
        {"messages": [user("sandbox: repeat"), assistant("Sandbox echo: you")]},
        {"messages": [user("sandbox: repeat"), assistant("Sandbox echo: you")]},
        Outcome(' said "sandbox: repeat".'),
        models=("sandbox/echo",),
    ),
    Conversation(
        "a cached prompt",
        {"messages": [user("sandbox: cached " + "word " * 50)]},
        {"messages": [user("sandbox: cached " + "word " * 50)]},
        Outcome(f'Sandbox echo: you said "sandbox: cached {"word " * 50}".', cached=True),
    ),
    Conversation(
        "structured output",
        {
            "messages": [user("Plan")],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "plan", "schema": SCHEMA, "strict": True},
            },
        },
        {
            "messages": [user("Plan")],
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        },
        Outcome('{"city":"Plan","days":0}'),
    ),
]
