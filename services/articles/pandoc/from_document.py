"""A document as pandoc's tree."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from services.articles.bibliography.entries import Omission
from services.articles.pandoc import citations, syntax
from services.articles.pandoc.authors import author_metadata, shown_authors
from services.articles.pandoc.inlines import InlineWriter
from services.articles.pandoc.latex import LatexCitations
from services.articles.pandoc.latex_preamble import preamble
from services.articles.pandoc.searches import remove_dead_links
from services.articles.pandoc.syntax import NO_ATTRIBUTES, Node
from services.articles.tree.document import Document
from services.articles.tree.labels import LabelNumber, ref_text
from services.articles.tree.nodes import HEADING_TYPES, Element, Json, Leaf
from services.articles.tree.style import computed_style

_LEVELS = {"title": 1, **{kind: level for level, kind in enumerate(HEADING_TYPES, 1)}}
_ALIGNMENTS = {"start": "AlignLeft", "center": "AlignCenter", "end": "AlignRight"}
_NUMBERINGS = {
    "decimal": "Decimal",
    "lower-alpha": "LowerAlpha",
    "upper-alpha": "UpperAlpha",
    "lower-roman": "LowerRoman",
    "upper-roman": "UpperRoman",
}
_ABSTRACT_NAMES = {"en": "Abstract:", "zh": "摘要\uff1a"}
# The first block of each of these types is metadata of the tree.
_PROPERTIES = {"date": "date", "keywords": "keywords", "language": "lang", "direction": "dir"}
_METADATA = ("title", "author", "abstract")
_WEB = ("http://", "https://")


class TreeOptions(NamedTuple):
    """How a document becomes a tree.

    Attributes:
        addresses: addresses of pictures, by the id of their file or their `data:` URL.
        shows_web_pictures: whether the format can show pictures at web addresses.
        has_style: whether a style of citations will be applied.
        numbers_captions: whether captions need their numbers, as the format has none.
        has_keywords: whether the format can have keywords. Pandoc writes them into the code of
            Typst, which would run them.
        marks_texts: whether only marks in texts are read back as targets of links, not those of
            blocks: in office formats.
        describes_authors: whether the format has fields for institutions of authors.
        is_latex: whether the format is LaTeX.
        latex: how the document cites in LaTeX; None if it does not, and for other formats.
        entries: texts of the references in a style that is applied already, by their ids; those
            without are written without a style.
    """

    addresses: Mapping[str, str] = {}
    shows_web_pictures: bool = True
    has_style: bool = False
    numbers_captions: bool = False
    has_keywords: bool = True
    marks_texts: bool = False
    describes_authors: bool = False
    is_latex: bool = False
    latex: LatexCitations | None = None
    entries: Mapping[str, Sequence[Node]] = {}


class Tree(NamedTuple):
    """A tree, and what is missing in it.

    Attributes:
        root: the tree.
        omitted: what is missing.
        numbers_sections: whether sections are numbered, as references to them are.
    """

    root: Node
    omitted: Sequence[Omission]
    numbers_sections: bool = False


def tree_of(document: Document, options: TreeOptions) -> Tree:
    """Return a document as a tree, with the references that it cites at the end."""
    writer = _Writer(document, options)
    root = writer.root()
    if not options.is_latex:  # which has marks of its own, and only warns
        remove_dead_links(root)
    return Tree(root, writer.texts.omitted, writer.numbers_sections)


@dataclass(slots=True)
class _Writer:
    document: Document
    options: TreeOptions
    texts: InlineWriter = field(init=False)
    _numbers: Mapping[str, LabelNumber] = field(init=False)
    _language: Json = field(init=False)

    def __post_init__(self) -> None:
        is_latex = self.options.is_latex
        self.texts = InlineWriter(self.document, self.options.latex, is_latex=is_latex)
        self._numbers = self.document.label_numbers()
        self._language = self.document.properties.get("language")

    @property
    def numbers_sections(self) -> bool:
        """Whether references to sections show their numbers."""
        return any(one.kind == "section" and one.number for one in self._numbers.values())

    def root(self) -> Node:
        metadata: dict[str, Node] = {
            _PROPERTIES[name]: syntax.meta(value)
            for name, value in self.document.properties.items()
            if name in _PROPERTIES
        }
        if not self.options.has_keywords and "keywords" in metadata:
            del metadata["keywords"]
            self.texts.omitted.append(Omission("keywords", "the format has none"))
        blocks: list[Node] = []
        for element in self.document.blocks:
            if element.type in _METADATA and element.type not in metadata:
                blocks += self._metadata(element, metadata)
            else:
                blocks += self.blocks(element)
        title = syntax.text_of(metadata.get("title", {})) or self._first_heading()
        metadata["pagetitle"] = syntax.meta(title)
        blocks += self._references(metadata)
        if self.options.is_latex:
            self._add_preamble(metadata, blocks)
        return syntax.document(metadata, blocks)

    def _add_preamble(self, metadata: dict[str, Node], blocks: Sequence[Node]) -> None:
        latex = self.options.latex
        text = syntax.text_of([*metadata.values(), *blocks])
        before = preamble(text, has_lines=self.texts.has_lines)
        self.texts.omitted.extend(before.omitted)
        lines = [latex.package()] if latex is not None else []
        lines += before.lines
        if lines:
            raw = syntax.node("RawBlock", "latex", "\n".join(lines))
            metadata["header-includes"] = syntax.node("MetaBlocks", [raw])

    def _first_heading(self) -> str:
        for element in self.document.blocks:
            if element.type in _LEVELS and (text := _text(element).strip()):
                return text
        return "Document"

    def _metadata(self, element: Element, metadata: dict[str, Node]) -> Iterator[Node]:
        """Add a block to the metadata; yield what has no place there."""
        match element.type:
            case "title":
                if inlines := self._inlines(element):
                    metadata["title"] = syntax.node("MetaInlines", inlines)
            case "abstract":
                if blocks := list(self._prose(element)):
                    metadata["abstract"] = syntax.node("MetaBlocks", blocks)
            case _ if self.options.describes_authors:
                metadata.update(author_metadata(element))
            case _:
                names, institutions = shown_authors(element)
                if names:
                    metadata["author"] = syntax.node(
                        "MetaList", [syntax.node("MetaInlines", name) for name in names]
                    )
                yield from institutions

    def _references(self, metadata: dict[str, Node]) -> Iterator[Node]:
        references = self.document.references
        cited = [references[one] for one in self.document.numbers()]
        if not cited:
            return
        if self.options.latex is not None:
            # Styles have no texts for some references, or for none at all.
            texts = {**self.options.entries}
            for one in cited:
                if one["id"] not in texts:
                    texts[str(one["id"])] = citations.plain_entry(one)
            listed = [(references[key], text) for key, text in texts.items()]
            yield from self.options.latex.entries(listed)
            return
        yield citations.heading(str(self._language or ""))
        if self.options.has_style:
            metadata["references"] = citations.references_meta(cited)
            yield citations.styled_list()
        else:
            yield from citations.plain_list(cited)

    def blocks(self, element: Element) -> Iterator[Node]:
        """Yield the nodes of a block."""
        yield from _WRITERS[element.type](self, element)

    def _inlines(self, element: Element) -> list[Node]:
        return self.texts.inlines(element.leaves)

    def _heading(self, element: Element) -> Iterator[Node]:
        if inlines := self.texts.inlines(element.leaves, is_argument=True):
            one_line = [syntax.node("Space") if i["t"] == "LineBreak" else i for i in inlines]
            is_hidden = bool(computed_style(self.document.style, element).get("isHideIndex"))
            classes = ("unnumbered",) if is_hidden or element.type == "title" else ()
            label = "" if self.options.marks_texts else element.label or ""
            yield syntax.header(
                _LEVELS[element.type], [*self._mark(element), *one_line], (label, classes, ())
            )

    def _mark(self, element: Element) -> list[Node]:
        """Return what a text begins with whose block has a label, if blocks cannot have marks."""
        if element.label is None or not self.options.marks_texts:
            return []
        return [syntax.node("Span", (element.label, (), ()), [])]

    def _prose(self, element: Element) -> Iterator[Node]:
        if inlines := self._inlines(element):
            yield syntax.para(inlines)

    def _quote(self, element: Element) -> Iterator[Node]:
        if blocks := list(self._prose(element)):
            yield syntax.node("BlockQuote", blocks)

    def _abstract(self, element: Element) -> Iterator[Node]:
        language = str(computed_style(self.document.style, element).get("language"))
        if inlines := self._inlines(element):
            name = syntax.words(_ABSTRACT_NAMES.get(language, ""))
            if name:
                inlines = [syntax.node("Strong", name), syntax.node("Space"), *inlines]
            yield syntax.para(inlines)

    def _label(self, element: Element) -> Iterator[Node]:
        if not element.elements:
            yield from self._prose(element)
        for item in element.elements:
            name = syntax.words(str(item.content["name"]).replace("\n", " "))
            inlines = [syntax.node("Strong", name), syntax.node("Space")] if name else []
            inlines += self._inlines(item)
            if inlines:
                yield syntax.para(inlines)

    def _equation(self, element: Element) -> Iterator[Node]:
        if latex := str(element.content["equation"]).strip():
            number = self._numbers.get(element.label or "")
            shown = f"{latex} \\qquad ({number.number})" if number else latex
            formula = self.texts.formula(shown, is_display=True)
            if element.label:
                formula = syntax.node("Span", (element.label, (), ()), [formula])
            yield syntax.para([formula])

    def _code(self, element: Element) -> Iterator[Node]:
        if code := str(element.content["code"]):
            language = str(element.content["language"]).lower()
            classes = [language] if language else []
            if (
                self.options.is_latex
                and "\\end{verbatim}" in code
                and "\\end{Verbatim}" not in code
            ):
                yield _verbatim(code, element.label)
                return
            mark = self._mark(element)
            number = self._numbers.get(element.label or "")
            if mark and number is not None:
                yield syntax.para([*mark, *syntax.words(ref_text(number, None, self._language))])
            label = "" if mark else element.label or ""
            yield syntax.node("CodeBlock", (label, classes, ()), code)

    def _image(self, element: Element) -> Iterator[Node]:
        pictures: Any = element.content["image"]
        caption = self._caption(element)
        for picture in pictures or ():
            is_last = picture is pictures[-1]
            own = caption if is_last else []
            yield self._picture(picture, own, (element.label or "") if is_last else "")

    def _caption(self, element: Element) -> list[Node]:
        """Return a caption, with its number where the format shows none."""
        caption = self.texts.inlines(element.caption, is_argument=True)
        number = self._numbers.get(element.label or "")
        if number is None or not self.options.numbers_captions:
            return caption
        name = syntax.words(ref_text(number, None, self._language))
        return [
            *self._mark(element),
            *name,
            syntax.node("Str", ":"),
            syntax.node("Space"),
            *caption,
        ]

    def _picture(self, picture: Mapping[str, Any], caption: list[Node], label: str) -> Node:
        alternative = str(picture.get("alt") or "")
        caption = caption or syntax.words(str(picture.get("title") or ""))
        key = picture.get("fileId") or picture["url"]
        address = self.options.addresses.get(key)
        is_web = key.lower().startswith(_WEB) and "fileId" not in picture
        if address is None and is_web and self.options.shows_web_pictures:
            address = key
        if address is None:
            shown = self._missing_picture(key if is_web else "", alternative, caption)
        else:
            sizes = [
                (name, _length(picture[name])) for name in ("width", "height") if picture.get(name)
            ]
            attributes = ("", (), sizes)
            shown = syntax.node("Image", attributes, syntax.words(alternative), (address, ""))
        if not caption and not label:
            return syntax.para([shown])
        # A figure without its picture is counted, and references to it need its label.
        if address is None and self.options.numbers_captions:
            parts = [syntax.para(part) for part in ([shown], caption) if part]
            return syntax.node("Div", (label, (), ()), parts)
        return syntax.node(
            "Figure", (label, (), ()), (None, [syntax.plain(caption)]), [syntax.plain([shown])]
        )

    def _missing_picture(self, url: str, alternative: str, caption: list[Node]) -> Node:
        """Return what is shown in place of a picture: a link, or its alternative text."""
        if url:
            problem = "a picture at a web address, which is a link in this format"
            self.texts.omitted.append(Omission(url[:200], problem))
            shown = syntax.words(alternative or url)
            return syntax.node("Link", NO_ATTRIBUTES, shown, (url, ""))
        shown = syntax.words(alternative or "picture")
        problem = "a picture that was deleted, is too large, or no picture; its text is here"
        self.texts.omitted.append(Omission(syntax.text_of(caption or shown)[:200], problem))
        return syntax.node("Span", NO_ATTRIBUTES, shown)

    def _author(self, element: Element) -> Iterator[Node]:
        names, institutions = shown_authors(element)
        if names:
            joined: list[Node] = []
            for name in names:
                joined += [syntax.node("Str", ","), syntax.node("Space")] if joined else []
                joined += name
            yield syntax.para(joined)
        yield from institutions

    def _list(self, element: Element) -> Iterator[Node]:
        items = [list(self._item(item)) for item in element.elements]
        if not items:
            return
        order = str(computed_style(self.document.style, element).get("orderType"))
        if order == "disc":
            yield syntax.node("BulletList", items)
            return
        style = syntax.node(_NUMBERINGS.get(order, "Decimal"))
        start = element.content.get("start", 1)
        yield syntax.node("OrderedList", (start, style, syntax.node("Period")), items)

    def _item(self, item: Element) -> Iterator[Node]:
        yield syntax.plain(self._inlines(item))
        for nested in item.elements:
            yield from self._list(nested)

    def _table(self, element: Element) -> Iterator[Node]:
        columns: Any = element.content["colLength"]
        if not element.elements or not columns:
            return
        style = computed_style(self.document.style, element)
        align: Any = element.content.get("align") or [None] * columns
        everywhere = str(style.get("textAlign"))
        specs = [
            (
                syntax.node(_ALIGNMENTS.get(one or everywhere, "AlignDefault")),
                syntax.node("ColWidthDefault"),
            )
            for one in align
        ]
        caption = self._caption(element)
        rows = [self._row(row) for row in element.elements]
        # A cell of the head cannot reach into the body.
        spans = any(cell.content["rowSpan"] != 1 for cell in element.elements[0].elements)
        head = 0 if spans or len(rows) == 1 else 1
        yield syntax.node(
            "Table",
            (element.label or "", (), ()),
            (None, [syntax.plain(caption)] if caption else []),
            specs,
            (NO_ATTRIBUTES, rows[:head]),
            [(NO_ATTRIBUTES, 0, [], rows[head:])],
            (NO_ATTRIBUTES, []),
        )

    def _row(self, row: Element) -> Any:
        cells = []
        for cell in row.elements:
            spans = (cell.content["rowSpan"], cell.content["colSpan"])
            content = [syntax.plain(self._inlines(cell))]
            cells.append((NO_ATTRIBUTES, syntax.node("AlignDefault"), *spans, content))
        return (NO_ATTRIBUTES, cells)


_WRITERS: Mapping[str, Callable[[_Writer, Element], Iterator[Node]]] = {
    **dict.fromkeys(_LEVELS, _Writer._heading),
    "paragraph": _Writer._prose,
    "quote": _Writer._quote,
    "abstract": _Writer._abstract,
    "label": _Writer._label,
    "equation": _Writer._equation,
    "code": _Writer._code,
    "image": _Writer._image,
    "author": _Writer._author,
    "list": _Writer._list,
    "table": _Writer._table,
}


def _verbatim(code: str, label: str | None) -> Node:
    """Return a listing that has the end of a listing of LaTeX in it."""
    before = f"\\phantomsection\\label{{{label}}}\n" if label else ""
    return syntax.node(
        "RawBlock", "latex", f"{before}\\begin{{Verbatim}}\n{code}\n\\end{{Verbatim}}"
    )


def _length(value: Any) -> str:
    return f"{value}px" if isinstance(value, int | float) else str(value)


def _text(element: Element) -> str:
    return "".join(leaf.text for leaf in element.children if isinstance(leaf, Leaf))
