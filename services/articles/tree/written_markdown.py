"""A text in Markdown as blocks, with a list of what documents cannot hold."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from services.articles.bibliography.entries import Omission
from services.articles.tree.colours import is_colour
from services.articles.tree.errors import EditError
from services.articles.tree.front_matter import front_matter_blocks, split_front_matter
from services.articles.tree.inline_markdown import inline_leaves
from services.articles.tree.markdown_parser import parse_tokens
from services.articles.tree.nodes import EMPTY_LEAF, Element, Json, Leaf, Node
from services.articles.tree.parsing import (
    NewId,
    check_leaf,
    parse_content,
    with_checked_children,
)
from services.articles.tree.values import schema_error
from services.common.articles import limits

if TYPE_CHECKING:
    from markdown_it.token import Token

# Written by doc/read between two lists.
_LIST_END = "<!-- -->"
_FILE_ADDRESS = re.compile(r"/beta/v1/files/([^/]+)/content")
_KNOWN_TAG = re.compile(r"<br>|</?(?:strong|em|del|u|code)>|<span style=\"color: [^\"]*\">|</span>")
_FOOTNOTE = re.compile(r"\[\^[^\]\[\s]+\]")
_ALIGNMENTS = {"left": "start", "center": "center", "right": "end"}
_HEADINGS = {"h1": "h1", "h2": "h2"}  # others become h3
_DECIMAL: Mapping[str, Json] = {"orderType": "decimal"}


class WrittenBlocks(NamedTuple):
    """Blocks, with leaves of type `citation` for citations, and what is missing in them."""

    blocks: tuple[Element, ...]
    omitted: tuple[Omission, ...]


@dataclass(slots=True)
class _Part:
    """A token with the tokens inside of it."""

    token: "Token"
    parts: "list[_Part]" = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.token.type.removesuffix("_open")


def parse_blocks(markdown: str, new_id: NewId) -> WrittenBlocks:
    """Return the blocks of a text.

    Raises:
        EditError: the text, or a part of it, is too large or nested too deeply.
    """
    front_matter, markdown = split_front_matter(markdown)
    builder = _Builder(new_id)
    if front_matter is not None:
        for kind, children, content in front_matter_blocks(front_matter, builder.omitted):
            builder.add(kind, children, content)
    tokens = parse_tokens(markdown)
    builder.add_flow(_nested(tokens))
    return WrittenBlocks(tuple(builder.blocks), tuple(builder.omitted[: limits.OMISSIONS]))


def _nested(tokens: "Iterable[Token]") -> list[_Part]:
    top: list[_Part] = []
    levels = [top]
    for token in tokens:
        if token.nesting < 0:
            levels.pop()
            continue
        part = _Part(token)
        levels[-1].append(part)
        if token.nesting > 0:
            levels.append(part.parts)
    return top


class _Builder:
    """Makes blocks of parsed Markdown; what is lost is gathered in `omitted`."""

    def __init__(self, new_id: NewId) -> None:
        self.blocks: list[Element] = []
        self.omitted: list[Omission] = []
        self._new_id = new_id
        self._line = 1
        self._address_characters = 0
        # Pictures inside of a text, which come after its block.
        self._pictures: list[Json] = []

    def add(self, kind: str, children: Sequence[Node], content: Mapping[str, Json] = {}) -> None:
        """Add a block at the end."""
        self.blocks.append(self._element(kind, children, content))

    def add_flow(self, parts: Iterable[_Part]) -> None:
        """Add blocks for parsed ones."""
        for part in parts:
            self._at(part)
            self._add(part)
            if self._pictures:
                pictures, self._pictures = self._pictures, []
                self.add("image", (), {"image": pictures})

    def _add(self, part: _Part) -> None:
        token = part.token
        match part.kind:
            case "heading":
                level = _HEADINGS.get(token.tag, "h3")
                if token.tag > level:
                    self._lose(f"a heading of level {token.tag[1:]}, which became one of level 3")
                self.add(level, self._leaves(part))
            case "paragraph":
                self._add_paragraph(part)
            case "bullet_list" | "ordered_list":
                self.blocks.append(self._list(part, 1))
            case "table":
                self.blocks.append(self._table(part))
            case "formula_block":
                self.add("equation", (), {"equation": token.content})
            case "fence" | "code_block":
                self.add("code", (), self._code(token))
            case "blockquote":
                self._lose("the mark of a quotation; its text is here")
                self.add_flow(part.parts)
            case "html_block":
                if leaves := self._html(token):
                    self.add("paragraph", leaves)
            case _:
                self._lose("a horizontal rule")

    def _add_paragraph(self, part: _Part) -> None:
        leaves = self._leaves(part, only_pictures_allowed=True)
        if leaves:
            self.add("paragraph", leaves)

    def _at(self, part: _Part) -> None:
        if part.token.map:
            self._line = part.token.map[0] + 1

    def _lose(self, what: str) -> None:
        omission = Omission(f"line {self._line}", what)
        if self.omitted[-1:] != [omission]:
            self.omitted.append(omission)

    def _element(
        self,
        kind: str,
        children: Sequence[Node],
        content: Mapping[str, Json] = {},
        style: Mapping[str, Json] = {},
    ) -> Element:
        checked: Mapping[str, Json] = content
        try:
            if kind in ("equation", "code", "image", "author"):
                checked = parse_content(content, "")
            element = Element(self._new_id(), kind, (), style, checked)
            return with_checked_children(element, children, "")
        except EditError as error:
            problem = f"{error.problem}, in line {self._line}"
            raise EditError(error.code, "/markdown", problem) from None

    def _code(self, token: "Token") -> dict[str, Json]:
        from markdown_it.common.utils import unescapeAll

        language = unescapeAll(token.info).strip()
        if len(language) > limits.CODE_LANGUAGE:
            self._lose("the language of a listing, which is too long")
            language = ""
        return {"code": token.content.removesuffix("\n"), "language": language}

    def _html(self, token: "Token") -> list[Leaf]:
        html = token.content.strip()
        if html == _LIST_END:
            return []
        if html.startswith("<!--") and html.endswith("-->") and html.count("-->") == 1:
            self._lose("a comment")
            return []
        self._lose("HTML, which is here as text")
        return self._checked([Leaf(html)])

    def _list(self, part: _Part, depth: int) -> Element:
        is_ordered = part.kind == "ordered_list"
        if is_ordered and part.token.attrs.get("start", 1) != 1:
            self._lose("the first number of a list")
        items: list[Element] = []
        for item in part.parts:
            items += self._items(item, depth + 1)
        return self._element("list", items, {}, _DECIMAL if is_ordered else {})

    def _items(self, part: _Part, depth: int) -> list[Element]:
        """Return an item, followed by those of nested lists that would be too deep."""
        self._at(part)
        leaves: list[Leaf] = []
        lists: list[Element] = []
        for child in part.parts:
            self._at(child)
            if child.kind in ("bullet_list", "ordered_list"):
                lists.append(self._list(child, depth + 1))
                continue
            if lists:
                self._lose("the place of a text in an item, after a nested list")
            text = self._text(child)
            if leaves and text:
                self._lose("a paragraph inside of an item, which became a line")
                leaves.append(Leaf("\n"))
            leaves += text
        too_deep = depth + 2 > limits.DEPTH
        below: list[Element] = []
        for nested in lists[0 : None if too_deep else 0]:
            self._lose("a level of lists")
            below += [child for child in nested.elements]
        if len(lists) > 1 and not too_deep:
            self._lose("the division between nested lists of an item")
            joined = [child for nested in lists for child in nested.elements]
            lists = [lists[0].with_children(joined)]
        children: list[Node] = [*(leaves or [EMPTY_LEAF]), *([] if too_deep else lists)]
        return [self._element("list-item", children), *below]

    def _text(self, part: _Part) -> list[Leaf]:
        """Return what a block inside of an item says as leaves."""
        token = part.token
        match part.kind:
            case "paragraph":
                return self._leaves(part)
            case "fence" | "code_block":
                self._lose("a listing inside of an item, which became a piece of code")
                return self._checked([Leaf(token.content.removesuffix("\n"), "inlinecode")])
            case "formula_block":
                self._lose("a formula on its own line inside of an item, which is in the line")
                return self._checked([Leaf(token.content, "latex")])
            case "html_block":
                return self._html(token)
            case "hr":
                self._lose("a horizontal rule")
                return []
            case "inline":
                return self._inline_leaves(token)
        self._lose(f"a {part.kind.replace('_', ' ')} inside of an item, whose text is here")
        leaves: list[Leaf] = []
        for child in part.parts:
            text = self._text(child) if child.kind not in _TABLE_PARTS else self._cells(child)
            if leaves and text:
                leaves.append(Leaf("\n"))
            leaves += text
        return leaves

    def _cells(self, part: _Part) -> list[Leaf]:
        leaves: list[Leaf] = []
        for child in part.parts:
            text = self._cells(child) if child.parts else self._inline_leaves(child.token)
            leaves += [Leaf(" ")] * bool(leaves) + text
        return leaves

    def _table(self, part: _Part) -> Element:
        rows = []
        alignments: set[str] = set()
        for line in [row for group in part.parts for row in group.parts]:
            self._at(line)
            cells = []
            for cell in line.parts:
                style = str(cell.token.attrs.get("style", ""))
                alignments.add(_ALIGNMENTS.get(style.removeprefix("text-align:"), ""))
                content = {"colSpan": 1, "rowSpan": 1}
                cells.append(self._element("table-cell", self._leaves(cell), content))
            rows.append(self._element("table-row", cells))
        self._at(part)
        if len(alignments) > 1:
            self._lose("the alignment of columns; a table has one")
            alignments = {""}
        alignment = alignments.pop()
        return self._element("table", rows, {}, {"textAlign": alignment} if alignment else {})

    def _leaves(self, part: _Part, *, only_pictures_allowed: bool = False) -> list[Leaf]:
        """Return the text of a block; empty only if that is allowed, for pictures alone."""
        leaves = [leaf for child in part.parts for leaf in self._inline_leaves(child.token)]
        if only_pictures_allowed and not "".join(leaf.text for leaf in leaves).strip():
            return []
        return leaves

    def _inline_leaves(self, inline: "Token") -> list[Leaf]:
        tokens = inline.children or []
        pictures = [token for token in tokens if token.type == "image"]
        texts = [token for token in tokens if token.type not in ("image", "softbreak")]
        if pictures and any(token.content.strip() for token in texts):
            self._lose("the place of a picture inside of a text, which comes after its block")
        if _FOOTNOTE.search(inline.content):
            self._lose("the meaning of a footnote; its text is where it was written")
        if any(t.type == "html_inline" and not _KNOWN_TAG.fullmatch(t.content) for t in tokens):
            self._lose("the meaning of HTML, which is here as text")
        return self._checked(inline_leaves(list(self._prepared(tokens))))

    def _prepared(self, tokens: "Iterable[Token]") -> "Iterator[Token]":
        """Yield tokens in the form of doc/read; pictures are gathered."""
        is_linked = False
        for token in tokens:
            is_linked = token.type == "link_open" or (is_linked and token.type != "link_close")
            if token.type == "softbreak":
                # The end of a line of Markdown is a space.
                yield token.copy(type="text", content=" ")
            elif token.type == "image":
                if is_linked:
                    self._lose("the address that a picture is a link to")
                if alternative := self._picture(token):
                    yield token.copy(type="text", content=alternative)
            elif token.type in ("citation", "key_citation"):
                yield token.copy(content=f"[{token.content}]")
            else:
                if is_linked and token.type in ("code_inline", "formula"):
                    self._lose("the address that code or a formula is a link to")
                yield token

    def _picture(self, token: "Token") -> str:
        """Gather a picture; return what stands for one that the document cannot hold."""
        address = str(token.attrs.get("src", ""))
        alternative = "".join(
            " " if child.type == "softbreak" else child.content for child in token.children or []
        )
        picture: dict[str, Json] = {"url": address}
        if file_name := _FILE_ADDRESS.fullmatch(address):
            picture = {"fileId": file_name[1]}
        if alternative:
            picture["alt"] = alternative
        if title := token.attrs.get("title"):
            picture["title"] = str(title)
        try:
            checked = parse_content({"image": [picture]}, "")["image"]
        except EditError as error:
            self._lose(f"the picture {address[:200]}: {error.problem}")
            return alternative
        self._spend(address)
        assert isinstance(checked, list)
        self._pictures += checked
        return ""

    def _checked(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        made = []
        for leaf in leaves:
            if leaf.color is not None and not is_colour(leaf.color):
                self._lose(f"the colour {leaf.color[:64]}")
                leaf = replace(leaf, color=None)
            if leaf.url is not None:
                if not leaf.url:
                    self._lose("a link without an address")
                    leaf = replace(leaf, type="default", url=None)
                else:
                    self._spend(leaf.url)
            check_leaf(leaf, "/markdown")
            if len(leaf.text) > limits.LEAF_TEXT:
                problem = (
                    f"the text in line {self._line} has more than {limits.LEAF_TEXT} characters"
                )
                raise schema_error("/markdown", problem)
            made.append(leaf)
        return made

    def _spend(self, address: str) -> None:
        # A definition of a link may be used at thousands of places.
        self._address_characters += len(address)
        if self._address_characters > limits.MARKDOWN_TEXT:
            problem = (
                f"addresses of links must have at most {limits.MARKDOWN_TEXT} characters in all"
            )
            raise schema_error("/markdown", problem)


_TABLE_PARTS = frozenset({"thead", "tbody", "tr", "th", "td"})
