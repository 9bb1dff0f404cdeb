"""Folds the chunks of a streamed chat completion to the object that is stored. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

_DATA = b"data: "
_DONE = b"[DONE]"
Json = dict[str, Any]


def completion_of(stream: bytes) -> Json | None:
    """Return the chat completion of a stream of chunks; None without any."""
    chunks = [
        orjson.loads(line.removeprefix(_DATA))
        for line in stream.split(b"\n")
        if line.startswith(_DATA) and not line.startswith(_DATA + _DONE)
    ]
    chunks = [chunk for chunk in chunks if "choices" in chunk]
    if not chunks:
        return None
    completion: Json = {}
    choices: dict[int, Json] = {}
    for chunk in chunks:
        completion |= {name: value for name, value in chunk.items() if value is not None}
        for choice in chunk["choices"]:
            _add_choice(choices.setdefault(choice["index"], {"message": {}}), choice)
    completion["object"] = "chat.completion"
    completion["choices"] = [choices[index] for index in sorted(choices)]
    return completion


def _add_choice(whole: Json, choice: Mapping[str, Any]) -> None:
    for name, value in choice.items():
        if name == "delta":
            _merge(whole["message"], value)
        elif isinstance(value, Mapping):
            _merge(whole.setdefault(name, {}), value)
        elif value is not None or name not in whole:
            whole[name] = value


def _merge(whole: Json, delta: Mapping[str, Any]) -> None:
    """Add a delta: texts are joined, and items of lists with an `index` are merged."""
    for name, value in delta.items():
        before = whole.get(name)
        if before is None:
            whole[name] = [] if isinstance(value, list) else value
            before = whole[name]
            if not isinstance(value, list):
                if isinstance(value, Mapping):
                    whole[name] = {}
                    _merge(whole[name], value)
                continue
        if isinstance(before, str) and isinstance(value, str):
            whole[name] = value if name in _CONSTANT else before + value
        elif isinstance(before, dict) and isinstance(value, Mapping):
            _merge(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            _extend(before, value)
        elif value is not None:
            whole[name] = value


# Texts that are the same in each delta.
_CONSTANT = frozenset({"role", "type", "id", "name", "format"})


def _extend(items: list[Any], more: Iterable[Any]) -> None:
    """Add items to a list; one with the `index` of an earlier one is merged into it."""
    for item in more:
        index = item.get("index") if isinstance(item, Mapping) else None
        same = [one for one in items if index is not None and one.get("index") == index]
        if same:
            _merge(same[0], item)
        else:
            added: Json = {}
            if isinstance(item, Mapping):
                _merge(added, item)
            items.append(added if isinstance(item, Mapping) else item)
