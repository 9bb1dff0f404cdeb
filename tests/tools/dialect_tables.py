"""Write the tables of verdicts: `python -m tests.tools.dialect_tables`.

They are in `docs/internals/dialects.md`.

They show the fields of requests and answers, and the members of messages, items and tools. All
deeper fields are in the table of verdicts alone (`tests/surface/table.py`).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.surface.table import COLUMNS, KINDS, TO, verdicts

DOCUMENT = Path(__file__).parents[2] / "docs" / "internals" / "dialects.md"
_TABLE = re.compile(r"(<!-- verdicts: (\w+) -->\n).*?(<!-- end -->)", re.S)
# A field, a field of an object, a member of a list or union, or a block of a message.
_SHOWN = re.compile(r"\w+(\.\w+|\[[\w/]+\])?|messages\[\w+\]\.content\[\w+\]")
# Objects that are shown without their fields.
_WHOLE = frozenset({"usage"})
_TITLES = {
    "openai": "OpenAI",
    "responses": "OpenAI",
    "compatible": "compatible servers",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "bedrock": "Bedrock",
}
_CALLERS = {"chat": "a chat", "messages": "messages", "responses": "responses"}


def main() -> None:
    """Write the tables."""
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text()))


def with_tables(text: str) -> str:
    """Return the document with newly generated tables."""
    return _TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], text)


def table(dialect: str) -> str:
    """Return the table of a dialect; fields with the same verdicts share a row."""
    titles = _TITLES if dialect in KINDS else _CALLERS
    head = ["field", *(titles[column] for column in COLUMNS[dialect])]
    lines = [head, ["---"] * len(head)]
    for row, paths in _rows(verdicts(dialect)):
        lines.append([", ".join(f"`{path}`" for path in paths), *map(_cell, row)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _rows(
    rows: Mapping[str, Sequence[str]],
) -> Iterator[tuple[tuple[str, ...], Sequence[str]]]:
    shared: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, row in _shown(rows):
        shared[tuple(row)].append(path)
    return iter(sorted(shared.items(), key=lambda item: item[1]))


def _shown(rows: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the paths that are shown: of objects the fields, of enumerations with different
    verdicts the values.
    """
    values: defaultdict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    objects = {path.partition(".")[0] for path in rows if "." in path} - _WHOLE
    for path, row in sorted(rows.items()):
        field, is_value, value = path.partition("=")
        is_object = field in objects and "[" not in field
        is_of_whole = field.partition(".")[0] in _WHOLE and "." in field
        if _SHOWN.fullmatch(field) and not is_object and not is_of_whole:
            if is_value:
                values[field][value] = row
            else:
                yield path, row
    for field, by_value in values.items():
        if len(set(map(tuple, by_value.values()))) == 1:
            yield field, next(iter(by_value.values()))
        else:
            yield from ((f"{field}: {value}", row) for value, row in by_value.items())


def _cell(verdict: str) -> str:
    return f"`→ {verdict.removeprefix(TO)}`" if verdict.startswith(TO) else verdict


if __name__ == "__main__":
    main()
