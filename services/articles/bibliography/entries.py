"""References as formats of bibliographies are read into them, and what could not be read."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

Reference: TypeAlias = Mapping[str, str | Sequence[str]]

# Names of persons in the literal form, which is not divided into a family name and others.
LITERAL_NAMES = "literalNames"
# Fields that hold names of persons.
NAME_FIELDS = ("author", "editor", "translator")

_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_SPACES = re.compile(r"[ \t\r\n]+")


class Omission(NamedTuple):
    """A part of what a caller sent that the document does not hold.

    Attributes:
        place: where it was.
        reason: why it is missing.
    """

    place: str
    reason: str


class Entries(NamedTuple):
    """The references in a text, and what could not be read."""

    references: list[dict[str, str | list[str]]]
    omitted: list[Omission]


class SyntaxProblem(Exception):
    """Error raised for a text, or an entry, that is not in its format."""


def is_field_name(name: str) -> bool:
    """Return whether a field of a reference may have a name."""
    return _FIELD_NAME.fullmatch(name) is not None


def spaced(text: str) -> str:
    """Return a text with single spaces."""
    return _SPACES.sub(" ", text).strip(" ")


def names_of(reference: Reference, field: str) -> list[str]:
    """Return the names in a field of a reference."""
    names = reference.get(field, ())
    return [names] if isinstance(names, str) else list(names)


def literal_names(reference: Reference) -> frozenset[str]:
    """Return the names of a reference that are not those of persons."""
    return frozenset(names_of(reference, LITERAL_NAMES))


def text_of(value: str | Sequence[str]) -> str:
    """Return the value of a field as one text."""
    return value if isinstance(value, str) else "; ".join(value)
