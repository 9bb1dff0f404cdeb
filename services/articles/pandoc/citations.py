"""References and citations in pandoc's tree, and a list of references without a style."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from services.articles.bibliography import csl
from services.articles.bibliography.entries import names_of, text_of
from services.articles.bibliography.names import parts_of
from services.articles.markdown.citations import ShownReferences
from services.articles.pandoc import syntax
from services.articles.pandoc.syntax import NO_ATTRIBUTES, Node
from services.articles.tree.nodes import Citation

_FORMULA = re.compile(r"\$([^$]+)\$")
# Fields of an item whose text may contain formulas.
_FORMATTED = frozenset({"title", "container-title", "collection-title", "title-short"})
# Fields of BibTeX that items name otherwise, if they have no such field themselves.
_OTHER_NAMES = (
    *(("booktitle", "container-title"), ("school", "publisher"), ("institution", "publisher")),
    *(("organization", "publisher"), ("series", "collection-title"), ("howpublished", "medium")),
    *(("location", "publisher-place"), ("bib-type", "genre")),
)
_HEADINGS = {"zh": "参考文献"}
_REFERENCES = "References"
# The element in which pandoc lists the references.
LIST_ID = "refs"


def cite_node(cited: Sequence[Citation], shown: ShownReferences) -> Node:
    """Return a citation, which reads `[1, p. 3]` unless a style is applied."""
    items = []
    names = ""
    for one in cited:
        number = str(shown.numbers[one.id])
        before = " ".join(filter(None, (one.prefix.strip(), number)))
        items.append(", ".join(filter(None, (before, one.locator.strip(), one.suffix.strip()))))
        names = shown.names(one.id) if one.narrative else names
    text = " ".join(filter(None, (names, f"[{'; '.join(items)}]")))
    return syntax.node("Cite", [_with_words(one) for one in cited], syntax.words(text))


def _with_words(cited: Citation) -> dict[str, Any]:
    """Return a citation with the words beside it, in which pandoc finds the locator."""
    citation = _citation(cited.id, "AuthorInText" if cited.narrative else "NormalCitation")
    after = [part.strip() for part in (cited.locator, cited.suffix) if part.strip()]
    citation["citationPrefix"] = syntax.words(cited.prefix.strip())
    citation["citationSuffix"] = syntax.words("".join(f", {part}" for part in after))
    return citation


def all_cited() -> Node:
    """Return the metadata that makes pandoc list all references."""
    cite = syntax.node("Cite", [_citation("*", "AuthorInText")], [_word("@*")])
    return syntax.node("MetaInlines", [cite])


def _citation(reference_id: str, mode: str) -> dict[str, Any]:
    return {
        "citationId": reference_id,
        "citationPrefix": [],
        "citationSuffix": [],
        "citationMode": syntax.node(mode),
        "citationNoteNum": 0,
        "citationHash": 0,
    }


def _word(text: str) -> Node:
    return syntax.node("Str", text)


def references_meta(references: Iterable[Any]) -> Node:
    """Return references as metadata for pandoc's citation processor."""
    return syntax.meta([_item(csl.to_item(reference)) for reference in references])


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    named = dict(item)
    for field, name in _OTHER_NAMES:
        if field in named:
            named.setdefault(name, named.pop(field))
    return {
        name: syntax.node("MetaInlines", _with_formulas(value)) if name in _FORMATTED else value
        for name, value in named.items()
    }


def _with_formulas(text: str) -> list[Node]:
    nodes: list[Node] = []
    at = 0
    for formula in _FORMULA.finditer(text):
        nodes += syntax.words(text[at : formula.start()])
        nodes.append(syntax.formula(formula[1], is_display=False))
        at = formula.end()
    return nodes + syntax.words(text[at:])


def heading(language: str) -> Node:
    """Return the heading of the list of references."""
    name = _HEADINGS.get(language.partition("-")[0].lower(), _REFERENCES)
    return syntax.header(1, syntax.words(name), ("bibliography", ("unnumbered",), ()))


def styled_list() -> Node:
    """Return the place in which pandoc lists the references."""
    return syntax.node("Div", (LIST_ID, ("references",), ()), [])


def plain_list(references: Iterable[Any]) -> Iterator[Node]:
    """Yield references as paragraphs, numbered from 1."""
    for number, reference in enumerate(references, 1):
        yield syntax.para([_word(f"[{number}]"), syntax.node("Space"), *plain_entry(reference)])


def plain_entry(reference: Mapping[str, Any]) -> list[Node]:
    """Return the text of a reference without a style."""

    def value(field: str) -> str:
        return text_of(reference.get(field, ""))

    volume = value("volume") + (f"({value('issue')})" if value("issue") else "")
    place = " ".join(filter(None, (value("journal") or value("booktitle"), volume)))
    published = ", ".join(filter(None, (place, value("pages"))))
    printed = ", ".join(filter(None, (value("publisher") or value("institution"), value("year"))))
    title = _with_formulas(value("title") or value("name"))
    parts: list[list[Node]] = [
        syntax.words(", ".join(map(_natural, names_of(reference, "author")))),
        [syntax.node("Emph", title)] if title else [],
        syntax.words(published),
        syntax.words(printed),
    ]
    nodes: list[Node] = []
    for part in filter(None, parts):
        nodes += [*part, _word("."), syntax.node("Space")]
    address = f"https://doi.org/{value('doi')}" if value("doi") else value("url")
    if address.startswith(("http://", "https://")):
        nodes.append(syntax.node("Link", NO_ATTRIBUTES, [_word(address)], (address, "")))
    return nodes or [_word(str(reference["id"]))]


def _natural(name: str) -> str:
    """Return a name with the given names first."""
    parts = parts_of(name)
    return " ".join(filter(None, (parts.given_names, parts.family, parts.suffix)))
