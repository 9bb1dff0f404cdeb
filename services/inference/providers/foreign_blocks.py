"""Blocks of another provider's conversation as text, for a provider that has no such blocks. Pure.

A model that answered before may have searched, run code or summarized by tools of its provider, and
a caller may send search results as blocks of their own. What was said or found becomes text, quoted
as what it is; encrypted data, ids and media are left out. A block that only instructs or shows, and
one that nothing is known of, has no text.

Sources: Anthropic's "Server tools", "Search results" and "Compaction"; OpenAI's reference of the
items of a response.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from services.common.messages.sealed_summary import SUMMARY
from services.inference.request.quoting import as_data

Json = Mapping[str, Any]

# Members that say nothing to another model.
_UNREAD = frozenset(
    {
        *("id", "call_id", "tool_use_id", "file_id", "container_id", "status", "caller"),
        *("encrypted_content", "encrypted_index", "encrypted_stdout", "signature"),
        *("cache_control", "citations"),
    }
)
# Google's parts of calls and results of its own tools.
_GOOGLE_PARTS = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
# Levels of a result that are read; callers choose its depth.
_MAX_DEPTH = 32
_MEDIUM = "(not text)"
_SCREENSHOT = "computer_call_output"
_IMAGE_CALL = "image_generation_call"


def text_of_block(fields: Json) -> str:
    """Return the text of a block in another provider's format; "" if it has none."""
    kind = fields.get("type")
    if not isinstance(kind, str):
        # Google's parts have no type.
        return "" if _GOOGLE_PARTS.isdisjoint(fields) else _quoted("a part of an answer", fields)
    match kind:
        case "compaction":
            summary = _plain_text(fields.get("content"))
            return f"{SUMMARY}\n{summary}" if summary else ""
        case "search_result":
            return _search_result(fields)
        case "document":
            return _document(fields)
        case "google_part":
            return _quoted("a part of an answer", _without_type(fields))
    if kind.endswith("_tool_use"):
        arguments = orjson.dumps(_readable(fields.get("input"))).decode()
        return f"[The tool {fields.get('name')} was called with {arguments}]"
    if kind.endswith("_tool_result"):
        description = f"the result of the tool {kind.removesuffix('_tool_result')}"
        if fields.get("is_error"):
            description += ", which failed"
        return _quoted(description, fields.get("content"))
    if kind.endswith("_call"):
        hidden = ("result",) if kind == _IMAGE_CALL else ()
        call = {name: value for name, value in fields.items() if name not in hidden}
        return _quoted(f"an earlier {kind}", _without_type(call))
    if kind.endswith("_call_output") and kind != _SCREENSHOT:
        return _quoted(f"an earlier {kind}", fields.get("output"))
    return ""


def _search_result(fields: Json) -> str:
    text = _plain_text(fields.get("content"))
    if not text:
        return ""
    lines = [
        f"{label}: {value}"
        for label, name in (("Source", "source"), ("Title", "title"))
        if isinstance(value := fields.get(name), str) and value
    ]
    return as_data("a search result", "\n".join((*lines, "", text)))


def _document(fields: Json) -> str:
    """Return the text of a document whose content is blocks of text, under its title."""
    match fields.get("source"):
        case {"type": "content", "content": content}:
            text = _plain_text(content)
        case _:
            return ""
    if not text:
        return ""
    lines = [
        f"[{value}]"
        for name in ("title", "context")
        if isinstance(value := fields.get(name), str) and value
    ]
    return "\n".join((*lines, text))


def _plain_text(content: object) -> str:
    """Return the text of a string or of text blocks; "" for any other content."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts: list[str] = []
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                return ""
    return "\n".join(texts)


def _quoted(description: str, content: object) -> str:
    """Return a call or its result as data: its text, or else the JSON of what is readable."""
    text = _plain_text(content)
    if not text:
        readable = _readable(content)
        text = "(nothing)" if readable in (None, [], {}) else orjson.dumps(readable).decode()
    return as_data(description, text)


def _without_type(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if name != "type"}


def _readable(value: object, depth: int = 0) -> object:
    """Return a JSON value without members that say nothing, and without media."""
    if depth > _MAX_DEPTH:
        return _MEDIUM
    if isinstance(value, str):
        return _MEDIUM if value.startswith("data:") else value
    if isinstance(value, list):
        return [_readable(one, depth + 1) for one in value]
    if isinstance(value, dict):
        if value.get("type") == "base64":
            return _MEDIUM
        return {
            name: _readable(one, depth + 1)
            for name, one in value.items()
            if one is not None and name not in _UNREAD
        }
    return value
