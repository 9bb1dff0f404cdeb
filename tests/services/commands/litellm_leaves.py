"""Which lines of a LiteLLM configuration its translation loses, found by taking each away."""

import copy
import re
from collections.abc import Iterator
from typing import Any

from services.config_files.litellm import translate

Path = tuple[str | int, ...]


def lost_leaves(config: dict[str, Any]) -> list[str]:
    """Return the paths of all values that are neither named nor used.

    A value is named if the report has a line of its path, or says that what contains it has no
    counterpart. It is used if the result is another one without it, or with another value.
    """
    result = translate(config, {})
    report = result.report
    named = set(map(_path_of, (*report.unsupported, *report.needless)))
    exactly_named = {line.partition(":")[0] for line in report.steps}
    return [
        ".".join(map(str, path))
        for path, value in _leaves(config, ())
        if not any(_texts(path[: length + 1]) & named for length in range(len(path)))
        and not _texts(path) & exactly_named
        and _outcome(_without(config, path)) == _outcome(config)
        and _outcome(_with(config, path, _another(value))) == _outcome(config)
    ]


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield each value that contains no other; one of None is as none at all."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list) and item:
            yield from _leaves(item, (*path, key))
        elif item is not None:
            yield (*path, key), item


def _path_of(line: str) -> str:
    """Return the path of a line, such as "model_list[2] (name): litellm_params.weight of …"."""
    path, _, remark = line.partition(" ")
    keys = re.match(r"\(.*?\): ((?:litellm_params|model_info)\.\w+)", remark)
    return f"{path}.{keys[1]}" if keys else path.removesuffix(":")


def _texts(path: Path) -> set[str]:
    """Return how a path may be written: entries of `model_list` have a number or none."""
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path).lstrip(".")
    return {text, re.sub(r"^model_list\[\d+\]\.", "model_list[].", text)}


def _outcome(config: dict[str, Any]) -> object:
    try:
        result = translate(config, {})
    except ValueError as error:
        return str(error)
    return result.content, result.report


def _without(config: dict[str, Any], path: Path) -> dict[str, Any]:
    changed, last = _at(config, path)
    del last[path[-1]]
    return changed


def _with(config: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    changed, last = _at(config, path)
    last[path[-1]] = value
    return changed


def _at(config: dict[str, Any], path: Path) -> tuple[dict[str, Any], Any]:
    """Return a copy of a configuration, and what contains the value at a path of it."""
    changed = copy.deepcopy(config)
    last: Any = changed
    for key in path[:-1]:
        last = last[key]
    return changed, last


def _another(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}-other"
    return "other"
