"""Reading of values in a LiteLLM configuration, whose shapes are not checked yet. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_VARIABLE = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


def tables(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the mapping with a name, or an empty one."""
    value = config.get(name)
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def variable_of(value: object) -> str:
    """Return the variable that `os.environ/NAME` names, or ""."""
    match = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return match[1] if match else ""


def text(value: object) -> str:
    """Return a text that is no reference to a variable, or ""."""
    return value.strip() if isinstance(value, str) and not variable_of(value) else ""


def named(value: object) -> Iterator[str]:
    """Yield the texts of a text or a list."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield item


def positive_int(value: object) -> int | None:
    """Return a positive whole number, also if it is written as text, else None."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if number > 0 else None
