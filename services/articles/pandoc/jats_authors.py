"""The authors of a JATS article, of whom pandoc reads names in parts only."""

import io
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, iterparse

from services.articles.bibliography.entries import Omission
from services.articles.tree.front_matter import author_fields
from services.articles.tree.nodes import Json

# Bytes in which the metadata must end: what follows is not parsed.
_MAX_METADATA = 512 << 10
_ORCID = "orcid"


def authors_of(xml: bytes, omitted: list[Omission]) -> dict[str, Json]:
    """Return the fields of a block of authors; {} if an article has none.

    Args:
        xml: the article.
        omitted: filled with what documents do not hold of its authors.
    """
    metadata = _metadata(xml)
    if metadata is None:
        return {}
    institutions = {
        affiliation.get("id", ""): _institution(affiliation)
        for affiliation in metadata.iter("aff")
        if affiliation.get("id")
    }
    authors = [
        dict(_author(contributor, institutions))
        for contributor in metadata.iter("contrib")
        if contributor.get("contrib-type", "author") == "author"
    ]
    if not authors:
        return {}
    listed = [{"id": key, "name": name} for key, name in institutions.items()]
    return author_fields(authors, listed, omitted)


def _metadata(xml: bytes) -> Element | None:
    """Return the metadata of an article; None if it has none, too many, or is no XML."""
    try:
        # Expat bounds what entities become, and resolves none of other files.
        for _, element in iterparse(io.BytesIO(xml[:_MAX_METADATA])):
            if element.tag == "article-meta":
                return element
    except ParseError:
        pass
    return None


def _author(contributor: Element, institutions: dict[str, str]) -> Iterator[tuple[str, Json]]:
    yield "name", _name(contributor)
    for identifier in contributor.iter("contrib-id"):
        if identifier.get("contrib-id-type") == _ORCID:
            yield "orcid", _text(identifier).rpartition("/")[2]
    email = next(contributor.iter("email"), None)
    if email is not None:
        yield "email", _text(email)
    references = [
        reference.get("rid", "")
        for reference in contributor.iter("xref")
        if reference.get("ref-type") == "aff"
    ]
    keys = [key for one in references for key in one.split() if key in institutions]
    inside = [_institution(one) for one in contributor.iter("aff") if not one.get("id")]
    yield "affiliation", [*keys, *inside]
    if contributor.get("corresp") == "yes":
        yield "corresponding", "true"


def _name(contributor: Element) -> str:
    for name in contributor.iter("name"):
        parts = [_text(part) for kind in ("given-names", "surname") for part in name.iter(kind)]
        suffixes = [f", {_text(suffix)}" for suffix in name.iter("suffix")]
        return " ".join(filter(None, parts)) + "".join(suffixes)
    for kind in ("string-name", "collab", "anonymous"):
        for name in contributor.iter(kind):
            return _text(name)
    return ""


def _institution(affiliation: Element) -> str:
    # The label is the number that the article shows.
    label = next(affiliation.iter("label"), None)
    text = _text(affiliation)
    return text if label is None else text.removeprefix(_text(label)).strip()


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())
