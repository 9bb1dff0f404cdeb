"""Authors and their institutions in pandoc's tree."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from services.articles.bibliography.names import parts_of
from services.articles.pandoc import syntax
from services.articles.pandoc.syntax import NO_ATTRIBUTES, Json, Node
from services.articles.tree.nodes import Element, Leaf

_EMAIL = re.compile(r"[^\s@]{1,64}@[^\s@]{1,190}")
_ORCID = re.compile(r"https?://orcid\.org/(?:\d{4}-){3}\d{3}[\dX]", re.ASCII)


class ShownAuthors(NamedTuple):
    """Authors as texts.

    Attributes:
        names: the name of each, with the numbers of institutions above.
        institutions: paragraphs of the institutions, with their numbers.
    """

    names: Sequence[list[Node]]
    institutions: Sequence[Node]


def shown_authors(element: Element) -> ShownAuthors:
    """Return the authors of a block as texts."""
    authors: Any = element.content["author"]
    institutions: Any = element.content["institution"]
    numbers = {one["id"]: str(number) for number, one in enumerate(institutions, 1)}
    names = []
    for author in authors:
        marks = [numbers[one] for one in _institution_ids(author) if one in numbers]
        marks += ["*"] if author["isStar"] else []
        above = [_above(",".join(marks))] if marks else []
        name = syntax.words(author["name"])
        if "orcid" in author:
            address = f"https://orcid.org/{author['orcid']}"
            name = [syntax.node("Link", NO_ATTRIBUTES, name, (address, ""))]
        if "email" in author:
            above += [syntax.node("Space"), *syntax.words(author["email"])]
        names.append([*name, *above])
    paragraphs = [
        syntax.para([_above(numbers[one["id"]]), *syntax.words(one["name"])])
        for one in institutions
    ]
    return ShownAuthors(names, paragraphs)


def author_metadata(element: Element) -> dict[str, Node]:
    """Return the authors of a block as the metadata from which pandoc makes those of JATS."""
    authors: Any = element.content["author"]
    institutions: Any = element.content["institution"]
    described = []
    for author in authors:
        fields: dict[str, Json] = dict(_name_fields(author["name"]))
        fields["affiliation"] = [str(one) for one in _institution_ids(author) if one]
        for name in ("orcid", "email"):
            if name in author:
                fields[name] = author[name]
        described.append(fields)
    listed = [{"id": str(one["id"]), "name": one["name"]} for one in institutions]
    metadata = {"author": syntax.meta(described)}
    if listed:
        metadata["affiliation"] = syntax.meta(listed)
    return metadata


def author_of(leaves: Sequence[Leaf]) -> dict[str, Json]:
    """Return the fields of an author whom a text names; {} if it is empty.

    Lines below the name are institutions, or the address for mail. Numbers above it are those of
    institutions, which documents number by themselves.
    """
    shown = [leaf.text for leaf in leaves if leaf.script != "super" and not leaf.is_object]
    name, *others = [" ".join(line.split()) for line in "".join(shown).strip().split("\n")]
    if not name:
        return {}
    emails = [line for line in others if _EMAIL.fullmatch(line)]
    fields: dict[str, Json] = {"name": name}
    fields["affiliation"] = [line for line in others if line and line not in emails[:1]]
    if emails:
        fields["email"] = emails[0]
    for leaf in leaves:
        if leaf.url is not None and _ORCID.fullmatch(leaf.url):
            fields["orcid"] = leaf.url.rpartition("/")[2]
    return fields


def _institution_ids(author: Any) -> Sequence[int]:
    return author.get("institutionIds") or [author["institutionId"]]


def _name_fields(name: str) -> Iterator[tuple[str, str]]:
    parts = parts_of(name)
    yield "name", name
    yield "surname", parts.family
    yield "given-names", parts.given_names
    if parts.suffix:
        yield "suffix", parts.suffix


def _above(text: str) -> Node:
    return syntax.node("Superscript", [syntax.node("Str", text)])
