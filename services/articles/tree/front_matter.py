"""The front matter of a text in Markdown: title, authors and abstract in YAML."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]  # it brings no types

from services.articles.bibliography.entries import Omission
from services.articles.tree import schema
from services.articles.tree.errors import EditError
from services.articles.tree.inline_markdown import parse_inline
from services.articles.tree.nodes import Json, Leaf
from services.articles.tree.values import schema_error
from services.common.articles import limits
from services.common.articles.blocks import AuthorItem, Properties

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PLACE = "front matter"
_KEY_ENDS = re.compile(r"[,;]")
_AUTHOR_FIELDS = ("affiliation", "affiliations", "orcid", "email", "corresponding")

# Names in front matter, of pandoc and of others, and the properties that they are.
_PROPERTIES = {
    ("date",): "date",
    ("keywords", "tags"): "keywords",
    ("lang", "language"): "language",
    ("dir", "direction"): "direction",
}

Fields = dict[Any, Any]
Part = tuple[str, tuple[Leaf, ...], Mapping[str, Json]]


def split_front_matter(markdown: str) -> tuple[str | None, str]:
    """Return the front matter, or None, and the text with empty lines in its place."""
    if "\r" in markdown:
        markdown = markdown.replace("\r\n", "\n").replace("\r", "\n")
    match = _FRONT_MATTER.match(markdown)
    if match is None:
        return None, markdown
    return match[1], "\n" * match[0].count("\n") + markdown[match.end() :]


def front_matter_properties(fields: Fields, omitted: list[Omission]) -> dict[str, Json]:
    """Take the properties of the document out of the fields; what is none is in `omitted`."""
    properties: dict[str, Json] = {}
    for names, name in _PROPERTIES.items():
        for field in names:
            value: Any = fields.pop(field, None)
            if value is None:
                continue
            if name == "keywords":
                value = [str(each) for each in _listed(value)]
            try:
                schema.check(Properties, {name: value}, "")
            except EditError as error:
                omitted.append(Omission(_PLACE, f"{field}: {error.problem}"))
                continue
            properties[name] = value
    return properties


def front_matter_blocks(fields: Fields, omitted: list[Omission]) -> Iterator[Part]:
    """Yield type, text and content of each block; what has no block is added to `omitted`."""
    if title := fields.pop("title", None):
        yield "title", _text(title, "title", omitted), {}
    authors = _listed(fields.pop("authors", None) or fields.pop("author", None))
    institutions = _listed(fields.pop("affiliations", None))
    if authors:
        yield "author", (), author_fields(authors, institutions, omitted)
    elif institutions:
        omitted.append(Omission(_PLACE, "affiliations, as there are no authors"))
    if abstract := fields.pop("abstract", None):
        yield "abstract", _text(abstract, "abstract", omitted), {}
    omitted += [
        Omission(_PLACE, f"{str(name)[:64]}, which documents do not have") for name in fields
    ]


def parse_front_matter(source: str) -> Fields:
    """Parse front matter.

    Raises:
        EditError: the YAML is invalid, too long, or nested too deeply.
    """
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


def author_fields(
    authors: list[Any], institutions: list[Any], omitted: list[Omission]
) -> dict[str, Json]:
    """Return the fields of a block of authors.

    Args:
        authors: names, or mappings with `name`, `affiliation` (keys or names of institutions),
            `orcid`, `email` and `corresponding`.
        institutions: names, or mappings with `name`, and `index` or `id` as the key.
        omitted: filled with what documents do not hold.
    """
    names: dict[str, str] = {}
    for position, institution in enumerate(institutions, start=1):
        parts = institution if isinstance(institution, dict) else {"name": institution}
        key = str(parts.get("index", parts.get("id", position)))
        names[key] = _name(parts, ("index", "id"), omitted)
    made: list[Json] = []
    for author in authors:
        parts = author if isinstance(author, dict) else {"name": author}
        numbers: list[int] = []
        for key in _affiliations(parts, names):
            names.setdefault(key, key)
            numbers.append(list(names).index(key) + 1)
        fields: dict[str, Json] = {"name": _name(parts, _AUTHOR_FIELDS, omitted)}
        fields["institutionIds"] = list(dict.fromkeys(numbers))
        fields["isStar"] = str(parts.get("corresponding", "false")).lower() == "true"
        made.append({**fields, **_contacts(parts, omitted)})
    listed: list[Json] = [
        {"id": number, "name": name} for number, name in enumerate(names.values(), start=1)
    ]
    return {"author": made, "institution": listed}


def _affiliations(parts: Mapping[Any, Any], names: Mapping[str, str]) -> list[str]:
    """Return the keys of the affiliations of an author, which may be listed in one text."""
    keys = [str(each) for each in _listed(parts.get("affiliation", parts.get("affiliations")))]
    if len(keys) == 1 and keys[0] not in names:
        several = [key.strip() for key in _KEY_ENDS.split(keys[0])]
        if all(key in names for key in several):
            return several
    return keys[: limits.INSTITUTIONS_OF_AUTHOR]


def _contacts(parts: Mapping[Any, Any], omitted: list[Omission]) -> dict[str, Json]:
    contacts: dict[str, Json] = {}
    for field in ("orcid", "email"):
        if (value := parts.get(field)) is None:
            continue
        try:
            schema.check(AuthorItem, {"name": "", field: value}, "")
        except EditError as error:
            omitted.append(Omission(_PLACE, f"{field} of an author: {error.problem}"))
            continue
        contacts[field] = value
    return contacts


def _name(parts: Mapping[Any, Any], used: tuple[str, ...], omitted: list[Omission]) -> str:
    name = parts.get("name")
    for field in parts:
        if field != "name" and field not in used:
            omitted.append(Omission(_PLACE, f"{str(field)[:64]} of an author or affiliation"))
    if not isinstance(name, str):
        omitted.append(Omission(_PLACE, "an author or affiliation without a name"))
        return ""
    return name
