"""CSL-JSON: items as references, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

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
from services.articles.bibliography.names import NameParts, parts_of
from services.articles.bibliography.types import to_csl

_FIELDS = {
    **{"container-title": "journal", "page": "pages", "DOI": "doi", "URL": "url"},
    **{"ISBN": "isbn", "publisher-place": "address", "issued": "date"},
}
_CSL_FIELDS = {field: csl for csl, field in _FIELDS.items()}
_DATES = frozenset({"issued", "accessed", "submitted", "event-date", "original-date"})
_NAMES = frozenset(
    {*NAME_FIELDS, "collection-editor", "container-author", "director", "interviewer", "recipient"}
)


def parse(text: str) -> Entries:
    """Return the references in an array of items.

    Raises:
        SyntaxProblem: the text is no JSON array.
    """
    try:
        items = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise SyntaxProblem(f"is not valid JSON: {error}") from None
    if isinstance(items, dict):
        items = items.get("items", [items])
    if not isinstance(items, list):
        raise SyntaxProblem("must be an array of items")
    return parse_items(items)


def parse_items(items: Sequence[Any]) -> Entries:
    """Return the references in items."""
    references: list[dict[str, str | list[str]]] = []
    omitted: list[Omission] = []
    for number, item in enumerate(items):
        if isinstance(item, dict):
            references.append(_reference(item, f"item {number}", omitted))
        else:
            omitted.append(Omission(f"item {number}", "it is no object"))
    return Entries(references, omitted)


def write(references: Sequence[Reference]) -> str:
    """Return references as an array of items, which `parse` reads back."""
    items = [to_item(reference) for reference in references]
    return orjson.dumps(items, option=orjson.OPT_INDENT_2).decode()


def _reference(
    item: Mapping[str, Any], place: str, omitted: list[Omission]
) -> dict[str, str | list[str]]:
    reference: dict[str, str | list[str]] = {}
    literals: list[str] = []
    place = item["id"] if isinstance(item.get("id"), str) else place
    for name, value in item.items():
        field = _FIELDS.get(name, name)
        converted: str | list[str] | None
        if name in _NAMES:
            converted = _names(value, literals)
        elif name in _DATES:
            converted = _date(value)
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            converted = None
        else:
            converted = spaced(str(value))
        if converted is None or not is_field_name(field) or field in reference:
            omitted.append(Omission(place, f"the field {name[:64]}, which has another form"))
        elif converted:
            reference[field] = converted
    if literals:
        reference[LITERAL_NAMES] = literals
    date = reference.pop("date", "")
    if date:
        reference["year"] = text_of(date).partition("-")[0]
        if date != reference["year"]:
            reference["date"] = date
    return reference


def _names(value: Any, literals: list[str]) -> list[str] | None:
    if not isinstance(value, list) or not all(isinstance(name, dict) for name in value):
        return None
    names = []
    for parts in value:
        texts = {key: spaced(part) for key, part in parts.items() if isinstance(part, str)}
        if literal := texts.get("literal"):
            literals.append(literal)
            names.append(literal)
            continue
        particle, dropped = texts.get("non-dropping-particle"), texts.get("dropping-particle")
        family = " ".join(filter(None, (particle, texts.get("family"))))
        given_names = " ".join(filter(None, (texts.get("given"), dropped)))
        name = NameParts(family, given_names, texts.get("suffix", ""))
        if parts_of(str(name)) != name:
            literals.append(str(name))  # as one text it would be divided in another way
        names.append(str(name))
    return [name for name in names if name]


def _date(value: Any) -> str | None:
    """Return a date as its numbers with hyphens, or as its text."""
    if not isinstance(value, dict):
        return None
    for key in ("raw", "literal"):
        if isinstance(value.get(key), str):
            return spaced(value[key])
    parts = value.get("date-parts")
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], list):
        return None
    numbers = [str(part) for part in parts[0][:3] if isinstance(part, str | int)]
    year, *day = numbers or [""]
    return "-".join((year, *(part.zfill(2) for part in day)))


def to_item(reference: Reference) -> dict[str, Any]:
    """Return a reference as an item."""
    literals = literal_names(reference)
    item: dict[str, Any] = {}
    for field, value in reference.items():
        name = _CSL_FIELDS.get(field, field)
        if field in (LITERAL_NAMES, "year", "date"):
            continue
        if field == "type":
            item[name] = to_csl(text_of(value))
        elif name in _NAMES:
            item[name] = [_parts(each, literals) for each in names_of(reference, field)]
        elif name in _DATES:
            item[name] = _date_parts(text_of(value))
        else:
            item[name] = text_of(value)
    if issued := text_of(reference.get("date", "") or reference.get("year", "")):
        item["issued"] = _date_parts(issued)
    return item


def _parts(name: str, literals: frozenset[str]) -> dict[str, str]:
    if name in literals:
        return {"literal": name}
    parts = parts_of(name)
    named = {"family": parts.family, "given": parts.given_names, "suffix": parts.suffix}
    return {name: part for name, part in named.items() if part}


def _date_parts(date: str) -> dict[str, Any]:
    numbers = date.split("-")
    is_date = len(numbers) <= 3 and all(
        number.isascii() and number.isdecimal() and len(number) <= 4 for number in numbers
    )
    return {"date-parts": [[int(number) for number in numbers]]} if is_date else {"raw": date}
