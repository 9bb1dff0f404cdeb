"""Reading of a LiteLLM configuration, whose shapes are not checked yet. Pure.

A `Section` records which of its keys are read. `Section.list_unread` reports all others, so that no
line of a configuration is lost without a word.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_VARIABLE = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
# As many models are named in a line about their entries.
_MOST_NAMES = 5


@dataclass
class Report:
    """The report of a translation: lines, each of which begins with a path.

    Attributes:
        unsupported: lines about what has no counterpart.
        needless: lines about what this gateway does without a setting.
        steps: lines about what remains to be done, such as commands.
    """

    unsupported: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    _of_entries: dict[tuple[bool, str, str], dict[str, None]] = field(default_factory=dict)

    def of_entry(self, model: str, path: str, remark: str, *, is_needless: bool) -> None:
        """Report a key of an entry of `model_list`; entries with the same one share a line."""
        self._of_entries.setdefault((is_needless, path, remark), {})[model] = None

    def end_entries(self) -> None:
        """Add the lines of `of_entry`."""
        for (is_needless, path, remark), models in self._of_entries.items():
            names = list(models)
            others = len(names) - _MOST_NAMES
            listed = ", ".join(names[:_MOST_NAMES]) + (f" and {others} others" * (others > 0))
            lines = self.needless if is_needless else self.unsupported
            lines.append(f"{path} ({listed}){remark and ': '}{remark}")
        self._of_entries.clear()


class Section:
    """A mapping of the configuration, which records what is read of it.

    Attributes:
        values: its items.
        path: where it is, such as `litellm_settings`.
    """

    def __init__(self, values: object, path: str, report: Report, *, model: str = "") -> None:
        """Read a mapping; any other value is reported, and is like an empty mapping.

        Args:
            values: the mapping, or None.
            path: where it is.
            report: takes the lines about it.
            model: name of the model, in an entry of `model_list`.
        """
        self.path = path
        self.report = report
        self._model = model
        self._unread: dict[str, None] = {}
        self.values: Mapping[str, Any] = {}
        if isinstance(values, dict):
            self.values = {str(name): value for name, value in values.items()}
            self._unread = dict.fromkeys(self.values)
        elif values is not None:
            self._add("", "is no mapping", is_needless=False)

    def take(self, name: str) -> Any:
        """Return a value, or None; the caller uses it or reports it."""
        self._unread.pop(name, None)
        return self.values.get(name)

    def text(self, name: str) -> str:
        """Return a text or a number as text, or ""; report any other value."""
        value = self.take(name)
        if isinstance(value, str):
            return value.strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if value is not None:
            self.unsupported(name, "is no text")
        return ""

    def number(self, name: str, lowest: float, highest: float = math.inf) -> float | None:
        """Return a number within bounds, as int if it is whole; report any other value.

        Numbers may be written as text, as in LiteLLM.
        """
        value = self.take(name)
        if value is None:
            return None
        number = _number(value)
        if number is None or not lowest <= number <= highest:
            self.unsupported(name, "is no number in its range")
            return None
        return int(number) if number == int(number) else number

    def whole(self, name: str) -> int | None:
        """Return a positive whole number; report any other."""
        number = self.number(name, 1, 2**53)
        return None if number is None else int(number)

    def section(self, name: str) -> "Section":
        """Return a mapping within it."""
        path = f"{self.path}.{name}" if self.path else name
        return Section(self.take(name), path, self.report, model=self._model)

    def items(self, name: str) -> list[Any]:
        """Return a list; report any other value."""
        value = self.take(name)
        if isinstance(value, list):
            return value
        if value is not None:
            self.unsupported(name, "is no list")
        return []

    def unsupported(self, name: str, remark: str = "") -> None:
        """Report a key without a counterpart."""
        self._unread.pop(name, None)
        self._add(name, remark, is_needless=False)

    def needless(self, name: str, remark: str) -> None:
        """Report a key whose effect needs no setting."""
        self._unread.pop(name, None)
        self._add(name, remark, is_needless=True)

    def list_unread(self, remarks: Mapping[str, str], built_in: Mapping[str, str]) -> None:
        """Report all keys that were not read.

        Args:
            remarks: what there is instead, by key.
            built_in: remarks about switches, by key, whose effect is built in if they are on.
        """
        for name in list(self._unread):
            if name in built_in and self.values[name] is not False:
                self.needless(name, built_in[name])
            else:
                self.unsupported(name, remarks.get(name, ""))

    def _add(self, name: str, remark: str, *, is_needless: bool) -> None:
        path = ".".join(filter(None, (self.path, name)))
        if self._model:
            self.report.of_entry(self._model, path, remark, is_needless=is_needless)
        else:
            lines = self.report.needless if is_needless else self.report.unsupported
            lines.append(f"{path}{remark and ': '}{remark}")


def variable_of(value: object) -> str:
    """Return the variable that `os.environ/NAME` names, or ""."""
    match = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return match[1] if match else ""


def named(value: object) -> Iterator[str]:
    """Yield the texts of a text or a list."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield item


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
