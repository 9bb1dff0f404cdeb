"""Remove what a model has rejected from the body of a request, wherever it is. Pure.

The names are those of `services.inference.learned.refused_paths` and `text_bounds`. Top-level
fields, and those of messages with a canonical form, are left out by the adapters.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from services.inference.learned.refusals import NAMES
from services.inference.learned.refused_paths import BETA, KEYWORD, TOOL, snake, steps_of
from services.inference.learned.text_bounds import IDS, SEPARATOR
from services.inference.providers.base import Call
from services.inference.providers.opaque_json import Json, write_body
from services.inference.providers.schemas import without_keywords

_CACHE = "cache_control"
# Values of the caller's own, in which no field of the request is.
_OPAQUE = frozenset(
    {
        *("input_schema", "parameters", "parametersJsonSchema", "schema", "arguments", "metadata"),
        *("responseSchema", "responseJsonSchema", "args"),
    }
)
# Fields of a tool with its parameters.
_PARAMETERS = ("input_schema", "parameters", "parametersJsonSchema")
# Fields of a tool, or of a list of tools, that hold such a field.
_TOOLS = ("function", "custom", "functionDeclarations")
_HASH = 16  # hexadecimal digits of a shortened id
_ELLIPSIS = "…"


def without_refused(call: Call, body: bytes) -> bytes:
    """Return a request body without what the model has rejected; report it in `call`."""
    names = [name for name in call.refused_fields if _is_of_body(name)]
    if not names:
        return body
    fields: Json = orjson.loads(body)
    changed = [_applied(call, fields, name) for name in sorted(names)]
    return write_body(fields) if any(changed) else body


def _is_of_body(name: str) -> bool:
    if name in NAMES:
        return name == _CACHE
    return "." in name or SEPARATOR in name


def _applied(call: Call, body: Json, name: str) -> bool:
    """Apply one refusal; return whether it changed the body."""
    if name.startswith(BETA):
        return False  # in a header
    if SEPARATOR in name:
        path, _, bound = name.partition(SEPARATOR)
        first, *inner = steps_of(path)
        key = _key(body, first)
        # Top-level fields of the same name are others.
        holder = body if not inner else body.get(key or "")
        if not _shorten(holder, inner or [first], int(bound)):
            return False
        call.adapted.append(f"{_reported(path)}:shortened")
        return True
    if name.startswith(TOOL):
        return _open_tool(call, body, name.removeprefix(TOOL))
    if name.startswith(KEYWORD):
        keyword = name.removeprefix(KEYWORD)
        if not _without_keyword(body, keyword):
            return False
        call.drop(f"tools[].input_schema.{keyword}")
        return True
    if name == _CACHE or name.startswith(f"{_CACHE}."):
        steps = steps_of(name)
        removed = [_remove(holder, steps) for holder in list(_holders(body, _CACHE))]
        if any(removed):
            call.drop(name)
        return any(removed)
    first, *inner = steps_of(name)
    key = _key(body, first)
    # Top-level fields of the same name are others.
    if key is None or not inner or not _remove(body[key], inner):
        return False
    call.drop(_reported(name))
    return True


def _reported(path: str) -> str:
    """Return the path as it is reported to callers, who may have written another dialect."""
    if path.startswith("tools[]."):
        steps = [step for step in steps_of(path)[1:] if step not in _TOOLS]
        return ".".join(("tools[]", *steps))
    if "thinking_config" in steps_of(path):
        return "thinking"
    return f"extra.{path}"


def _remove(value: Any, steps: list[str]) -> bool:
    """Remove the field at the end of a path; return whether there was one."""
    if isinstance(value, list):
        return any([_remove(one, steps) for one in value])
    if not isinstance(value, dict):
        return False
    inner = steps[1:]
    if not inner:
        key = _key(value, steps[0])
        return key is not None and (value.pop(key), True)[1]
    return any(_remove(one, inner) for one in _within(value, steps[0]))


def _shorten(value: Any, steps: list[str], bound: int) -> bool:
    """Shorten the texts at the end of a path; return whether there was a longer one."""
    if isinstance(value, list):
        return any([_shorten(one, steps, bound) for one in value])
    if not isinstance(value, dict):
        return False
    inner = steps[1:]
    if inner:
        return any(_shorten(one, inner, bound) for one in _within(value, steps[0]))
    key = _key(value, steps[0])
    if key in IDS:
        # Calls and results refer to each other by ids of several names.
        return any([_shorten_id(value, name, bound) for name in IDS])
    text = value.get(key or "")
    if not isinstance(text, str) or len(text) <= bound:
        return False
    value[key] = text[: bound - 1] + _ELLIPSIS
    return True


def _shorten_id(value: Json, name: str, bound: int) -> bool:
    call_id = value.get(name)
    if not isinstance(call_id, str) or len(call_id) <= bound:
        return False
    digest = hashlib.sha256(call_id.encode()).hexdigest()[: min(_HASH, bound)]
    value[name] = call_id[: max(0, bound - _HASH)] + digest
    return True


def _within(value: Json, step: str) -> Iterator[Any]:
    """Yield what a step of a path leads to from an object.

    Servers add the kinds of messages and blocks to paths: they lead to the object itself, as does a
    name that the object does not have.
    """
    key = _key(value, step)
    if key is not None:
        yield value[key]
    if key is None or step in (value.get("type"), value.get("role")):
        yield value


def _key(value: Json, step: str) -> str | None:
    """Return the name of a field in an object, in `snake_case` or `camelCase`; None without it."""
    if step in value:
        return step
    snake_case = snake(step)
    return next((name for name in value if snake(name) == snake_case), None)


def _holders(value: Any, name: str) -> Iterator[Json]:
    """Yield the objects that have a field, outside of values of the caller's own."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            if name in one:
                yield one
            is_call = one.get("type") in ("tool_use", "server_tool_use")
            waiting += [
                inner
                for key, inner in one.items()
                if key not in _OPAQUE and not (key == "input" and is_call)
            ]


def _without_keyword(body: Json, keyword: str) -> bool:
    """State a keyword of the tools' parameters in descriptions; return whether there was one."""
    has_changed = False
    for tool in _tools(body.get("tools") or ()):
        for field in _PARAMETERS:
            schema = tool.get(field)
            if isinstance(schema, dict):
                tool[field] = fitted = without_keywords(schema, {keyword})
                has_changed |= fitted != schema
    return has_changed


def _open_tool(call: Call, body: Json, which: str) -> bool:
    """Replace the parameters of a tool by an object of any members, and state them in words."""
    has_changed = False
    for index, tool in enumerate(_functions(body.get("tools") or ())):
        if which not in (tool.get("name"), f"#{index}"):
            continue
        for field in _PARAMETERS:
            if field in tool:
                words = write_body({"parameters": tool[field]}).decode()
                description = tool.get("description")
                tool["description"] = f"{description}\n\n{words}" if description else words
                if field == "parametersJsonSchema":
                    del tool[field]  # Google takes no empty object
                else:
                    tool[field] = {"type": "object", "properties": {}}
                tool.pop("strict", None)
                call.adapt(call.schema_path(str(tool.get("name")), index))
                has_changed = True
    return has_changed


def _functions(tools: Iterable[Any]) -> Iterator[Json]:
    """Yield the objects that name a tool, in the order of the tools."""
    for tool in tools:
        if not isinstance(tool, dict):
            continue
        inner = tool.get("functionDeclarations")
        if isinstance(inner, list):
            yield from _functions(inner)
        else:
            inner = tool.get("function") or tool.get("custom")
            yield inner if isinstance(inner, dict) else tool


def _tools(tools: Iterable[Any]) -> Iterator[Json]:
    for tool in tools:
        if isinstance(tool, dict):
            yield tool
            for name in _TOOLS:
                inner = tool.get(name)
                yield from _tools(inner if isinstance(inner, list) else (inner,))
