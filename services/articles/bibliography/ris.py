"""RIS: the records of a file as references, and back."""

import re
from collections.abc import Sequence

from services.articles.bibliography.entries import (
    Entries,
    Omission,
    Reference,
    names_of,
    spaced,
    text_of,
)
from services.articles.bibliography.types import from_ris, to_ris

_LINE = re.compile(r"([A-Z][A-Z0-9])  -(?: (.*)|\s*)$", re.ASCII)
# Tags of fields with one value; the first is written.
_TAGS = {
    **{"title": ("TI", "T1"), "journal": ("T2", "JO", "JF", "JA"), "volume": ("VL",)},
    **{"issue": ("IS",), "publisher": ("PB",), "doi": ("DO",), "url": ("UR",), "isbn": ("SN",)},
    **{"abstract": ("AB", "N2"), "address": ("CY",), "edition": ("ET",), "language": ("LA",)},
    **{"id": ("ID",), "note": ("N1",), "series": ("T3",)},
}
_LIST_TAGS = {"author": ("AU", "A1"), "editor": ("ED", "A2"), "keywords": ("KW",)}
_FIELDS = {tag: field for field, tags in _TAGS.items() for tag in tags}
_LIST_FIELDS = {tag: field for field, tags in _LIST_TAGS.items() for tag in tags}
_YEARS = ("PY", "Y1")
_PAGES = "\u2013"
# Fields that are written by other tags.
_COMPOSED = frozenset({"type", "year", "date", "pages"})
# Names of fields for tags that have no meaning here.
_OTHER = "ris-"


def parse(text: str) -> Entries:
    """Return the references in a file; lines outside of records are omitted."""
    references: list[dict[str, str | list[str]]] = []
    omitted: list[Omission] = []
    # By tag its values, each in the lines that it has.
    record: dict[str, list[list[str]]] | None = None
    value: list[str] | None = None
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = line.strip(" \t\r")
        match = _LINE.match(line)
        if match is None:
            if value is not None:
                value.append(line)
            elif line:
                omitted.append(Omission(f"line {number}", "it is outside of a record"))
            continue
        tag = match[1]
        if tag == "TY":
            record = {}
        value = [match[2] or ""]
        if record is None:
            omitted.append(Omission(f"line {number}", "it is outside of a record"))
        elif tag == "ER":
            references.append(_reference(record))
            record = value = None
        else:
            record.setdefault(tag, []).append(value)
    if record is not None:
        omitted.append(Omission("the last record", "it has no end (ER)"))
    return Entries(references, omitted)


def write(references: Sequence[Reference]) -> tuple[str, list[Omission]]:
    """Return references as records, and the fields that those have no tag for."""
    omitted: list[Omission] = []
    records = [_record(reference, omitted) for reference in references]
    return "\n".join(records), omitted


def _reference(record: dict[str, list[list[str]]]) -> dict[str, str | list[str]]:
    values = {
        tag: [text for value in tag_values if (text := spaced(" ".join(value)))]
        for tag, tag_values in record.items()
    }
    first = {tag: tag_values[0] for tag, tag_values in values.items() if tag_values}
    reference: dict[str, str | list[str]] = {"type": from_ris(first.pop("TY", "GEN"))}
    for tag in first:
        if tag in _LIST_FIELDS:
            names = reference.setdefault(_LIST_FIELDS[tag], [])
            assert isinstance(names, list)
            names.extend(values[tag])
        elif tag in _FIELDS and _FIELDS[tag] not in reference:
            reference[_FIELDS[tag]] = " ".join(values[tag])
        elif tag not in ("SP", "EP", "DA", *_YEARS):
            all_values = values[tag]
            reference[_OTHER + tag] = all_values if len(all_values) > 1 else all_values[0]
    pages = [first[tag] for tag in ("SP", "EP") if tag in first]
    if pages:
        reference["pages"] = _PAGES.join(pages)
    for tag in ("DA", *_YEARS):
        year, *day = [part for part in first.get(tag, "").split("/") if part] or [""]
        if day:
            reference.setdefault("date", "-".join((year, *day)))
        if year and tag in _YEARS:
            reference.setdefault("year", year)
    return reference


def _record(reference: Reference, omitted: list[Omission]) -> str:
    lines = [("TY", to_ris(text_of(reference.get("type", ""))))]
    for field, value in reference.items():
        if field in _LIST_TAGS:
            lines += [(_LIST_TAGS[field][0], name) for name in names_of(reference, field)]
        elif field in _TAGS:
            lines.append((_TAGS[field][0], text_of(value)))
        elif field.startswith(_OTHER) and _LINE.match(f"{field.removeprefix(_OTHER)}  - "):
            tag = field.removeprefix(_OTHER)
            lines += [(tag, each) for each in names_of(reference, field)]
        elif field not in _COMPOSED:
            omitted.append(Omission(text_of(reference["id"]), f"RIS has no tag for {field}"))
    all_pages = spaced(text_of(reference.get("pages", "")))
    first, _, last = all_pages.partition(_PAGES)
    pages = [("SP", first), ("EP", last)] if first and last else [("SP", all_pages)]
    years = [("PY", text_of(reference.get("year", "")))]
    dates = [("DA", text_of(reference.get("date", "")).replace("-", "/"))]
    lines += [line for line in (*pages, *years, *dates) if line[1]]
    written = [f"{tag}  - {spaced(value)}\n" for tag, value in lines]
    return "".join(written) + "ER  - \n"
