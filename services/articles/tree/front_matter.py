"""The front matter of a text in Markdown: title, authors and abstract in YAML."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]  # it brings no types

from services.articles.bibliography.entries import Omission
from services.articles.tree.inline_markdown import parse_inline
from services.articles.tree.nodes import Json, Leaf
from services.articles.tree.values import schema_error
from services.common.articles import limits

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PLACE = "front matter"
_FIRST_NUMBER = re.compile(r"\s*([^,;\s]+)")

Part = tuple[str, tuple[Leaf, ...], Mapping[str, Json]]


def split_front_matter(markdown: str) -> tuple[str | None, str]:
    """Return the front matter, or None, and the text with empty lines in its place."""
    if "\r" in markdown:
        markdown = markdown.replace("\r\n", "\n").replace("\r", "\n")
    match = _FRONT_MATTER.match(markdown)
    if match is None:
        return None, markdown
    return match[1], "\n" * match[0].count("\n") + markdown[match.end() :]


def front_matter_blocks(source: str, omitted: list[Omission]) -> Iterator[Part]:
    """Yield type, text and content of each block; what has no block is added to `omitted`.

    Raises:
        EditError: the YAML is invalid, too long, or nested too deeply.
    """
    fields = _fields(source)
    if title := fields.pop("title", None):
        yield "title", _text(title, "title", omitted), {}
    authors = _listed(fields.pop("authors", None) or fields.pop("author", None))
    institutions = _listed(fields.pop("affiliations", None))
    if authors:
        yield "author", (), _authors(authors, institutions, omitted)
    elif institutions:
        omitted.append(Omission(_PLACE, "affiliations, as there are no authors"))
    if abstract := fields.pop("abstract", None):
        yield "abstract", _text(abstract, "abstract", omitted), {}
    omitted += [
        Omission(_PLACE, f"{str(name)[:64]}, which documents do not have") for name in fields
    ]


def _fields(source: str) -> dict[Any, Any]:
    if len(source) > limits.MARKDOWN:
        problem = f"front matter must have at most {limits.MARKDOWN} characters"
        raise schema_error("/markdown", problem)
    try:
        # Without dates, numbers and other types: every value stays as it was written. Repeated
        # parts (aliases) are the same objects, so they take no memory.
        fields = yaml.load(source, yaml.CBaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        line = str(error).splitlines()[0][:200]
        raise schema_error("/markdown", f"the front matter is not valid YAML: {line}") from None
    if not isinstance(fields, dict):
        raise schema_error("/markdown", "the front matter must have names and values")
    return fields


def _text(value: Any, name: str, omitted: list[Omission]) -> tuple[Leaf, ...]:
    if not isinstance(value, str):
        omitted.append(Omission(_PLACE, f"{name}, which is no text"))
        return ()
    inline = parse_inline(" ".join(value.split()))
    if inline.citations:
        omitted.append(Omission(_PLACE, f"citations in {name}"))
    return inline.leaves


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _authors(
    authors: list[Any], institutions: list[Any], omitted: list[Omission]
) -> dict[str, Json]:
    names: dict[str, str] = {}
    for position, institution in enumerate(institutions, start=1):
        parts = institution if isinstance(institution, dict) else {"name": institution}
        key = str(parts.get("index", parts.get("id", position)))
        names[key] = _name(parts, ("index", "id"), omitted)
    made: list[Json] = []
    for author in authors:
        parts = author if isinstance(author, dict) else {"name": author}
        affiliation = parts.get("affiliation", parts.get("affiliations"))
        all_affiliations = _listed(affiliation)
        key = str(all_affiliations[0]) if all_affiliations else ""
        if key and key not in names:
            first = _FIRST_NUMBER.match(key)
            if first is not None and first[1] in names:
                omitted.append(Omission(_PLACE, f"further affiliations of an author: {key[:64]}"))
                key = first[1]
            else:
                names[key] = key
        if len(all_affiliations) > 1:
            omitted.append(Omission(_PLACE, "further affiliations of an author"))
        number = list(names).index(key) + 1 if key else 0
        name = _name(parts, ("affiliation", "affiliations"), omitted)
        made.append({"name": name, "institutionId": number})
    listed: list[Json] = [
        {"id": number, "name": name} for number, name in enumerate(names.values(), start=1)
    ]
    return {"author": made, "institution": listed}


def _name(parts: Mapping[Any, Any], used: tuple[str, ...], omitted: list[Omission]) -> str:
    name = parts.get("name")
    for field in parts:
        if field != "name" and field not in used:
            omitted.append(Omission(_PLACE, f"{str(field)[:64]} of an author or affiliation"))
    if not isinstance(name, str):
        omitted.append(Omission(_PLACE, "an author or affiliation without a name"))
        return ""
    return name
