"""The text of citations and of references to blocks."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from services.articles.bibliography.names import is_braced, parts_of
from services.articles.markdown.escape import escaped
from services.articles.tree.document import Document
from services.articles.tree.labels import LabelNumber, ref_text
from services.articles.tree.nodes import Citation, Leaf
from services.articles.tree.references import Reference

# Names before "et al.".
_MOST_NAMES = 2
# In words before a number: digits alone would be read as the number.
_LONE_NUMBER = re.compile(r"(?<!\S)\d(?=\d{0,3}(?:[\s,;]|$))", re.ASCII)
_SEPARATORS = str.maketrans({";": "&#59;"})
# The end of a key that a parser takes for the end of the sentence.
_PLAIN_KEY = re.compile(r"[^\W_](?:[\w:.#$%&+?<>~/-]*[^\W_])?")


class ShownReferences:
    """The numbers of a document that its texts show.

    Args:
        document: the document.
        with_keys: whether citations show the ids of references, not their numbers.
    """

    def __init__(self, document: Document, *, with_keys: bool = False) -> None:
        self._document = document
        self._with_keys = with_keys

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The numbers of the cited references."""
        return self._document.numbers()

    @cached_property
    def labels(self) -> Mapping[str, LabelNumber]:
        """The numbers of the blocks with labels."""
        return self._document.label_numbers()

    def ref(self, leaf: Leaf) -> str:
        """Return what a reference to a block says."""
        language = self._document.properties.get("language")
        return ref_text(self.labels.get(leaf.ref or ""), leaf.form, language)

    def marker(self, leaf: Leaf) -> str:
        """Return the citation after a leaf as Markdown."""
        citations = leaf.citations
        if self._with_keys:
            return self._by_keys(citations)
        return self._by_numbers(citations)

    def _by_numbers(self, citations: Iterable[Citation]) -> str:
        names = ""
        items = []
        for citation in citations:
            number = str(self.numbers[citation.id])
            prefix = _LONE_NUMBER.sub(lambda m: f"&#{ord(m[0])};", _affix(citation.prefix))
            items.append(_item(prefix, number, citation))
            if citation.narrative:
                names = self.names(citation.id)
        marker = f"[{'; '.join(items)}]"
        return f"{escaped(names)} {marker}" if names else marker

    def _by_keys(self, citations: Iterable[Citation]) -> str:
        items = []
        lead = ""
        for citation in citations:
            key = _key(citation.id)
            if citation.narrative:
                lead = f"@{key}"
                # The words beside a narrative citation are in brackets after it.
                items.append(_item("", "", citation))
                continue
            items.append(_item(_affix(citation.prefix), f"@{key}", citation))
        if not lead:
            return f"[{'; '.join(items)}]"
        inner = "; ".join(items)
        return f"{lead} [{inner}]" if inner else lead

    def names(self, reference_id: str) -> str:
        """Return the family names of the authors of a reference; "" without any."""
        return short_names(self._document.references[reference_id])


def short_names(reference: Reference) -> str:
    """Return the family names of the authors of a reference; "" without any."""
    authors = reference.get("author") or ()
    assert not isinstance(authors, str | int | float | bool | Mapping)
    families = [_family(str(author)) for author in authors]
    families = [family for family in families if family]
    if len(families) > _MOST_NAMES:
        return f"{families[0]} et al."
    return " and ".join(families)


def _family(author: str) -> str:
    return author[1:-1] if is_braced(author) else parts_of(author).family


def _key(reference_id: str) -> str:
    return reference_id if _PLAIN_KEY.fullmatch(reference_id) else f"{{{reference_id}}}"


def _item(prefix: str, name: str, citation: Citation) -> str:
    shown = " ".join(part for part in (prefix, name) if part)
    # Escaped together, as they are read together.
    words = [part.strip() for part in (citation.locator, citation.suffix)]
    rest = _affix(", ".join(filter(None, words)))
    return ", ".join(filter(None, (shown, rest)))


def _affix(text: str) -> str:
    # An `@` or `;` would be read as the beginning or the end of a citation.
    parts = " ".join(text.split()).split("@")
    shown = "&#64;".join([escaped(part).translate(_SEPARATORS) for part in parts])
    # No reference of a character begins at the end.
    return f"{shown[:-2]}&" if text.endswith("&") and shown.endswith("\\&") else shown
