"""Items of a response for the input of an interaction. Pure.

An input is a text, a content, a list of contents, or a list of steps. The items are those from
which `steps` made the steps of an answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from facade.dialects.gemini.file_names import file_id_of
from facade.dialects.interactions.signatures import to_encrypted
from facade.dialects.validation import write_json
from services.common.errors import invalid

Json = dict[str, Any]

_CONTENTS: Final = ("text", "image", "document", "audio", "video")
# Levels of detail of a picture, by its resolution.
_DETAILS: Final = {"low": "low", "medium": "auto", "high": "high", "ultra_high": "high"}
# Formats of recordings, where they differ from the subtype of the MIME type.
_FORMATS: Final = {"mpeg": "mp3", "x-wav": "wav", "mp4": "m4a", "x-m4a": "m4a"}
_AUDIO: Final = frozenset({"wav", "mp3", "flac", "ogg", "opus", "aac", "m4a", "webm"})
_MEMBERS: Final = {
    "text": frozenset({"type", "text", "annotations"}),
    "image": frozenset({"type", "data", "uri", "mime_type", "resolution"}),
    "document": frozenset({"type", "data", "uri", "mime_type"}),
    "audio": frozenset({"type", "data", "uri", "mime_type"}),
    "video": frozenset({"type", "data", "uri", "mime_type"}),
}


# Exceptions that values of wrong types cause in the translation.
_MALFORMED: Final = (AttributeError, LookupError, TypeError)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Report a value of a wrong type, which the wire type leaves open, as invalid.

    Raises:
        GatewayError: invalid, naming the step or the tool at `path`.
    """
    try:
        yield
    except _MALFORMED:
        raise invalid(path, f"{path}: has a field of a wrong type") from None


class InputReader:
    """Translates the input of one interaction.

    Attributes:
        dropped: paths of fields that have no counterpart, without duplicates.
    """

    def __init__(self) -> None:
        self.dropped: dict[str, None] = {}
        # Items of programs that wait for their outputs, by the ids of their calls.
        self._programs: dict[str, Json] = {}

    def items(self, value: str | Json | Sequence[Json]) -> str | list[Json]:
        """Return the input of a response.

        Raises:
            GatewayError: invalid, naming the step or the content.
        """
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            with naming("input"):
                return [_message("user", [self._content(value, "input")])]
        items: list[Json] = []
        for index, step in enumerate(value):
            with naming(f"input[{index}]"):
                items += self._item(step, index)
        return items

    def _item(self, step: Json, index: int) -> list[Json]:
        path = f"input[{index}]"
        kind = step.get("type")
        if kind in _CONTENTS:
            return [_message("user", [self._content(step, path)])]
        match kind:
            case "user_input":
                return [_message("user", self._contents(step.get("content"), f"{path}.content"))]
            case "model_output":
                return self._answer(step, path)
            case "thought":
                return [_reasoning(step)]
            case "function_call":
                return [_call(step, path)]
            case "function_result":
                return [self._result(step, path)]
            case "google_search_result" | "url_context_result":
                return []  # their calls stand for them
            case "google_search_call" | "url_context_call":
                return [_search(step)]
            case "code_execution_call":
                return [self._program(step)]
            case "code_execution_result":
                self._add_output(step)
                return []
            case str():
                return [
                    _message("assistant", [_text(f"[{kind}] {_json(step, path)}", "output_text")])
                ]
        raise invalid(f"{path}.type", f"{path}.type: must be the type of a step or of a content")

    def _answer(self, step: Json, path: str) -> list[Json]:
        parts = []
        for index, content in enumerate(step.get("content") or ()):
            if content.get("type") != "text":
                where = f"{path}.content[{index}]"
                raise invalid(
                    where, f"{where}: must be a text; send media of an answer as user_input"
                )
            parts.append(_text(content.get("text") or "", "output_text"))
        return [_message("assistant", parts)]

    def _contents(self, contents: Any, path: str) -> list[Json]:
        if not isinstance(contents, list) or not all(isinstance(one, dict) for one in contents):
            raise invalid(path, f"{path}: must be a list of contents")
        return [self._content(one, f"{path}[{index}]") for index, one in enumerate(contents)]

    def _content(self, content: Mapping[str, Any], path: str) -> Json:
        kind = content.get("type")
        if kind not in _CONTENTS:
            expected = ", ".join(_CONTENTS)
            raise invalid(f"{path}.type", f"{path}.type: must be {expected}")
        for name, value in content.items():
            if name not in _MEMBERS[kind] and value is not None:
                self.dropped[f"input[].content[].{name}"] = None
        if kind == "text":
            if not isinstance(content.get("text"), str):
                raise invalid(f"{path}.text", f"{path}.text: must be a string")
            return _text(content["text"], "input_text")
        return _medium(kind, content, path)

    def _result(self, step: Json, path: str) -> Json:
        result = step.get("result")
        if isinstance(result, list) and all(isinstance(one, dict) for one in result):
            output: Any = self._contents(result, f"{path}.result")
        elif isinstance(result, str):
            output = result
        else:
            output = _json(result, f"{path}.result")
        if step.get("is_error") and isinstance(output, str):
            output = output if isinstance(result, dict) else _json({"error": output}, path)
        return {
            "type": "function_call_output",
            "call_id": _named(step, "call_id", path),
            "output": output,
        }

    def _program(self, step: Json) -> Json:
        call_id = str(step.get("id") or "")
        code = (step.get("arguments") or {}).get("code") or ""
        item = {
            "type": "code_interpreter_call",
            "id": call_id,
            "code": code,
            "container_id": "",
            "status": "completed",
            "outputs": None,
        }
        self._programs[call_id] = item
        return item

    def _add_output(self, step: Json) -> None:
        item = self._programs.get(str(step.get("call_id") or ""))
        if item is not None:
            item["outputs"] = [{"type": "logs", "logs": str(step.get("result") or "")}]
            if step.get("is_error"):
                item["status"] = "failed"


def _message(role: str, content: list[Json]) -> Json:
    return {"type": "message", "role": role, "content": content}


def _text(text: str, kind: str) -> Json:
    return {"type": kind, "text": text}


def _json(value: object, path: str) -> str:
    return write_json(value, path).decode()


def _named(step: Json, field: str, path: str) -> str:
    value = step.get(field)
    if not isinstance(value, str) or not value:
        raise invalid(f"{path}.{field}", f"{path}.{field}: is required")
    return value


def _reasoning(step: Json) -> Json:
    texts = [one.get("text") for one in step.get("summary") or () if isinstance(one, dict)]
    summary = [_text(text, "summary_text") for text in texts if isinstance(text, str)]
    item: Json = {"type": "reasoning", "summary": summary}
    if isinstance(signature := step.get("signature"), str):
        item["encrypted_content"] = to_encrypted(signature)
    return item


def _call(step: Json, path: str) -> Json:
    arguments = step.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        raise invalid(f"{path}.arguments", f"{path}.arguments: must be an object")
    return {
        "type": "function_call",
        "call_id": _named(step, "id", path),
        "name": _named(step, "name", path),
        "arguments": _json(arguments or {}, f"{path}.arguments"),
    }


def _search(step: Json) -> Json:
    arguments = step.get("arguments") or {}
    action: Json
    if step["type"] == "url_context_call":
        action = {"type": "open_page", "url": next(iter(arguments.get("urls") or ()), None)}
    else:
        queries = arguments.get("queries") or [""]
        action = {"type": "search", "query": queries[0], "queries": queries}
    call_id = step.get("id") or ""
    return {"type": "web_search_call", "id": call_id, "status": "completed", "action": action}


def _medium(kind: str, content: Mapping[str, Any], path: str) -> Json:
    data, uri = content.get("data"), content.get("uri")
    if bool(data) == bool(uri):
        raise invalid(path, f"{path}: must have either data or uri")
    mime = content.get("mime_type") or ""
    file_id = file_id_of(uri) if uri else ""
    if kind == "image":
        detail = _DETAILS.get(content.get("resolution") or "")
        own: Json = {"type": "input_image", **({"detail": detail} if detail else {})}
        if file_id:
            return {**own, "file_id": file_id}
        return {**own, "image_url": uri or f"data:{mime or 'image/png'};base64,{data}"}
    if kind == "audio" and data:
        subtype = mime.removeprefix("audio/")
        form = _FORMATS.get(subtype, subtype)
        if form in _AUDIO:
            return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    own = {"type": "input_file"}
    if file_id:
        return {**own, "file_id": file_id}
    if uri:
        return {**own, "file_url": uri}
    if not mime:
        raise invalid(f"{path}.mime_type", f"{path}.mime_type: is required with data")
    return {**own, "file_data": f"data:{mime};base64,{data}"}
