"""Write the rows of settings in the tables of `docs/`: `python -m tests.tools.setting_tables`.

A row of a table of settings whose first cell is a key is generated from the key's field. All other
rows, and the order of the rows, are written by hand.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from services.common.settings import PlanLimits, Settings
from services.common.settings.base import Section

DOCS = Path(__file__).parents[2] / "docs"
_TABLE = "| setting | default |"
_ROW = re.compile(r"\| `([a-z_]+(?:\.[a-z_]+)+)` \|.*")
_DAY_S = 86_400
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def main() -> None:
    """Write the tables of all documents."""
    for document in documents():
        document.write_text(with_rows(document.read_text()))


def documents() -> list[Path]:
    """Return the documents with tables of settings."""
    return [path for path in sorted(DOCS.rglob("*.md")) if _TABLE in path.read_text()]


def limits() -> Iterator[str]:
    """Yield the keys that need a row in `docs/limits.md`: callers see when they are reached."""
    return (key for key, field in _fields().items() if _extra(field)["seen"])


def keys(text: str) -> Iterator[str]:
    """Yield the keys that have a row in a document."""
    return (key for _, key in _lines(text) if key)


def with_rows(text: str) -> str:
    """Return a document with newly generated rows.

    Raises:
        KeyError: there is no such setting.
    """
    fields = _fields()
    return "".join(
        f"{_row(key, fields[key], line.count(' |')) if key else line}\n"
        for line, key in _lines(text)
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line, with the key of a row of a table of settings, or ""."""
    in_table = False
    for line in text.splitlines():
        in_table = line.startswith(_TABLE) or (in_table and line.startswith("|"))
        match = _ROW.fullmatch(line) if in_table else None
        yield line, match[1] if match else ""


def _row(key: str, field: FieldInfo, columns: int) -> str:
    extra = _extra(field)
    description = "; ".join(filter(None, (field.description, extra["details"])))
    cells = [f"`{key}`", _default(key, field), description, extra["seen"]]
    return "".join(f"| {cell} " for cell in cells[:columns]) + "|"


def _default(key: str, field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, PlanLimits):
        plans = (_words(key, field, limit) for limit in value.model_dump().values())
        return f"{', '.join(plans)} by plan"
    return _words(key, field, value)


def _words(key: str, field: FieldInfo, value: Any) -> str:
    """Return a value with its unit, which the key or the description names."""
    if key.endswith("_per_s"):
        return f"{value:,} bytes/s"
    if key.endswith("_s"):
        is_days = value % _DAY_S == 0 and value > _DAY_S
        return f"{value // _DAY_S:,} days" if is_days else f"{value:,} s"
    if "bytes" in key or (field.description or "").startswith("bytes"):
        for size, unit in _SIZES:
            if value and value % size == 0:
                return f"{value // size:,} {unit}"
    return f"{value:,}"


def _fields(section: type[Section] = Settings, prefix: str = "") -> Mapping[str, FieldInfo]:
    """Return the documented fields by key."""
    fields: dict[str, FieldInfo] = {}
    for name, field in section.model_fields.items():
        if field.json_schema_extra is not None:
            fields[prefix + name] = field
        if isinstance(field.default, Section):
            fields |= _fields(type(field.default), f"{prefix}{name}.")
    return fields


def _extra(field: FieldInfo) -> Mapping[str, Any]:
    assert isinstance(field.json_schema_extra, dict)
    return field.json_schema_extra


if __name__ == "__main__":
    main()
