"""Rules of OpenAI's servers that the SDK's types do not express.

Source: the reference of chat completions, and its error messages.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.upstream.checks import Problem, out_of_range

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_STOPS = 4

Body = Mapping[str, Any]


def find_problem(body: Body, tool_name: re.Pattern[str] = TOOL_NAME) -> Problem | None:
    """Return the first problem of a body with valid types, or None.

    Args:
        body: the request.
        tool_name: the pattern of valid tool names.
    """
    return next(_problems(body, tool_name), None)


def _problems(body: Body, tool_name: re.Pattern[str]) -> Iterator[Problem]:
    if not body["messages"]:
        yield Problem(("messages",), "[] is too short: at least one message is needed")
    for key, low, high in (
        ("temperature", 0, 2),
        ("top_p", 0, 1),
        ("presence_penalty", -2, 2),
        ("frequency_penalty", -2, 2),
        ("n", 1, 128),
        ("top_logprobs", 0, 20),
        ("max_tokens", 1, None),
        ("max_completion_tokens", 1, None),
    ):
        yield from out_of_range(body, key, low, high)
    if None not in (body.get("max_tokens"), body.get("max_completion_tokens")):
        yield Problem(("max_tokens",), "not together with max_completion_tokens")
    if isinstance(stops := body.get("stop"), list) and len(stops) > _MAX_STOPS:
        yield Problem(("stop",), f"at most {_MAX_STOPS} strings")
    if body.get("stream_options") is not None and not body.get("stream"):
        yield Problem(("stream_options",), "only with stream: true")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        yield Problem(("top_logprobs",), "only with logprobs: true")
    yield from _tools(body, tool_name)
    yield from _messages(body["messages"])
    if (body.get("response_format") or {}).get("type") == "json_object" and not _says_json(body):
        yield Problem(("messages",), "must contain the word 'json' for this response_format")


def _tools(body: Body, tool_name: re.Pattern[str]) -> Iterator[Problem]:
    tools = body.get("tools")
    if tools == []:
        yield Problem(("tools",), "[] is too short")
    for key in ("tool_choice", "parallel_tool_calls"):
        if body.get(key) is not None and not tools and body[key] != "none":
            yield Problem((key,), "only when tools are specified")
    names = []
    for index, tool in enumerate(tools or ()):
        names.append(tool[tool["type"]]["name"])
        if not tool_name.fullmatch(names[-1]):
            where = ("tools", index, tool["type"], "name")
            yield Problem(where, "1 to 64 of letters, digits, _ and -")
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice["type"] in ("function", "custom"):
        if choice[choice["type"]]["name"] not in names:
            yield Problem(("tool_choice",), "names a tool that is not among the tools")


def _messages(messages: Sequence[Body]) -> Iterator[Problem]:
    """Check that tool results directly follow their calls."""
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield Problem(
                    ("messages", index, "tool_call_id"),
                    "a message of role 'tool' must answer a preceding message with 'tool_calls'",
                )
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield _unanswered(index, waiting)
            waiting = []
        if message["role"] == "assistant":
            calls = message.get("tool_calls")
            if calls == []:
                yield Problem(("messages", index, "tool_calls"), "[] is too short")
            waiting = [call["id"] for call in calls or ()]
            if not waiting and not message.get("content") and not message.get("refusal"):
                yield Problem(
                    ("messages", index, "content"), "needed where there are no tool_calls"
                )
        yield from _images(index, message)
    if waiting:
        yield _unanswered(len(messages), waiting)


def _unanswered(index: int, waiting: Sequence[str]) -> Problem:
    return Problem(
        ("messages", index - 1),
        "an assistant message with 'tool_calls' must be followed by tool messages for each "
        f"tool_call_id; these had none: {', '.join(waiting)}",
    )


def _images(index: int, message: Body) -> Iterator[Problem]:
    content = message.get("content")
    for place, part in enumerate(content if isinstance(content, list) else ()):
        if part["type"] == "image_url":
            if not part["image_url"]["url"].startswith(("data:image/", "http://", "https://")):
                where = ("messages", index, "content", place, "image_url", "url")
                yield Problem(where, "an http or https address, or a data: URL of an image")


def _says_json(body: Body) -> bool:
    return any("json" in str(message.get("content")).lower() for message in body["messages"])
