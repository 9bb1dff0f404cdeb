"""Steps of an interaction for items of a response, and their deltas. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from facade.dialects.gemini.file_names import file_name
from facade.dialects.interactions.signatures import to_signature

Json = dict[str, Any]

MODEL, USER, THOUGHT, CALL = "model_output", "user_input", "thought", "function_call"
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.ASCII)
_TEXTS: Final = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_PNG: Final = "image/png"
# Fields of steps that are written in a delta of the step's own type.
_WRITTEN: Final[Sequence[str]] = ("arguments", "result", "is_error")


def steps_of(item: Mapping[str, Any]) -> list[Json]:
    """Return the steps of an item; none for an item that interactions have no step for."""
    match item.get("type") or "message":
        case "message":
            kind = MODEL if item.get("role") == "assistant" else USER
            return [{"type": kind, "content": contents_of(item.get("content"))}]
        case "reasoning":
            return [_thought(item)]
        case "function_call":
            arguments = _object(item.get("arguments"))
            return [{"type": CALL, **_call(item), "arguments": arguments}]
        case "function_call_output":
            output = item.get("output")
            result = contents_of(output) if isinstance(output, list) else output
            return [{"type": "function_result", "call_id": item.get("call_id"), "result": result}]
        case "web_search_call":
            return _search(item)
        case "code_interpreter_call":
            return _program(item)
        case "image_generation_call":
            picture = {"type": "image", "mime_type": _PNG, "data": item.get("result")}
            return [{"type": MODEL, "content": [picture]}]
        case "mcp_call":
            return _remote_call(item)
    return []


def contents_of(content: object) -> list[Json]:
    """Return the contents for the content of a message, which may be a text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = content if isinstance(content, list) else []
    return [made for part in parts if (made := _content(part)) is not None]


def begun(step: Json) -> Json:
    """Return a step as it begins: without what its deltas write."""
    match step["type"]:
        case "model_output" | "thought":
            return {"type": step["type"]}
    empty = {name: type(step[name])() for name in _WRITTEN if name in step}
    return {**step, **empty}


def deltas_of(step: Json) -> list[Json]:
    """Return the deltas of a whole step."""
    kind = step["type"]
    match kind:
        case "model_output":
            return [delta for content in step.get("content") or () for delta in _written(content)]
        case "thought":
            deltas = [summary_delta(one["text"]) for one in step.get("summary") or ()]
            return deltas + signature_deltas(step)
        case "function_call":
            return [arguments_delta(orjson.dumps(step["arguments"]).decode())]
    return [{"type": kind, **{name: step[name] for name in _WRITTEN if name in step}}]


def summary_delta(text: str) -> Json:
    """Return the delta of a thought's text."""
    return {"type": "thought_summary", "content": {"type": "text", "text": text}}


def signature_deltas(step: Json) -> list[Json]:
    """Return the delta of a thought's signature, if it has one."""
    signature = step.get("signature")
    return [{"type": "thought_signature", "signature": signature}] if signature else []


def arguments_delta(text: str) -> Json:
    """Return the delta of a call's arguments."""
    return {"type": "arguments_delta", "arguments": text}


def annotation_of(annotation: Mapping[str, Any]) -> Json:
    """Return an annotation, without what interactions do not have."""
    names = ("type", "start_index", "end_index", "url", "title")
    return {name: annotation[name] for name in names if name in annotation}


def _written(content: Json) -> list[Json]:
    annotations = content.get("annotations")
    if not annotations:
        return [content]
    text = {name: value for name, value in content.items() if name != "annotations"}
    return [text, {"type": "text_annotation_delta", "annotations": annotations}]


def _call(item: Mapping[str, Any]) -> Json:
    return {"id": item.get("call_id"), "name": item.get("name")}


def _thought(item: Mapping[str, Any]) -> Json:
    texts = [*(item.get("summary") or ()), *(item.get("content") or ())]
    step: Json = {"type": THOUGHT, "summary": contents_of(texts)}
    if encrypted := item.get("encrypted_content"):
        step["signature"] = to_signature(encrypted)
    return step


def _search(item: Mapping[str, Any]) -> list[Json]:
    """Return the steps of a search, or of a page that was opened."""
    action = item.get("action") or {}
    call_id = item.get("id")
    if action.get("type") == "open_page":
        url = action.get("url") or ""
        status = "success" if item.get("status") == "completed" else "error"
        kind, arguments = "url_context", {"urls": [url]}
        result: Sequence[Json] = [{"url": url, "status": status}]
    else:
        queries = action.get("queries") or [action.get("query") or ""]
        kind, arguments, result = "google_search", {"queries": queries}, []
    return [
        {"type": f"{kind}_call", "id": call_id, "arguments": arguments},
        {"type": f"{kind}_result", "call_id": call_id, "result": result},
    ]


def _program(item: Mapping[str, Any]) -> list[Json]:
    call_id = item.get("id")
    arguments = {"language": "python", "code": item.get("code") or ""}
    logs = [str(one.get("logs") or "") for one in item.get("outputs") or ()]
    return [
        {"type": "code_execution_call", "id": call_id, "arguments": arguments},
        {
            "type": "code_execution_result",
            "call_id": call_id,
            "result": "".join(logs),
            "is_error": item.get("status") == "failed",
        },
    ]


def _remote_call(item: Mapping[str, Any]) -> list[Json]:
    call_id, names = item.get("id"), {"name": item.get("name")}
    server = {"server_name": item.get("server_label")}
    arguments = _object(item.get("arguments"))
    error = item.get("error")
    result = item.get("output") if error is None else str(error)
    kind = "mcp_server_tool"
    return [
        {"type": f"{kind}_call", "id": call_id, **names, **server, "arguments": arguments},
        {"type": f"{kind}_result", "call_id": call_id, **names, **server, "result": result or ""},
    ]


def _content(part: Any) -> Json | None:
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind in _TEXTS:
        text: Json = {"type": "text", "text": part.get("text") or ""}
        annotations = part.get("annotations")
        return {**text, "annotations": [*map(annotation_of, annotations)]} if annotations else text
    match kind:
        case "refusal":
            return {"type": "text", "text": part.get("refusal") or ""}
        case "input_image":
            return _medium("image", part.get("image_url"), part.get("file_id"))
        case "input_file":
            address = part.get("file_data") or part.get("file_url")
            return _medium("document", address, part.get("file_id"))
        case "input_audio":
            audio = part.get("input_audio") or {}
            mime = f"audio/{audio.get('format')}"
            return {"type": "audio", "mime_type": mime, "data": audio.get("data")}
    return None


def _medium(kind: str, address: str | None, file_id: str | None) -> Json:
    if file_id:
        return {"type": kind, "uri": file_name(file_id)}
    if address is None or (begin := _DATA_URL.match(address)) is None:
        return {"type": kind, "uri": address}
    made: Json = {"type": kind, "data": address[begin.end() :]}
    return {**made, "mime_type": begin[1]} if begin[1] else made


def _object(arguments: object) -> Json:
    try:
        value = orjson.loads(arguments) if isinstance(arguments, str) else None
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {}
