"""Inline nodes of pandoc's tree as leaves."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from services.articles.bibliography.entries import Omission
from services.articles.pandoc import syntax
from services.articles.pandoc.syntax import Node
from services.articles.tree.colours import is_colour
from services.articles.tree.inline_rules import KEY
from services.articles.tree.nodes import OBJECT, OBJECT_TYPES, Leaf
from services.articles.tree.normalise import normal_leaves

# Levels of nodes inside of each other, and characters of addresses: a text may repeat one.
MAX_NESTING = 60
_MAX_ADDRESS = 8_192
# A key that a citation can have, and one that needs no braces.
_KEY = re.compile(r"[^{}\[\]\n]{1,200}")
_PLAIN_KEY = re.compile(rf"@{KEY}")
_CODED = str.maketrans(
    {"@": "&#64;", ";": "&#59;", "[": "&#91;", "]": "&#93;", "\\": "&#92;", "&": "&#38;"}
)
_MARKS: Mapping[str, Mapping[str, Any]] = {
    "Emph": {"italic": True},
    "Strong": {"bold": True},
    "Underline": {"decoration": "underline"},
    "Strikeout": {"decoration": "line-through"},
    "Superscript": {"script": "super"},
    "Subscript": {"script": "sub"},
}
_QUOTES = {"SingleQuote": ("\u2018", "\u2019"), "DoubleQuote": ("\u201c", "\u201d")}
# What documents do not hold; its text stays.
_LOST = {
    "SmallCaps": "small capitals, which became plain text",
}


class LeafReader:
    """Reads inline nodes.

    Attributes:
        omitted: what documents do not hold.
        labels: labels of blocks, to which links are references.
        references: texts of such links, by the label.
        pictures: the images read since it was last emptied: address, alternative text, title.
        marks: labels at marks read since it was last emptied.
    """

    def __init__(self, omitted: list[Omission], labels: Collection[str] = ()) -> None:
        self.omitted = omitted
        self.labels = labels
        self.references: dict[str, str] = {}
        self._is_noting = False
        self.pictures: list[tuple[str, str, str]] = []
        self.marks: list[str] = []

    def leaves(self, nodes: Iterable[Node]) -> list[Leaf]:
        """Return nodes as leaves, those of equal marks together."""
        joined: list[list[str]] = []
        leaves: list[Leaf] = []
        for leaf in self._read(nodes, Leaf(""), 0):
            is_text = leaf.type not in ("citation", *OBJECT_TYPES)
            if leaves and is_text and leaves[-1].same_marks(leaf):
                joined[-1].append(leaf.text)
            else:
                leaves.append(leaf)
                joined.append([leaf.text])
        return [replace(leaf, text="".join(t)) for leaf, t in zip(leaves, joined, strict=True)]

    def lose(self, place: str, what: str) -> None:
        """Remember that documents do not hold something."""
        omission = Omission(" ".join(place.split())[:100], what)
        if self.omitted[-1:] != [omission]:
            self.omitted.append(omission)

    def _read(self, nodes: Iterable[Node], marks: Leaf, depth: int) -> Iterator[Leaf]:
        if depth > MAX_NESTING:
            raise RecursionError
        for node in nodes:
            yield from self._node(node, marks, depth)

    def _node(self, node: Node, marks: Leaf, depth: int) -> Iterator[Leaf]:
        kind: str = node["t"]
        content: Any = node.get("c")
        if kind in _MARKS:
            yield from self._read(content, replace(marks, **_MARKS[kind]), depth + 1)
        elif kind in _LOST:
            self.lose(syntax.text_of(content), _LOST[kind])
            yield from self._read(content, marks, depth + 1)
        elif (reader := _READERS.get(kind)) is not None:
            yield from reader(self, content, marks, depth + 1)
        else:
            self.lose(kind, "a part of an unknown kind")

    def _text(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        yield replace(marks, text=content.replace("\0", ""))

    def _space(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        yield replace(marks, text=" ")

    def _break(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        yield replace(marks, text="\n")

    def _code(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        yield replace(marks, text=content[1], type="inlinecode")

    def _math(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        is_display = content[0]["t"] == "DisplayMath"
        if not content[1].strip():
            # Dollars around nothing are no formula.
            dollars = "$$" if is_display else "$"
            yield replace(marks, text=f"{dollars}{content[1]}{dollars}")
            return
        form = "display" if is_display else None
        yield replace(marks, text=content[1].strip(), type="latex", url=None, form=form)

    def _quoted(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        opening, closing = _QUOTES[content[0]["t"]]
        yield replace(marks, text=opening)
        yield from self._read(content[1], marks, depth)
        yield replace(marks, text=closing)

    def _link(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        url = content[2][0]
        if url.startswith("#") and url[1:] in self.labels:
            yield from self._reference(url[1:], content, marks)
            return
        if url.startswith("#") or not url or len(url) > _MAX_ADDRESS:
            if url:
                self.lose(syntax.text_of(content[1]), "the target of a link inside of the document")
            yield from self._read(content[1], marks, depth)
            return
        yield from self._read(content[1], replace(marks, type="url", url=url), depth)

    def _reference(self, label: str, content: Any, marks: Leaf) -> Iterator[Leaf]:
        """Yield a reference to a block, as LaTeX or another format shows it."""
        self.references[label] = syntax.text_of(content[1])
        attributes = dict(content[0][2])
        kind = attributes.get("reference-type")
        form = "number" if kind in ("ref", "eqref") else None
        opening, closing = ("(", ")") if kind == "eqref" else ("", "")
        for text in filter(None, (opening, OBJECT, closing)):
            if text == OBJECT:
                yield replace(marks, text=text, type="ref", ref=label, form=form, url=None)
            else:
                yield replace(marks, text=text)

    def _image(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        _, alternative, (address, title) = content
        self.pictures.append((address, syntax.text_of(alternative), title))
        yield from ()

    def _span(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        if content[0][0] in self.labels:
            self.marks.append(content[0][0])
        styles = [value for name, value in content[0][2] if name == "style"]
        for declaration in ";".join(styles).split(";"):
            name, _, value = declaration.partition(":")
            if name.strip() == "color" and is_colour(value.strip()):
                marks = replace(marks, color=value.strip())
        yield from self._read(content[1], marks, depth)

    def _raw(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        self.lose(content[1], f"a part in {content[0]}")
        yield from ()

    def _note(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        if self._is_noting:
            self.lose(syntax.text_of(content), "a footnote inside of a footnote")
            return
        self._is_noting = True
        children: list[Leaf] = []
        for block in content:
            children += [Leaf("\n")] if children else []
            if block["t"] in ("Para", "Plain"):
                children += self.leaves(block["c"])
            else:
                text = " ".join(syntax.text_of(block).split())
                self.lose(text, f"the form of a {block['t']} inside of a footnote")
                children.append(Leaf(text))
        self._is_noting = False
        if children:
            yield Leaf(OBJECT, "note", note=normal_leaves(children))

    def _cite(self, content: Any, marks: Leaf, depth: int) -> Iterator[Leaf]:
        """Yield a citation as Markdown writes it, which is resolved where it is inserted."""
        items = []
        for citation in content[0]:
            key = f"@{citation['citationId']}"
            if not _PLAIN_KEY.fullmatch(key):
                key = f"@{{{key[1:]}}}"
            before = _words(citation["citationPrefix"])
            after = _words(citation["citationSuffix"]).lstrip(", ")
            items.append((" ".join(filter(None, (before, key))), after))
        text = "; ".join([", ".join(filter(None, item)) for item in items])
        if not all(_KEY.fullmatch(one["citationId"]) for one in content[0]):
            self.lose(text, "a citation whose key has brackets or braces, which is here as text")
            yield replace(marks, text=f"[{text}]")
        elif len(items) == 1 and content[0][0]["citationMode"]["t"] == "AuthorInText":
            words = f" [{items[0][1]}]" if items[0][1] else ""
            yield Leaf(f"{items[0][0]}{words}", "citation")
        else:
            yield Leaf(f"[{text}]", "citation")


def _words(nodes: Any) -> str:
    """Return the words beside a citation, with characters in code that separate citations."""
    return " ".join(syntax.text_of(nodes).split()).translate(_CODED)


_READERS: Mapping[str, Callable[[LeafReader, Any, Leaf, int], Iterator[Leaf]]] = {
    "Str": LeafReader._text,
    "Space": LeafReader._space,
    "SoftBreak": LeafReader._space,
    "LineBreak": LeafReader._break,
    "Code": LeafReader._code,
    "Math": LeafReader._math,
    "Quoted": LeafReader._quoted,
    "Link": LeafReader._link,
    "Image": LeafReader._image,
    "Span": LeafReader._span,
    "RawInline": LeafReader._raw,
    "Note": LeafReader._note,
    "Cite": LeafReader._cite,
}


def plain_text(leaves: Sequence[Leaf]) -> str:
    """Return the text of leaves."""
    return "".join(leaf.text for leaf in leaves)
