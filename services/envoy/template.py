"""Templates of configuration files in YAML. Pure.

`$name` and `${name}` are replaced by values. The lines from `#if name` to `#end` are left out if
the value is empty or false. Those from `#for name` to `#end` are repeated for each item of a list
of mappings, whose values are added to the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Any

import orjson

Values = Mapping[str, Any]

_DIRECTIVE = re.compile(r"\s*#(?:(if|for) (\w+)|end)", re.ASCII)


def render(template: str, values: Values) -> str:
    """Return the text of a template with its values: texts as JSON strings, which are YAML too.

    Raises:
        KeyError: a value is missing.
    """
    return "".join(f"{line}\n" for line in _rendered(template.splitlines(), values))


def _rendered(lines: Sequence[str], values: Values) -> Iterator[str]:
    texts = {name: _to_yaml(value) for name, value in values.items()}
    line_number = 0
    while line_number < len(lines):
        directive = _DIRECTIVE.fullmatch(lines[line_number])
        if directive is None:
            yield Template(lines[line_number]).substitute(texts)
            line_number += 1
            continue
        end = _end_of_section(lines, line_number)
        keyword, name = directive.groups()
        items: Sequence[Values] = values[name] if keyword == "for" else [{}] if values[name] else []
        for item in items:
            yield from _rendered(lines[line_number + 1 : end], {**values, **item})
        line_number = end + 1


def _end_of_section(lines: Sequence[str], begin: int) -> int:
    """Return the index of the `#end` of the section that begins with a line."""
    depth = 0
    for index in range(begin, len(lines)):
        if directive := _DIRECTIVE.fullmatch(lines[index]):
            depth += 1 if directive[1] else -1
            if depth == 0:
                return index
    raise ValueError(f"line {begin + 1}: a section without #end")


def _to_yaml(value: object) -> str:
    match value:
        case str() | bool():
            return orjson.dumps(value).decode()
        case float():
            # Without an exponent, which is no duration.
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case _:
            return str(value)
