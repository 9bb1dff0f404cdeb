"""BibTeX and BibLaTeX: entries of a .bib file as references, and back."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from services.articles.bibliography.entries import (
    LITERAL_NAMES,
    NAME_FIELDS,
    Entries,
    Omission,
    Reference,
    SyntaxProblem,
    is_field_name,
    literal_names,
    names_of,
    spaced,
    text_of,
)
from services.articles.bibliography.inheritance import Entry, inherited
from services.articles.bibliography.latex import decode, encode, is_balanced
from services.articles.bibliography.names import is_braced, split_names
from services.articles.bibliography.types import to_bibtex

# Characters of a value, with abbreviations in full, and of all values: abbreviations can name
# others.
_MAX_VALUE = 50_000
_MAX_CHARACTERS = 8 << 20
# Entries with errors: each may be read to the end of the text.
_MAX_ERRORS = 100
_ENTRY = re.compile(r"@[ \t\r\n]*([A-Za-z]+)[ \t\r\n]*([{(])")
_SPACE = re.compile(r"[ \t\r\n]*")
_KEY = re.compile(r"[^\s,}\"#%~\\{]*")
_NAME = re.compile(r"[^\s,={}\"#()'%@]*")
_BRACE = re.compile(r"[{}]")
_QUOTED = re.compile(r"[{}\"]")
_IGNORED = frozenset({"comment", "preamble"})
_MONTHS = {
    month: str(number)
    for number, month in enumerate(
        "jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1
    )
}
# Fields that are not LaTeX.
_VERBATIM = frozenset({"url", "doi", "file", "eprint", "isbn", "issn"})
_VERBATIM_ESCAPE = re.compile(r"\\([_%&#~$])")
# As Mendeley writes such a character, with or without the backslash.
_VERBATIM_GROUP = re.compile(r"\{(\\?[_%&#~$])\}")
_BEFORE_ESCAPED = re.compile(r"\\(?=[_%&#~$])")
# Our names of fields that have others there.
_NAMES = {
    **{"number": "issue", "report-number": "number", "journaltitle": "journal"},
    **{"type": "bib-type", "id": "bib-id"},
}
_BIBTEX_NAMES = {
    **{"issue": "number", "number": "report-number", "bib-type": "type", "bib-id": "id"},
    "bib-issue": "issue",
}
_BIBLATEX_NAMES = {**_BIBTEX_NAMES, "journal": "journaltitle"}
_YEAR = re.compile(r"\d{4}(?!\d)", re.ASCII)
_NOT_IN_KEYS = re.compile(r"[\s,{}\"#%~\\]")


def parse(text: str) -> Entries:
    """Return the references in a .bib file; entries with errors are omitted."""
    references: list[dict[str, str | list[str]]] = []
    omitted: list[Omission] = []
    entries = list(_Reader(text).entries(omitted))
    for entry in inherited(entries, omitted):
        references.append(_reference(entry, omitted))
    return Entries(references, omitted)


def write(references: Sequence[Reference], *, is_biblatex: bool) -> str:
    """Return references as a .bib file, which `parse` reads back."""
    taken: set[str] = set()
    return "\n".join(_written(reference, is_biblatex, taken) for reference in references)


def keys_of(references: Iterable[Reference]) -> dict[str, str]:
    """Return the keys that references have in a .bib file, by their ids."""
    taken: set[str] = set()
    return {str(one["id"]): _key(str(one["id"]), taken) for one in references}


class _Reader:
    """Reads the entries of a .bib file one after the other, in linear time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._abbreviations: dict[str, str] = dict(_MONTHS)
        self._characters = 0

    def entries(self, omitted: list[Omission]) -> Iterator[Entry]:
        """Yield the entries that are valid.

        Raises:
            SyntaxProblem: too many are not.
        """
        errors = 0
        while (head := _ENTRY.search(self._text, self._at)) is not None:
            self._at = head.end()
            kind, closing = head[1].lower(), ")" if head[2] == "(" else "}"
            if kind in _IGNORED:
                continue
            key = ""
            try:
                if kind == "string":
                    self._abbreviations.update(self._fields(closing))
                    continue
                self._skip()
                key = self._take(_KEY)
                yield Entry(kind, key, self._entry_fields(key, closing, omitted))
            except SyntaxProblem as problem:
                errors += 1
                line = self._text.count("\n", 0, head.start()) + 1
                if errors > _MAX_ERRORS or self._characters > _MAX_CHARACTERS:
                    raise SyntaxProblem(f"too many errors; the last in line {line}") from None
                omitted.append(Omission(key or f"line {line}", str(problem)))
                self._at = head.end()

    def _entry_fields(self, key: str, closing: str, omitted: list[Omission]) -> Mapping[str, str]:
        if not key:
            raise SyntaxProblem("the entry has no key")
        fields: dict[str, str] = {}
        self._skip()
        if self._peek() == ",":
            self._at += 1
            for name, value in self._fields(closing):
                if name in fields:
                    omitted.append(Omission(key, f"the second field {name[:64]}"))
                fields.setdefault(name, value)
        else:
            self._expect(closing)
        return fields

    def _fields(self, closing: str) -> Iterator[tuple[str, str]]:
        """Yield the fields up to the end of an entry."""
        while True:
            self._skip()
            if self._peek() == closing:
                self._at += 1
                return
            name = self._take(_NAME).lower()
            if not name:
                raise SyntaxProblem(f"a name of a field, or {closing}, is missing")
            self._skip()
            self._expect("=")
            yield name, self._value()
            self._skip()
            if self._peek() == ",":
                self._at += 1
            elif self._peek() != closing:
                raise SyntaxProblem(f"a comma is missing after the field {name}")

    def _value(self) -> str:
        parts = [self._part()]
        length = len(parts[0])
        self._skip()
        while self._peek() == "#" and length <= _MAX_VALUE:
            self._at += 1
            parts.append(self._part())
            length += len(parts[-1])
            self._skip()
        value = "".join(parts)
        self._characters += len(value)
        if len(value) > _MAX_VALUE or self._characters > _MAX_CHARACTERS:
            raise SyntaxProblem(f"a value, or all values, are longer than {_MAX_VALUE} characters")
        return value

    def _part(self) -> str:
        self._skip()
        match self._peek():
            case "{":
                return self._enclosed(_BRACE, "}")
            case '"':
                return self._enclosed(_QUOTED, '"')
        word = self._take(_NAME)
        if not word:
            raise SyntaxProblem("a value is missing")
        if word.isdecimal():
            return word
        if word.lower() not in self._abbreviations:
            raise SyntaxProblem(f"the abbreviation {word[:64]} is not defined")
        return self._abbreviations[word.lower()]

    def _enclosed(self, marks: re.Pattern[str], closing: str) -> str:
        """Return the text up to a closing mark outside of braces, which is skipped."""
        start = self._at + 1
        depth = 0
        for mark in marks.finditer(self._text, start):
            if depth == 0 and mark[0] == closing:
                self._at = mark.end()
                return self._text[start : mark.start()]
            depth += {"{": 1, "}": -1}.get(mark[0], 0)
        self._at = len(self._text)
        raise SyntaxProblem("a value does not end")

    def _skip(self) -> None:
        self._take(_SPACE)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match[0]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise SyntaxProblem(f"{character} is missing")
        self._at += 1


def _reference(entry: Entry, omitted: list[Omission]) -> dict[str, str | list[str]]:
    reference: dict[str, str | list[str]] = {"id": entry.key, "type": entry.kind}
    literals: list[str] = []
    for name, value in entry.fields.items():
        field = _NAMES.get(name, name)
        if name == "issue" and "number" in entry.fields:
            field = "bib-issue"
        if not is_field_name(field):
            omitted.append(Omission(entry.key, f"the field {name[:64]}, whose name is not allowed"))
        elif field in reference:
            omitted.append(Omission(entry.key, f"the field {name[:64]}, beside another {field}"))
        elif name in _VERBATIM:
            grouped = _VERBATIM_GROUP.sub(r"\1", value)
            reference[field] = spaced(_VERBATIM_ESCAPE.sub(r"\1", grouped))
        elif field in NAME_FIELDS:
            names = split_names(value)
            reference[field] = [name for each in names if (name := spaced(decode(each)))]
            literals += [
                name for each in names if is_braced(each) and (name := spaced(decode(each)))
            ]
        else:
            reference[field] = spaced(decode(value))
    year = _YEAR.match(text_of(reference.get("date", "")))
    if year is not None:
        reference.setdefault("year", year[0])
    if literals:
        reference[LITERAL_NAMES] = literals
    return reference


def _written(reference: Reference, is_biblatex: bool, taken: set[str]) -> str:
    names = _BIBLATEX_NAMES if is_biblatex else _BIBTEX_NAMES
    literals = literal_names(reference)
    lines = []
    for field, value in reference.items():
        if field in ("id", "type", LITERAL_NAMES):
            continue
        if field in NAME_FIELDS:
            written = " and ".join(_name(each, literals) for each in names_of(reference, field))
        elif names.get(field, field) in _VERBATIM:
            written = _verbatim(text_of(value))
        else:
            written = encode(text_of(value), protects_capitals=field == "title")
        lines.append(f"  {names.get(field, field)} = {{{written}}},\n")
    key = _key(str(reference["id"]), taken)
    return f"@{to_bibtex(str(reference.get('type', '')))}{{{key},\n{''.join(lines)}}}\n"


def _name(name: str, literals: frozenset[str]) -> str:
    encoded = encode(name)
    is_one = split_names(f"x and {encoded} and x") == ["x", encoded, "x"]
    return encoded if is_one and name not in literals else f"{{{encoded}}}"


def _verbatim(text: str) -> str:
    """Return an address with the characters in percent code that would be read otherwise."""
    text = _BEFORE_ESCAPED.sub("%5C", text)
    if is_balanced(text) and not _VERBATIM_GROUP.search(text):
        return text
    return text.replace("{", "%7B").replace("}", "%7D")


def _key(identifier: str, taken: set[str]) -> str:
    key = base = _NOT_IN_KEYS.sub("_", identifier) or "_"
    number = 1
    while key in taken:
        number += 1
        key = f"{base}-{number}"
    taken.add(key)
    return key
