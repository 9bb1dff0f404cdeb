"""The settings file that `gateway config example` prints: every key with its default."""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from services.common.settings import CONFIG_VARIABLE, ENVIRONMENT, Settings
from services.common.settings.base import Section

_WIDTH = 98
# Column of the descriptions; those of longer lines stand above them.
_COLUMN = 30
_LONGEST = 48


def settings_example() -> str:
    """Return the file; as printed, it is valid."""
    variables = ", ".join(ENVIRONMENT)
    head = (
        "Settings of the gateway. Every key is optional; the values below are the defaults, and "
        "examples are comments. Keys that end in _s are in seconds. Environment variables override "
        f"this file: {variables}; {CONFIG_VARIABLE} sets the path of the file. On SIGHUP, a "
        "running gateway reloads providers and their keys, models and roles."
    )
    return "\n".join([*_comment(head), *_tables(Settings, "")]) + "\n"


def _tables(section: type[Section], prefix: str) -> Iterator[str]:
    """Yield the lines of the tables in a section."""
    for name, field in section.model_fields.items():
        default, shown = _default(field), _shown(field)
        if isinstance(default, Section):
            yield from _table(f"[{prefix}{name}]", field, type(default))
            yield from _tables(type(default), f"{prefix}{name}.")
        elif isinstance(shown, dict) and not prefix:
            (key, values), (_, item) = *shown.items(), get_args(field.annotation)
            yield from _commented_out(_table(f"[{name}.{key}]", field, item, values))
        elif item := _listed_section(field):
            header = f"[[{prefix}{name}]]"
            yield from _commented_out(_table(header, field, item, _shown(field)[0]))


def _listed_section(field: FieldInfo) -> type[Section] | None:
    """Return the type of the tables in a field that is a list of tables, or None."""
    arguments = get_args(field.annotation)
    item = arguments[0] if arguments else None
    is_section = isinstance(item, type) and issubclass(item, Section)
    return item if is_section and isinstance(_shown(field), list) else None


def _commented_out(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of an example as comments: a gateway must not use what it only shows."""
    for line in lines:
        if not line or line.startswith("#"):
            yield line
        else:
            yield f"  {line}" if line.startswith(" ") else f"# {line}"


def _table(
    header: str,
    field: FieldInfo,
    section: type[Section],
    values: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """Yield the lines of one table, without the tables below it.

    Args:
        header: the header line.
        field: the field of the table.
        section: the type of the table.
        values: values of an example.
    """
    fields = {
        name: field
        for name, field in section.model_fields.items()
        if not isinstance(_default(field), Section)
        and (values is not None or _listed_section(field) is None)
    }
    if not fields:
        return
    yield ""
    yield from _described(header, field)
    for name, key in fields.items():
        if values is not None and name in values:
            yield from _described(f"{name} = {_toml(values[name])}", key)
        elif key.examples:
            yield from _described(f"# {name} = {_toml(_shown(key))}", key)
        elif _default(key) is not None:
            yield from _described(f"{name} = {_toml(_default(key))}", key)


def _described(line: str, field: FieldInfo) -> Iterator[str]:
    """Yield a line with the description of its field in comments."""
    description = field.description or ""
    if not description:
        yield line
    elif len(line) > _LONGEST:
        yield from _comment(description)
        yield line
    else:
        beside = line.ljust(_COLUMN - 2) + "  # "
        yield from _comment(description, beside, " " * _COLUMN + "# ")


def _comment(text: str, first: str = "# ", others: str = "# ") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _shown(field: FieldInfo) -> Any:
    return field.examples[0] if field.examples else None


def _toml(value: object) -> str:
    """Return a value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case SecretStr():
            return json.dumps(value.get_secret_value())
        case str() | Path() | Decimal():
            return json.dumps(str(value), ensure_ascii=False)
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{key} = {_toml(item)}' for key, item in value.items())}}}"
    raise TypeError(f"no TOML for {value!r}")
