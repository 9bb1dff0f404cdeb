"""A text in Markdown as blocks, with a list of what documents cannot hold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from services.articles.bibliography.entries import Omission
from services.articles.tree.errors import EditError
from services.articles.tree.front_matter import (
    front_matter_blocks,
    front_matter_properties,
    parse_front_matter,
    split_front_matter,
)
from services.articles.tree.inline_rules import plain_text
from services.articles.tree.markdown_parser import (
    Attributes,
    ParsedText,
    parse_text,
    split_attributes,
)
from services.articles.tree.nodes import EMPTY_LEAF, Element, Json, Leaf, Node
from services.articles.tree.normalise import normal_leaves
from services.articles.tree.parsing import NewId, parse_content, with_checked_children
from services.articles.tree.picture_files import PictureFiles
from services.articles.tree.tex_equations import TexEquation, parse_equation
from services.articles.tree.written_inline import InlineReader
from services.common.articles import limits

if TYPE_CHECKING:
    from markdown_it.token import Token

# Written by doc/read between two lists.
_LIST_END = "<!-- -->"
_ALIGNMENTS = {"left": "start", "center": "center", "right": "end"}
_DECIMAL: Mapping[str, Json] = {"orderType": "decimal"}


class WrittenBlocks(NamedTuple):
    """Blocks, with leaves of type `citation` for citations; what is missing; and properties."""

    blocks: tuple[Element, ...]
    omitted: tuple[Omission, ...]
    properties: Mapping[str, Json]


@dataclass(slots=True)
class _Part:
    """A token with the tokens inside of it."""

    token: "Token"
    parts: "list[_Part]" = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.token.type.removesuffix("_open")


def parse_blocks(markdown: str, files: PictureFiles, new_id: NewId) -> WrittenBlocks:
    """Return the blocks of a text.

    Args:
        markdown: the text.
        files: files that are pictures of the text.
        new_id: generator of ids of elements.

    Raises:
        EditError: the text, or a part of it, is too large or nested too deeply.
    """
    front_matter, markdown = split_front_matter(markdown)
    text = parse_text(markdown)
    builder = _Builder(text, files, new_id)
    properties: dict[str, Json] = {}
    if front_matter is not None:
        fields = parse_front_matter(front_matter)
        properties = front_matter_properties(fields, builder.omitted)
        for kind, children, content in front_matter_blocks(fields, builder.omitted):
            builder.add(kind, children, content)
    builder.add_flow(_nested(text.tokens))
    builder.lose_unused()
    omitted = tuple([*builder.omitted, *files.unused()][: limits.OMISSIONS])
    return WrittenBlocks(tuple(builder.blocks), omitted, properties)


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

    def __init__(self, text: ParsedText, files: PictureFiles, new_id: NewId) -> None:
        self.blocks: list[Element] = []
        self._text = text
        self._inline = InlineReader(text, files)
        self.omitted = self._inline.omitted
        self._new_id = new_id
        self._labels: set[str] = set()

    def add(
        self,
        kind: str,
        children: Sequence[Node],
        content: Mapping[str, Json] = {},
        caption: tuple[Leaf, ...] = (),
        style: Mapping[str, Json] = {},
    ) -> None:
        """Add a block at the end."""
        element = self._element(kind, children, content, style)
        self.blocks.append(replace(element, caption=caption))

    def add_flow(self, parts: Iterable[_Part]) -> None:
        """Add blocks for parsed ones."""
        for part in parts:
            self._at(part)
            self._add(part)
            self._add_figure()

    def _add_figure(self) -> None:
        figure = self._inline.take_figure()
        if figure.pictures or figure.caption or figure.label:
            label = self._free_label(figure.label)
            self.add("image", (), {"image": figure.pictures, **label}, figure.caption)

    def lose_unused(self) -> None:
        """Note definitions of addresses and footnotes that nothing uses, and repeated ones."""
        definitions = self._text.definitions
        for name in definitions.keys() - definitions.used:
            self.omitted.append(Omission(name[:64].lower(), "an address that no link uses"))
        for name in self._text.repeated:
            self.omitted.append(Omission(name[:64].lower(), "a second address of this name"))
        for name, footnote in self._text.footnotes.items():
            if name not in self._inline.used_notes:
                place = f"line {footnote.line}"
                reason = f"the footnote {name[:64]}, which nothing names"
                self.omitted.append(Omission(place, reason))

    def _free_label(self, label: str | None) -> dict[str, Json]:
        """Return the label of a block as content, unless another block has it."""
        checked = None if label is None else self._inline.checked_label(label)
        if checked is None:
            return {}
        if checked in self._labels:
            self._inline.lose(f"the label {checked}, which another block has")
            return {}
        self._labels.add(checked)
        return {"label": checked}

    def _attributes(self, token: "Token") -> Attributes:
        return Attributes.parse(str(token.meta.get("attributes", "")))

    def _add(self, part: _Part) -> None:
        token = part.token
        match part.kind:
            case "heading":
                attributes = self._attributes(token)
                style = {"isHideIndex": True} if "unnumbered" in attributes.classes else {}
                label = self._free_label(attributes.label)
                self.add(token.tag, self._leaves(part), label, style=style)
            case "paragraph":
                self._add_paragraph(part)
            case "bullet_list" | "ordered_list":
                self.blocks.append(self._list(part, 1))
            case "table":
                self.blocks.append(self._table(part))
            case "formula_block":
                label = self._free_label(self._attributes(token).label)
                self.add("equation", (), {"equation": token.content, **label})
            case "tex_equation":
                latex, labels = self._tex_equation(token)
                label = self._free_label(labels[0] if labels else None)
                self.add("equation", (), {"equation": latex, **label})
            case "fence" | "code_block":
                self.add("code", (), self._code(token))
            case "blockquote":
                self._add_quote(part)
            case "html_block":
                if leaves := self._html(token):
                    self.add("paragraph", leaves)
            case _:
                self._inline.lose("a horizontal rule")

    def _tex_equation(self, token: "Token") -> TexEquation:
        equation = parse_equation(token.content)
        for name in equation.labels[1:]:
            self._inline.lose(f"the label {name[:64]} of a line of a formula")
        return equation

    def _add_quote(self, part: _Part) -> None:
        for child in part.parts:
            self._at(child)
            if child.kind == "paragraph":
                if leaves := self._leaves(child, only_pictures_allowed=True):
                    self.add("quote", leaves)
                self._add_figure()
            else:
                what = child.kind.replace("_", " ")
                self._inline.lose(f"the mark of a quotation at a {what}, which is here")
                self.add_flow([child])

    def _add_paragraph(self, part: _Part) -> None:
        if "caption" in part.token.meta:
            label = self._free_label(self._attributes(part.token).label)
            table = self.blocks[-1]
            caption = normal_leaves(self._leaves(part))
            if caption == (EMPTY_LEAF,):
                caption = ()
            self.blocks[-1] = replace(table, caption=caption, content={**table.content, **label})
            return
        leaves = self._leaves(part, only_pictures_allowed=True)
        if leaves:
            self.add("paragraph", leaves)

    def _at(self, part: _Part) -> None:
        if part.token.map:
            self._inline.line = part.token.map[0] + 1

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
            problem = f"{error.problem}, in line {self._inline.line}"
            raise EditError(error.code, "/markdown", problem) from None

    def _code(self, token: "Token") -> dict[str, Json]:
        info, attributes = split_attributes(token.info.strip())
        parsed = Attributes.parse(attributes)
        language = plain_text(info).strip() or " ".join(parsed.classes[:1])
        if len(language) > limits.CODE_LANGUAGE:
            self._inline.lose("the language of a listing, which is too long")
            language = ""
        label = self._free_label(parsed.label)
        return {"code": token.content.removesuffix("\n"), "language": language, **label}

    def _html(self, token: "Token") -> list[Leaf]:
        html = token.content.strip()
        if html == _LIST_END:
            return []
        if html.startswith("<!--") and html.endswith("-->") and html.count("-->") == 1:
            self._inline.lose("a comment")
            return []
        self._inline.lose("HTML, which is here as text")
        return self._inline.checked([Leaf(html)])

    def _list(self, part: _Part, depth: int) -> Element:
        is_ordered = part.kind == "ordered_list"
        start = part.token.attrs.get("start", 1) if is_ordered else 1
        items: list[Element] = []
        for item in part.parts:
            items += self._items(item, depth + 1)
        content: dict[str, Json] = {} if start == 1 else {"start": start}
        return self._element("list", items, content, _DECIMAL if is_ordered else {})

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
                self._inline.lose("the place of a text in an item, after a nested list")
            text = self._item_text(child)
            if leaves and text:
                leaves += self._between(leaves[-1], text[0])
            leaves += text
        too_deep = depth + 2 > limits.DEPTH
        below: list[Element] = []
        for nested in lists[0 : None if too_deep else 0]:
            self._inline.lose("a level of lists")
            below += [child for child in nested.elements]
        if len(lists) > 1 and not too_deep:
            self._inline.lose("the division between nested lists of an item")
            joined = [child for nested in lists for child in nested.elements]
            lists = [lists[0].with_children(joined)]
        children: list[Node] = [*(leaves or [EMPTY_LEAF]), *([] if too_deep else lists)]
        return [self._element("list-item", children), *below]

    def _between(self, before: Leaf, after: Leaf) -> list[Leaf]:
        """Return what comes between the texts of two blocks of an item."""
        if "display" in (before.form, after.form):
            edges = before.text[-1:].isspace() or after.text[:1].isspace()
            return [] if edges else [Leaf(" ")]
        self._inline.lose("a paragraph inside of an item, which became a line")
        return [Leaf("\n")]

    def _item_text(self, part: _Part) -> list[Leaf]:
        """Return what a block inside of an item says as leaves."""
        token = part.token
        match part.kind:
            case "paragraph":
                return self._leaves(part)
            case "fence" | "code_block":
                self._inline.lose("a listing inside of an item, which became a piece of code")
                return self._inline.checked([Leaf(token.content.removesuffix("\n"), "inlinecode")])
            case "formula_block":
                return self._inline.checked([Leaf(token.content, "latex", form="display")])
            case "tex_equation":
                latex, labels = self._tex_equation(token)
                for name in labels[:1]:
                    self._inline.lose(f"the label {name[:64]} of a formula inside of an item")
                return self._inline.checked([Leaf(latex, "latex", form="display")])
            case "html_block":
                return self._html(token)
            case "hr":
                self._inline.lose("a horizontal rule")
                return []
            case "inline":
                return self._inline.leaves(token.children or [])
        self._inline.lose(f"a {part.kind.replace('_', ' ')} inside of an item, whose text is here")
        leaves: list[Leaf] = []
        for child in part.parts:
            text = self._item_text(child) if child.kind not in _TABLE_PARTS else self._cells(child)
            if leaves and text:
                leaves.append(Leaf("\n"))
            leaves += text
        return leaves

    def _cells(self, part: _Part) -> list[Leaf]:
        leaves: list[Leaf] = []
        for child in part.parts:
            text = (
                self._cells(child)
                if child.parts
                else self._inline.leaves(child.token.children or [])
            )
            leaves += [Leaf(" ")] * bool(leaves) + text
        return leaves

    def _table(self, part: _Part) -> Element:
        rows: list[Element] = []
        alignments: list[str] = []
        for line in [row for group in part.parts for row in group.parts]:
            self._at(line)
            self._lose_further_cells(line)
            cells = []
            for cell in line.parts:
                style = str(cell.token.attrs.get("style", ""))
                if not rows:
                    alignments.append(_ALIGNMENTS.get(style.removeprefix("text-align:"), ""))
                content = {"colSpan": 1, "rowSpan": 1}
                cells.append(self._element("table-cell", self._leaves(cell), content))
            rows.append(self._element("table-row", cells))
        self._at(part)
        if len(set(alignments)) > 1:
            return self._element("table", rows, {"align": [each or None for each in alignments]})
        return self._element(
            "table", rows, {}, {"textAlign": alignments[0]} if any(alignments) else {}
        )

    def _lose_further_cells(self, row: _Part) -> None:
        """Note the cells of a row beyond those of the header, which the parser leaves out."""
        if row.token.map is None:
            return
        from markdown_it.rules_block.table import escapedSplit

        source = self._text.lines[row.token.map[0]].strip().lstrip("> \t")
        cells = escapedSplit(source)
        beyond = len(cells) - (not cells[0]) - (len(cells) > 1 and not cells[-1].strip())
        if beyond > len(row.parts):
            first = len(row.parts) + (not cells[0])
            lost = " | ".join(cell.strip() for cell in cells[first : beyond + (not cells[0])])
            self._inline.lose(f"cells beyond the header of the table: {lost[:200]}")

    def _leaves(self, part: _Part, *, only_pictures_allowed: bool = False) -> list[Leaf]:
        """Return the text of a block; empty only if that is allowed, for pictures alone."""
        leaves = [
            leaf for child in part.parts for leaf in self._inline.leaves(child.token.children or [])
        ]
        if only_pictures_allowed and not "".join(leaf.text for leaf in leaves).strip():
            return []
        return leaves


_TABLE_PARTS = frozenset({"thead", "tbody", "tr", "th", "td"})
