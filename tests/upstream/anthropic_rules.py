"""Rules of Anthropic's servers that the SDK's types do not express.

Source: the reference of the messages API, and its error messages.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from services.common.grpc.dialect_headers import interleaves_thinking
from services.sandbox.model.signatures import is_redacted, sign
from tests.upstream.anthropic_media import image_problems
from tests.upstream.checks import Problem, out_of_range

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MIN_THINKING_BUDGET = 1024
_MAX_CACHE_MARKS = 4

Body = Mapping[str, Any]
Where = tuple[str | int, ...]
Placed = tuple[Where, Body]


def find_problem(body: Body, betas: Collection[str] = ()) -> Problem | None:
    """Return the first problem of a body with valid types, or None.

    `betas` are the names in the header `anthropic-beta`.
    """
    return next(_problems(body, betas), None)


def _problems(body: Body, betas: Collection[str]) -> Iterator[Problem]:
    if not body["messages"]:
        yield Problem(("messages",), "at least one message is required")
    yield from out_of_range(body, "max_tokens", 0, None)
    yield from out_of_range(body, "temperature", 0, 1)
    yield from out_of_range(body, "top_p", 0, 1)
    yield from out_of_range(body, "top_k", 0, None)
    for index, stop in enumerate(body.get("stop_sequences") or ()):
        if not stop.strip():
            yield Problem(("stop_sequences", index), "must contain non-whitespace")
    yield from _tools(body)
    yield from _blocks(body)
    yield from _turns(body["messages"])
    yield from _thinking(body, betas)


def _tools(body: Body) -> Iterator[Problem]:
    names: set[str] = set()
    for index, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") not in (None, "custom"):
            continue
        if not _TOOL_NAME.fullmatch(tool["name"]):
            yield Problem(("tools", index, "name"), "1 to 128 of letters, digits, _ and -")
        if tool["name"] in names:
            yield Problem(("tools", index, "name"), "tool names must be unique")
        if tool["input_schema"].get("type") != "object":
            yield Problem(("tools", index, "input_schema", "type"), "must be 'object'")
        names.add(tool["name"])
    choice = body.get("tool_choice")
    if choice and choice["type"] in ("any", "tool") and not body.get("tools"):
        yield Problem(("tool_choice",), "may only be specified while providing tools")
    if choice and choice["type"] == "tool" and choice["name"] not in names:
        yield Problem(("tool_choice", "name"), "names a tool that is not among the tools")


def _blocks(body: Body) -> Iterator[Problem]:
    """Check the blocks one by one, regardless of their position."""
    marks = sum(bool(tool.get("cache_control")) for tool in body.get("tools") or ())
    for where, block in _all_blocks(body):
        marks += bool(block.get("cache_control"))
        if block["type"] == "text" and not block["text"].strip():
            empty = "empty" if not block["text"] else "whitespace alone"
            yield Problem((*where, "text"), f"text content blocks must not be {empty}")
        yield from image_problems(where, block)
        if block["type"] in ("thinking", "redacted_thinking") and not _is_signed(block):
            key = "signature" if block["type"] == "thinking" else "data"
            yield Problem((*where, key), f"Invalid `{key}` in `{block['type']}` block")
    if marks > _MAX_CACHE_MARKS:
        yield Problem(("cache_control",), f"at most {_MAX_CACHE_MARKS} blocks may carry it")


def _is_signed(block: Body) -> bool:
    """Return whether a thinking or redacted_thinking block is the sandbox's own, unchanged."""
    if block["type"] == "thinking":
        return bool(block["signature"] == sign(block["thinking"]))
    return is_redacted(block["data"])


def _all_blocks(body: Body) -> Iterator[Placed]:
    if isinstance(body.get("system"), list):
        yield from _numbered(("system",), body["system"])
    for index, message in enumerate(body["messages"]):
        content = message["content"]
        where = ("messages", index, "content")
        if isinstance(content, str):
            # A final empty assistant string is rejected like an empty block.
            yield where, {"type": "text", "text": content}
            continue
        for path, block in _numbered(where, content):
            yield path, block
            if block["type"] == "tool_result" and isinstance(block.get("content"), list):
                yield from _numbered((*path, "content"), block["content"])


def _numbered(where: Where, blocks: Iterable[Body]) -> Iterator[Placed]:
    for index, block in enumerate(blocks):
        yield (*where, index), block


def _turns(messages: Sequence[Body]) -> Iterator[Problem]:
    """Check that tool results directly follow their calls."""
    turns = list(_merged(messages))
    calls: list[str] = []
    place: Where = ("messages",)
    for role, blocks in turns:
        if role == "user":
            yield from _results(calls, place, blocks)
        uses = [placed for placed in blocks if placed[1]["type"] == "tool_use"]
        calls = [block["id"] for _, block in uses] if role == "assistant" else []
        place = uses[-1][0] if uses else place
    if calls:
        yield _without_result(place, calls)
    yield from _prefill(messages)


def _merged(messages: Sequence[Body]) -> Iterator[tuple[str, list[Placed]]]:
    """Yield the turns: adjacent messages of one role are merged, system messages are left out."""
    spoken = [(index, item) for index, item in enumerate(messages) if item["role"] != "system"]
    for role, group in groupby(spoken, key=lambda placed: str(placed[1]["role"])):
        yield role, [placed for index, item in group for placed in _blocks_of(index, item)]


def _results(calls: Sequence[str], place: Where, blocks: Sequence[Placed]) -> Iterator[Problem]:
    """Check that a user's turn begins with a result for each call of the previous turn."""
    waiting = list(calls)
    for _, block in blocks:
        if block["type"] != "tool_result":
            break
        if block["tool_use_id"] in waiting:
            waiting.remove(block["tool_use_id"])
    if waiting:
        yield _without_result(place, waiting)
    seen: set[str] = set()
    for where, block in blocks:
        if block["type"] == "tool_result":
            if block["tool_use_id"] not in calls or block["tool_use_id"] in seen:
                yield Problem(
                    (*where, "tool_use_id"),
                    "unexpected: each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message, and be the only one",
                )
            seen.add(block["tool_use_id"])


def _blocks_of(index: int, message: Body) -> Iterator[Placed]:
    content = message["content"]
    if isinstance(content, str):
        yield ("messages", index, "content"), {"type": "text", "text": content}
    else:
        yield from _numbered(("messages", index, "content"), content)


def _without_result(place: Where, waiting: Sequence[str]) -> Problem:
    return Problem(
        place,
        "`tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(waiting)}",
    )


def _prefill(messages: Sequence[Body]) -> Iterator[Problem]:
    last = messages[-1]
    blocks = list(_blocks_of(len(messages) - 1, last))
    if last["role"] == "assistant" and blocks and blocks[-1][1]["type"] == "text":
        where, block = blocks[-1]
        if block["text"] != block["text"].rstrip():
            yield Problem(where, "final assistant content cannot end with trailing whitespace")


def _thinking(body: Body, betas: Collection[str]) -> Iterator[Problem]:
    thinking = body.get("thinking") or {}
    if thinking.get("type") != "enabled":
        return
    budget = thinking["budget_tokens"]
    if budget < _MIN_THINKING_BUDGET:
        yield Problem(("thinking", "budget_tokens"), f"at least {_MIN_THINKING_BUDGET}")
    # With interleaved thinking, the budget is the total of all thinking in a turn.
    if budget >= body.get("max_tokens", budget + 1) and not interleaves_thinking(betas):
        yield Problem(("max_tokens",), "must be greater than `thinking.budget_tokens`")
    if body.get("temperature", 1) != 1:
        yield Problem(("temperature",), "may only be set to 1 when thinking is enabled")
    if "top_k" in body:
        yield Problem(("top_k",), "must be unset when thinking is enabled")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield Problem(("tool_choice",), "may not force tool use when thinking is enabled")
    if body["messages"][-1]["role"] == "assistant":
        yield Problem(("messages",), "may not be prefilled when thinking is enabled")
