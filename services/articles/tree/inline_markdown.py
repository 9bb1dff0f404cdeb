"""Inline Markdown, as documents are read, parsed into leaves."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from msgspec.structs import replace

from services.articles.tree.inline_rules import add_inline_rules, plain_text
from services.articles.tree.labels import MISSING, MISSING_NUMBER, all_names
from services.articles.tree.nodes import OBJECT, Leaf
from services.articles.tree.normalise import normal_leaves
from services.common.articles.texts import is_label

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_SYNTAX = re.compile(r"[\\`*_\[<$~^@&\n!]")
_LONE_CITATION = re.compile(r"\[\d{1,4}\]", re.ASCII)
_COLOUR = re.compile(r'<span style="color: ([^"]*)">')
# The field of a leaf that a pair of tokens or tags sets, and its value.
_MARKS: dict[str, tuple[str, Any]] = {
    "strong": ("bold", True),
    "em": ("italic", True),
    "s": ("decoration", "line-through"),
    "del": ("decoration", "line-through"),
    "u": ("decoration", "underline"),
    "code": ("type", "inlinecode"),
    "sup": ("script", "super"),
    "sub": ("script", "sub"),
}
# The types of leaves of tokens with content.
_TYPES = {
    "code_inline": "inlinecode",
    "formula": "latex",
    "display_formula": "latex",
    "citation": "citation",
    "note_ref": "note_ref",
}
_TAG = re.compile(r"<(/?)(strong|em|del|u|code|sup|sub|span)\b[^>]*>")
# The words of a link that is a reference to a block, and those that are its number alone.
_SHOWN = "|".join(re.escape(name).replace(r"\{\}", r"[\d.]{1,20}") for name in sorted(all_names()))
_REF_TEXT = re.compile(rf"(?:{_SHOWN}|{re.escape(MISSING)})")
_REF_NUMBER = re.compile(rf"(?:[\d.]{{1,20}}|{re.escape(MISSING_NUMBER)})")


class InlineText(NamedTuple):
    """Parsed inline Markdown.

    Attributes:
        leaves: the text with its marks, without citations.
        citations: citations in it, as they are written.
    """

    leaves: tuple[Leaf, ...]
    citations: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text alone."""
        return "".join(leaf.text for leaf in self.leaves)

    @property
    def is_marked(self) -> bool:
        """Whether any of the text has marks or another type than `default`."""
        plain = Leaf("")
        return any(not (leaf.is_object or leaf.same_marks(plain)) for leaf in self.leaves)


def parse_inline(markdown: str, known: Collection[str] | None = None) -> InlineText:
    """Parse inline Markdown; what is no syntax of `doc/read` is text.

    Args:
        markdown: the text.
        known: citations other than of one number count as text if they are not among these.
    """
    if not _SYNTAX.search(markdown):
        return InlineText((Leaf(markdown),) if markdown else ())
    leaves: list[Leaf] = []
    citations: list[str] = []
    (inline,) = _parser().parseInline(markdown)
    for leaf in inline_leaves(inline.children or []):
        leaves += _without_citations(leaf, citations, known)
    # The parser drops white space at the edges.
    if leaves:
        start = markdown[: len(markdown) - len(markdown.lstrip())]
        end = markdown[len(markdown.rstrip()) :]
        if start and not leaves[0].text.startswith(start):
            leaves.insert(0, Leaf(start))
        if end and not leaves[-1].text.endswith(end):
            leaves.append(Leaf(end))
    elif markdown and not citations:
        leaves.append(Leaf(markdown))
    return InlineText(tuple(leaves), tuple(citations))


def _without_citations(
    leaf: Leaf, citations: list[str], known: Collection[str] | None
) -> Iterator[Leaf]:
    """Yield a leaf unless it is a citation, which is added to the others, also in a note."""
    if leaf.type == "citation":
        if known is None or leaf.text in known or _LONE_CITATION.fullmatch(leaf.text):
            citations.append(leaf.text)
        else:
            yield replace(leaf, type="default", text=plain_text(leaf.text))
    elif leaf.type == "note_ref":
        yield replace(leaf, type="default", text=f"[^{leaf.text}]")
    elif leaf.type == "note":
        note = [one for child in leaf.note for one in _without_citations(child, citations, known)]
        yield replace(leaf, note=normal_leaves(note))
    elif leaf.text:
        yield leaf


def inline_leaves(tokens: "Iterable[Token]") -> Iterator[Leaf]:
    """Yield leaves for the tokens of inline Markdown; those of type `citation` are citations."""
    marks: dict[str, Any] = {}
    for token in tokens:
        kind, _, edge = token.type.rpartition("_")
        if leaf_type := _TYPES.get(token.type):
            leaf = Leaf(token.content, leaf_type, **_without_type(marks))
            if leaf_type == "inlinecode":
                leaf = replace(leaf, url=marks.get("url"))
            yield replace(leaf, form="display") if token.type == "display_formula" else leaf
        elif token.type == "note":
            yield Leaf(OBJECT, "note", note=tuple(inline_leaves(token.children or [])))
        elif token.type == "ref":
            form = token.info or None
            yield Leaf(OBJECT, "ref", **_without_type(marks), ref=token.content, form=form)
        elif token.type in ("softbreak", "hardbreak") or _is_line_break(token):
            yield Leaf("\n", **_as_text(marks))
        elif kind in _MARKS:
            _set(marks, *_MARKS[kind], is_open=edge == "open")
        elif token.type == "link_open":
            marks["url"] = str(token.attrs["href"])
        elif token.type == "link_close":
            del marks["url"]
        elif token.type != "html_inline" or not _apply_tag(marks, token.content):
            # Text, and syntax that documents do not have.
            yield _reference(Leaf(token.content, **_as_text(marks)))


def _reference(leaf: Leaf) -> Leaf:
    """Return a leaf as a reference to a block, if it is a link with the words of one."""
    if leaf.url is None or not leaf.url.startswith("#"):
        return leaf
    label = unquote(leaf.url[1:])
    is_number = _REF_NUMBER.fullmatch(leaf.text) is not None
    if not is_label(label) or not (is_number or _REF_TEXT.fullmatch(leaf.text)):
        return leaf
    form = "number" if is_number else None
    return replace(leaf, text=OBJECT, type="ref", url=None, ref=label, form=form)


def _is_line_break(token: "Token") -> bool:
    return token.type == "html_inline" and token.content == "<br>"


def _as_text(marks: dict[str, Any]) -> dict[str, Any]:
    return {**marks, "type": "url"} if "url" in marks else marks


def _without_type(marks: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in marks.items() if name not in ("type", "url")}


def _apply_tag(marks: dict[str, Any], html: str) -> bool:
    """Apply an HTML tag to the marks of what follows; return whether it is one of a document."""
    tag = _TAG.fullmatch(html)
    if tag is None:
        return False
    closing, name = tag.groups()
    if name != "span":
        _set(marks, *_MARKS[name], is_open=not closing)
    elif closing:
        marks.pop("color", None)
    elif colour := _COLOUR.fullmatch(html):
        marks["color"] = colour[1]
    return True


def _set(marks: dict[str, Any], name: str, value: Any, *, is_open: bool) -> None:
    if is_open:
        marks[name] = value
    else:
        marks.pop(name, None)


@cache
def _parser() -> "MarkdownIt":
    return new_parser()


def new_parser() -> "MarkdownIt":
    """Return a parser with strikethrough, formulas, citations, notes and references to blocks."""
    # Imported on first use, as few workers need it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable("strikethrough")
    add_inline_rules(parser)
    return parser
