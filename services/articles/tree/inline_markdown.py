"""Inline Markdown, as documents are read, parsed into leaves."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from services.articles.tree.nodes import Leaf

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_SYNTAX = re.compile(r"[\\`*_\[<$~&\n!]")
_CITATION = re.compile(r"\[(\d{1,4})\](?![(\[:])", re.ASCII)
# A formula on one line, by pandoc's rules for dollar signs.
_FORMULA = re.compile(r"\$(?!\s)((?:[^$\\]|\\.)+?)(?<!\s)\$(?!\d)", re.DOTALL)
_COLOUR = re.compile(r'<span style="color: ([^"]*)">')
# The field of a leaf that a pair of tokens or tags sets, and its value.
_MARKS: dict[str, tuple[str, Any]] = {
    "strong": ("bold", True),
    "em": ("italic", True),
    "s": ("decoration", "line-through"),
    "del": ("decoration", "line-through"),
    "u": ("decoration", "underline"),
    "code": ("type", "inlinecode"),
}
# The types of leaves of tokens with content.
_TYPES = {
    "code_inline": "inlinecode",
    "formula": "latex",
    "citation": "citation",
    "key_citation": "citation",
}
_TAG = re.compile(r"<(/?)(strong|em|del|u|code|span)\b[^>]*>")


class InlineText(NamedTuple):
    """Parsed inline Markdown.

    Attributes:
        leaves: the text with its marks, without citations.
        citations: numbers of citations in it.
    """

    leaves: tuple[Leaf, ...]
    citations: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The text alone."""
        return "".join(leaf.text for leaf in self.leaves)

    @property
    def is_marked(self) -> bool:
        """Whether any of the text has marks or another type than `default`."""
        plain = Leaf("")
        return any(not leaf.same_marks(plain) for leaf in self.leaves)


def parse_inline(markdown: str) -> InlineText:
    """Parse inline Markdown; what is no syntax of `doc/read` is text."""
    if not _SYNTAX.search(markdown):
        return InlineText((Leaf(markdown),) if markdown else ())
    leaves: list[Leaf] = []
    citations: list[int] = []
    (inline,) = _parser().parseInline(markdown)
    for leaf in inline_leaves(inline.children or []):
        if leaf.type == "citation":
            citations.append(int(leaf.text))
        elif leaf.text:
            leaves.append(leaf)
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


def inline_leaves(tokens: "Iterable[Token]") -> Iterator[Leaf]:
    """Yield leaves for the tokens of inline Markdown; those of type `citation` are citations."""
    marks: dict[str, Any] = {}
    for token in tokens:
        kind, _, edge = token.type.rpartition("_")
        if leaf_type := _TYPES.get(token.type):
            yield Leaf(token.content, leaf_type, **_without_type(marks))
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
            yield Leaf(token.content, **_as_text(marks))


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
    """Return a parser with strikethrough, formulas and citations by number."""
    # Imported on first use, as few workers need it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable("strikethrough")
    parser.inline.ruler.before("escape", "formula", _formula_rule)
    parser.inline.ruler.before("link", "citation", _citation_rule)
    return parser


def _formula_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "$":
        return False
    return push_match(state, silent, "formula", _FORMULA.match(state.src, state.pos))


def _citation_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "[":
        return False
    return push_match(state, silent, "citation", _CITATION.match(state.src, state.pos))


def push_match(state: "StateInline", silent: bool, kind: str, match: re.Match[str] | None) -> bool:
    """Add a token for what an inline rule matched; return whether it matched."""
    if match is None:
        return False
    if not silent:
        state.push(kind, "", 0).content = match[1]
    state.pos = match.end()
    return True
