"""Writing of settings as TOML."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def table(header: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table, without values of None."""
    yield header
    for name, value in values.items():
        if value is not None:
            yield f"{name} = {toml_value(value)}"


def comment(text: str) -> Iterator[str]:
    """Yield a text as comments, line by line."""
    for line in text.splitlines():
        yield f"# {line}".rstrip()


def join(parts: Iterable[Iterable[str]]) -> str:
    """Return the text of tables and comments, with an empty line between them."""
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def toml_value(value: Any) -> str:
    """Return a value as TOML, on one line."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            # TOML's basic strings have the escapes of JSON, but no surrogate pairs.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            items = (f"{_key(name)} = {toml_value(item)}" for name, item in value.items())
            return f"{{{', '.join(items)}}}"
    raise TypeError(f"no TOML for {type(value).__name__}")


def header_of(*names: str) -> str:
    """Return the header of a table with these names, quoted where TOML needs it."""
    return f"[{'.'.join(map(_key, names))}]"


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)
