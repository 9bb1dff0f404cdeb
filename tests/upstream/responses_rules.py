"""Rules of OpenAI's responses that the SDK's types do not express.

Source: the reference of responses, its guides on reasoning and conversation state, and its error
messages. The sandbox stores no responses, as OpenAI with `store: false`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.sandbox.model.signatures import redacted_in
from services.sandbox.responses_request import ENCRYPTED, LOGPROBS, items_of, kind_of
from tests.upstream.checks import Problem, out_of_range
from tests.upstream.openai_rules import TOOL_NAME

Body = Mapping[str, Any]

_CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_OUTPUTS = frozenset(_CALLS.values())
# Items of the model; a reasoning item must precede one of them.
_BY_MODEL = frozenset({*_CALLS, "reasoning", "web_search_call", "compaction"})
_NOT_KEPT = "Items are not persisted when `store` is set to false."


def find_problem(body: Body) -> Problem | None:
    """Return the first problem of a body with valid types, or None."""
    return next(_problems(body), None)


def _problems(body: Body) -> Iterator[Problem]:
    if not isinstance(body.get("model"), str):
        yield Problem(("model",), "Missing required parameter")
    if body.get("input") in (None, []):
        yield Problem(("input",), "Missing required parameter: a text or at least one item")
    for key, low, high in (
        ("temperature", 0, 2),
        ("top_p", 0, 1),
        ("top_logprobs", 0, 20),
        ("max_output_tokens", 16, None),
        ("max_tool_calls", 1, None),
    ):
        yield from out_of_range(body, key, low, high)
    yield from _state(body)
    if body.get("stream_options") is not None and not body.get("stream"):
        yield Problem(("stream_options",), "only with stream: true")
    if body.get("top_logprobs") and LOGPROBS not in (body.get("include") or ()):
        yield Problem(("top_logprobs",), f"only with include: {LOGPROBS}")
    yield from _tools(body)
    items = items_of(body)
    yield from _items(items)
    yield from _calls(items)
    form = (body.get("text") or {}).get("format") or {}
    if form.get("type") == "json_object" and not _says_json(body):
        yield Problem(("input",), "must contain the word 'json' for this text.format")


def _state(body: Body) -> Iterator[Problem]:
    """Reject references to stored state, and features that require it."""
    if body.get("background"):
        yield Problem(("background",), "the sandbox keeps no responses")
    if name := body.get("previous_response_id"):
        yield Problem(("previous_response_id",), f"Previous response with id '{name}' not found.")
    if body.get("conversation") is not None:
        yield Problem(("conversation",), "Conversation not found.")


def _tools(body: Body) -> Iterator[Problem]:
    names: list[str] = []
    kinds: list[str] = []
    for index, tool in enumerate(body.get("tools") or ()):
        kinds.append(tool["type"])
        if tool["type"] not in ("function", "custom"):
            continue
        names.append(tool["name"])
        if not TOOL_NAME.fullmatch(tool["name"]):
            yield Problem(("tools", index, "name"), "1 to 64 of letters, digits, _ and -")
    match body.get("tool_choice"):
        case "required" if not kinds:
            yield Problem(("tool_choice",), "'required' must be specified with 'tools' parameter")
        case {"type": "function" | "custom", "name": name} if name not in names:
            yield Problem(("tool_choice",), f"Tool choice '{name}' not found in 'tools' parameter")
        case {"type": str(kind)} if kind.startswith("web_search") and kind not in kinds:
            yield Problem(("tool_choice",), f"Tool choice '{kind}' not found in 'tools' parameter")


def _items(items: Sequence[Body]) -> Iterator[Problem]:
    for index, item in enumerate(items):
        match kind_of(item):
            case "item_reference":
                yield _not_found(index, item)
            case "reasoning":
                yield from _reasoning(index, item, items)
            case "message" if not isinstance(item["content"], str):
                yield from _parts(index, item)


def _reasoning(index: int, item: Body, items: Sequence[Body]) -> Iterator[Problem]:
    encrypted = item.get("encrypted_content")
    if not encrypted:
        yield _not_found(index, item)
    elif not redacted_in(encrypted):
        where = ("input", index, "encrypted_content")
        yield Problem(
            where,
            f"The encrypted content {encrypted[:5]}... could not be verified. Reason: Encrypted "
            "content could not be decrypted or parsed.",
        )
    after = items[index + 1] if index + 1 < len(items) else {}
    if not after or not (kind_of(after) in _BY_MODEL or after.get("role") == "assistant"):
        yield Problem(
            ("input", index),
            f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
            "following item.",
        )


def _not_found(index: int, item: Body) -> Problem:
    why = f"Item with id '{item.get('id')}' not found. {_NOT_KEPT} ({ENCRYPTED} is needed.)"
    return Problem(("input", index), why)


def _parts(index: int, item: Body) -> Iterator[Problem]:
    is_model = item["role"] == "assistant"
    for place, part in enumerate(item["content"]):
        where = ("input", index, "content", place)
        if (part["type"] in ("output_text", "refusal")) != is_model:
            takes = "'output_text' and 'refusal'" if is_model else "'input_text', 'input_image', …"
            yield Problem((*where, "type"), f"Invalid value: '{part['type']}'; takes {takes}")
        url = part.get("image_url")
        if url is not None and not url.startswith(("data:image/", "http://", "https://")):
            yield Problem((*where, "image_url"), "an http or https address, or a data: URL")


def _calls(items: Sequence[Body]) -> Iterator[Problem]:
    """Check that each tool call is followed by its output."""
    open_calls: dict[str, str] = {}
    for index, item in enumerate(items):
        kind = kind_of(item)
        if kind in _CALLS:
            open_calls[item["call_id"]] = _CALLS[kind]
        elif kind in _OUTPUTS and open_calls.pop(item.get("call_id") or "", "") != kind:
            called = kind.removesuffix("_output").replace("_", " ")
            yield Problem(
                ("input", index, "call_id"),
                f"No tool call found for {called} output with call_id {item.get('call_id')}.",
            )
    for call_id in open_calls:
        yield Problem(("input",), f"No tool output found for function call {call_id}.")


def _says_json(body: Body) -> bool:
    return "json" in f"{body.get('instructions')} {body.get('input')}".lower()
