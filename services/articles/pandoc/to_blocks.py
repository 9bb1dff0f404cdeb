"""Pandoc's tree as blocks, with a list of what documents do not hold."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from services.articles.bibliography.entries import Omission
from services.articles.pandoc import bibitems, syntax
from services.articles.pandoc.authors import author_of
from services.articles.pandoc.computed import (
    is_name,
    without_equation_number,
    without_number,
    without_section_number,
)
from services.articles.pandoc.searches import (
    labels_in,
    plain_metadata,
    reference_items,
    without_title,
)
from services.articles.pandoc.syntax import Node
from services.articles.pandoc.to_leaves import MAX_NESTING, LeafReader, plain_text
from services.articles.pandoc.unresolved import trimmed, with_texts
from services.articles.tree.errors import EditError
from services.articles.tree.front_matter import author_fields, front_matter_properties
from services.articles.tree.nodes import (
    EMPTY_LEAF,
    HEADING_TYPES,
    VOID_TYPES,
    Element,
    Json,
    Leaf,
)
from services.articles.tree.nodes import Node as Child
from services.articles.tree.normalise import normal_leaves
from services.articles.tree.parsing import (
    NewId,
    check_leaf,
    parse_content,
    with_checked_children,
)
from services.articles.tree.tex_equations import parse_equation
from services.articles.tree.values import schema_error
from services.common.articles import limits

_ALIGNMENTS = {"AlignLeft": "start", "AlignCenter": "center", "AlignRight": "end"}
_NUMBERINGS = {
    "LowerAlpha": "lower-alpha",
    "UpperAlpha": "upper-alpha",
    "LowerRoman": "lower-roman",
    "UpperRoman": "upper-roman",
}
# Nodes whose marks may stand before them, or around them.
_MARKED_BEFORE = ("CodeBlock", "Table", "Figure")
# What other blocks without children need.
_EMPTY: Mapping[str, Mapping[str, Json]] = {"author": {"institution": []}}
_READ_METADATA = ("title", "author", "abstract", "references", "institute", "pagetitle", "nocite")
# Fields that readers add, which say nothing about the document.
_IGNORED_METADATA = frozenset({"generator", "viewport", "csl", "link-citations"})


class ReadBlocks(NamedTuple):
    """Blocks, with leaves of type `citation` for citations.

    Attributes:
        blocks: the blocks.
        items: references of the tree as items of CSL-JSON.
        omitted: what is missing in the blocks.
        properties: properties of the document.
    """

    blocks: tuple[Element, ...]
    items: tuple[Json, ...]
    omitted: tuple[Omission, ...]
    properties: Mapping[str, Json]


def blocks_of(
    root: Node,
    file_of: Callable[[str], str | None],
    new_id: NewId,
    authors: Mapping[str, Json] = {},
) -> ReadBlocks:
    """Return the blocks of a tree.

    Args:
        root: the tree.
        file_of: returns the id of the file that is the picture with an address, if there is one.
        new_id: generator of ids of elements.
        authors: fields of the block of authors, if they are not those of the tree.

    Raises:
        EditError: a part is too large or nested too deeply.
    """
    labels = labels_in(root["blocks"])
    reader = _Reader(file_of, new_id, labels)
    metadata, blocks = without_title(root, labels)
    try:
        reader.metadata(metadata, authors)
        reader.flow(blocks, 0)
        reader.drop_references()
        items = (*reference_items(metadata.get("references")), *reader.items)
    except RecursionError:
        raise schema_error("", "the document is nested too deeply") from None
    omitted = tuple(reader.omitted[: limits.OMISSIONS])
    return ReadBlocks(tuple(reader.blocks), items, omitted, reader.properties)


class _Reader:
    def __init__(
        self, file_of: Callable[[str], str | None], new_id: NewId, labels: frozenset[str]
    ) -> None:
        self.blocks: list[Element] = []
        self.omitted: list[Omission] = []
        self.items: list[Json] = []
        self._texts = LeafReader(self.omitted, labels)
        # Those that no block has yet.
        self._labels = set(labels)
        self.properties: Mapping[str, Json] = {}
        # The type of paragraphs: quote inside of a quotation.
        self._prose = "paragraph"
        self._file_of = file_of
        self._new_id = new_id

    def metadata(self, metadata: Mapping[str, Node], authors: Mapping[str, Json]) -> None:
        """Add title, authors and abstract."""
        if "title" in metadata and (leaves := self._meta_leaves(metadata["title"])):
            self._add("title", leaves)
        if authors:
            self._add("author", (), authors)
        elif "author" in metadata:
            self._add_authors(metadata["author"])
        if "abstract" in metadata and (leaves := self._meta_leaves(metadata["abstract"])):
            self._add("abstract", leaves)
        others = {
            name: plain_metadata(value)
            for name, value in metadata.items()
            if name not in _READ_METADATA and name not in _IGNORED_METADATA
        }
        self.properties = front_matter_properties(others, self.omitted)
        for name in others:
            self._texts.lose(name, "metadata that documents do not have")

    def flow(self, nodes: Iterable[Node], depth: int) -> None:
        """Add the blocks of nodes."""
        if depth > MAX_NESTING:
            raise RecursionError
        for node in nodes:
            reader = _READERS.get(node["t"])
            if reader is None:
                self._texts.lose(node["t"], "a part that documents do not have")
                continue
            if node["t"] not in _MARKED_BEFORE:
                self._texts.marks.clear()
            reader(self, node.get("c"), depth)
            self._add_pictures()

    def drop_references(self) -> None:
        """Replace references to labels that no block got by the texts of their links."""
        if self._labels:
            self.blocks = [with_texts(one, self._labels, self._texts) for one in self.blocks]

    def _add(
        self,
        kind: str,
        children: Sequence[Child] = (),
        content: Mapping[str, Json] = {},
        style: Mapping[str, Json] = {},
    ) -> None:
        self.blocks.append(self._element(kind, children, content, style))

    def _element(
        self,
        kind: str,
        children: Sequence[Child],
        content: Mapping[str, Json] = {},
        style: Mapping[str, Json] = {},
        caption: Sequence[Leaf] = (),
    ) -> Element:
        checked: Mapping[str, Json] = content
        if kind in VOID_TYPES:
            checked = {**_EMPTY.get(kind, {}), **parse_content(content, "")}
        for leaf in (*children, *caption):
            if isinstance(leaf, Leaf):
                check_leaf(leaf, "")
                if len(leaf.text) > limits.LEAF_TEXT:
                    raise schema_error("", f"a text has more than {limits.LEAF_TEXT} characters")
        element = Element(self._new_id(), kind, (), style, checked, tuple(caption))
        return with_checked_children(element, children, "")

    def _label(self, attributes: Any) -> dict[str, Json]:
        """Return the field of a block that has the label of a node, if it is referred to.

        Without one, the block has the label of a mark in its text.
        """
        marks, self._texts.marks = self._texts.marks, []
        label = attributes[0]
        if label not in self._labels:
            label = next((mark for mark in marks if mark in self._labels), "")
        if label not in self._labels:
            return {}
        self._labels.remove(label)
        return {"label": label}

    def _meta_leaves(self, value: Node) -> list[Leaf]:
        match value["t"]:
            case "MetaInlines":
                return self._texts.leaves(value["c"])
            case "MetaBlocks":
                return self._flat(value["c"], 0)
        text = syntax.text_of(value)
        return [Leaf(text)] if text else []

    def _add_authors(self, value: Node) -> None:
        each = value["c"] if value["t"] == "MetaList" else [value]
        authors: list[Json] = []
        for one in each:
            if one["t"] == "MetaMap":
                one = one["c"].get("name", one)
            leaves = self._meta_leaves(one)
            if author := author_of(leaves):
                authors.append(author)
            for leaf in leaves:
                if leaf.note:
                    self._texts.lose(plain_text(leaf.note), "a note on an author")
        if authors:
            self._add("author", (), author_fields(authors, [], self.omitted))

    def _para(self, content: Any, depth: int) -> None:
        run: list[Node] = []
        for node in content:
            attributes: Any = ("",)
            formula = node
            if node["t"] == "Span" and len(node["c"][1]) == 1:
                attributes, (formula,) = node["c"]
            is_math = formula["t"] == "Math" and formula["c"][1].strip()
            if is_math and formula["c"][0]["t"] == "DisplayMath":
                self._add_text(run)
                run = []
                self._equation(formula["c"][1], attributes)
            else:
                run.append(node)
        self._add_text(run)
        text = syntax.text_of(content).strip()
        if text and not is_name(text):
            # Marks in a text of its own are not for the block after it.
            self._texts.marks.clear()

    def _equation(self, latex: str, attributes: Any) -> None:
        latex, labels = parse_equation(latex)
        label = self._label(labels or attributes)
        if label:
            latex = without_equation_number(latex)
        self._add("equation", (), {"equation": latex, **label})

    def _add_text(self, nodes: list[Node]) -> None:
        leaves = self._texts.leaves(nodes)
        if plain_text(leaves).strip():
            if self._texts.pictures:
                problem = "the place of a picture inside of a text, which comes after its block"
                self._texts.lose(plain_text(leaves), problem)
            self._add(self._prose, trimmed(leaves))

    def _header(self, content: Any, depth: int) -> None:
        level, attributes, nodes = content
        kind = HEADING_TYPES[min(level, len(HEADING_TYPES)) - 1]
        leaves = self._texts.leaves(without_section_number(nodes))
        self._add(kind, leaves, self._label(attributes))

    def _code(self, content: Any, depth: int) -> None:
        attributes, code = content
        # The first class of listings that pandoc highlighted.
        classes = [one for one in attributes[1] if one != "sourceCode"]
        language = classes[0] if classes else ""
        if len(language) > limits.CODE_LANGUAGE:
            language = ""
        before = self.blocks[-1] if self.blocks and self._texts.marks else None
        label = self._label(attributes)
        if label and before is not None and is_name(plain_text(before.leaves).strip()):
            self.blocks.pop()
        self._add("code", (), {"code": code, "language": language, **label})

    def _raw(self, content: Any, depth: int) -> None:
        self._texts.lose(content[1], f"a part in {content[0]}")

    def _quotation(self, content: Any, depth: int) -> None:
        outer, self._prose = self._prose, "quote"
        self.flow(content, depth + 1)
        self._prose = outer

    def _div(self, content: Any, depth: int) -> None:
        nodes = content[1]
        if bibitems.LIST in content[0][1]:
            items, nodes = bibitems.read_items(nodes, self._texts)
            self.items += items
        if content[0][0] in self._labels:
            self._texts.marks.append(content[0][0])
        self.flow(nodes, depth + 1)

    def _lines(self, content: Any, depth: int) -> None:
        nodes: list[Node] = []
        for line in content:
            nodes += [syntax.node("LineBreak")] if nodes else []
            nodes += line
        self._add_text(nodes)

    def _rule(self, content: Any, depth: int) -> None:
        self._texts.lose("rule", "a horizontal rule")

    def _definitions(self, content: Any, depth: int) -> None:
        items = []
        for term, definitions in content:
            name = " ".join(plain_text(self._texts.leaves(term)).split())
            leaves = [leaf for one in definitions for leaf in self._flat(one, depth + 1)]
            items.append(self._element("label-item", leaves or [EMPTY_LEAF], {"name": name}))
        self._add("label", items)

    def _figure(self, content: Any, depth: int) -> None:
        attributes, (_, captions), blocks = content
        before = len(self.blocks)
        self.flow(blocks, depth + 1)
        caption = self._caption(captions, depth)
        last = self.blocks[-1] if len(self.blocks) > before else None
        if last is not None and last.type == "image":
            fields = {**last.content, **self._label(attributes)}
            self.blocks[-1] = self._element("image", (), fields, {}, caption)
        elif caption:
            self._add("paragraph", caption)

    def _caption(self, blocks: Any, depth: int) -> Sequence[Leaf]:
        """Return a caption, empty if it says nothing."""
        leaves = without_number(self._flat(blocks, depth))
        return normal_leaves(leaves) if plain_text(leaves).strip() else ()

    def _bullets(self, content: Any, depth: int) -> None:
        self.blocks.append(self._list(content, {}, 1, depth))

    def _numbered(self, content: Any, depth: int) -> None:
        self.blocks.append(self._ordered(content, 1, depth))

    def _ordered(self, content: Any, level: int, depth: int) -> Element:
        (start, style, _), items = content
        order = _NUMBERINGS.get(style["t"], "decimal")
        first = {"start": start} if 1 < start <= limits.LIST_START else {}
        return self._list(items, {"orderType": order}, level, depth, first)

    def _list(
        self,
        items: Any,
        style: Mapping[str, Json],
        level: int,
        depth: int,
        content: Mapping[str, Json] = {},
    ) -> Element:
        if depth > MAX_NESTING:
            raise RecursionError
        made: list[Element] = []
        for item in items:
            made += self._item(item, level + 1, depth + 1)
        return self._element("list", made, content, style)

    def _item(self, blocks: Any, level: int, depth: int) -> list[Element]:
        """Return an item, followed by those of nested lists that would be too deep."""
        texts: list[Node] = []
        lists: list[Element] = []
        for node in blocks:
            if node["t"] == "BulletList":
                lists.append(self._list(node["c"], {}, level + 1, depth))
            elif node["t"] == "OrderedList":
                lists.append(self._ordered(node["c"], level + 1, depth))
            else:
                texts.append(node)
        leaves = self._flat(texts, depth) or [EMPTY_LEAF]
        nested = [child for one in lists for child in one.elements]
        if not nested:
            return [self._element("list-item", leaves)]
        if level + 2 > limits.DEPTH:
            self._texts.lose(plain_text(leaves), "a level of lists")
            return [self._element("list-item", leaves), *nested]
        if len(lists) > 1:
            self._texts.lose(plain_text(leaves), "the division between nested lists of an item")
        return [self._element("list-item", [*leaves, lists[0].with_children(nested)])]

    def _flat(self, blocks: Iterable[Node], depth: int) -> list[Leaf]:
        """Return blocks as the leaves of one text, each on a line of its own."""
        if depth > MAX_NESTING:
            raise RecursionError
        leaves: list[Leaf] = []
        for node in blocks:
            text = self._flat_block(node, depth)
            if leaves and text:
                self._texts.lose(plain_text(text), "a paragraph of its own, which became a line")
                leaves.append(Leaf("\n"))
            leaves += text
        return leaves

    def _flat_block(self, node: Node, depth: int) -> list[Leaf]:
        content: Any = node.get("c")
        match node["t"]:
            case "Para" | "Plain":
                return self._texts.leaves(content)
            case "CodeBlock":
                return [Leaf(content[1], "inlinecode")] if content[1] else []
            case "BlockQuote":
                return self._flat(content, depth + 1)
            case "Div":
                return self._flat(content[1], depth + 1)
            case "Header":
                return self._texts.leaves(content[2])
        text = " ".join(syntax.text_of(node).split())
        self._texts.lose(text, f"the form of a {node['t']} inside of a text")
        return [Leaf(text)] if text else []

    def _table(self, content: Any, depth: int) -> None:
        attributes, (_, captions), specs, (_, head), bodies, (_, foot) = content
        rows = [*head]
        for _, _, intermediate, body in bodies:
            rows += [*intermediate, *body]
        rows += foot
        align = [_ALIGNMENTS.get(spec[0]["t"]) for spec in specs]
        caption = self._caption(captions, depth)
        label = self._label(attributes)
        made = [self._row(row, depth + 1) for row in rows]
        if not made and caption:
            self._add("paragraph", caption)
        if len(made) > limits.TABLE_ROWS:
            self._texts.lose(plain_text(caption), "a long table, which became several")
        for start in range(0, len(made), limits.TABLE_ROWS):
            part = made[start : start + limits.TABLE_ROWS]
            fields: dict[str, Json] = {"align": align, **({} if start else label)}
            self.blocks.append(self._element("table", part, fields, {}, () if start else caption))

    def _row(self, row: Any, depth: int) -> Element:
        cells = []
        for _, _, rows, columns, blocks in row[1]:
            leaves = self._flat(blocks, depth) or [EMPTY_LEAF]
            spans = {"colSpan": columns, "rowSpan": rows}
            cells.append(self._element("table-cell", leaves, spans))
        return self._element("table-row", cells)

    def _add_pictures(self) -> None:
        pictures, self._texts.pictures = self._texts.pictures, []
        made: list[Json] = []
        for address, alternative, title in pictures:
            file_id = self._file_of(address)
            picture: dict[str, Json] = {"fileId": file_id} if file_id else {"url": address}
            if alternative:
                picture["alt"] = alternative[: limits.LEAF_TEXT]
            if title:
                picture["title"] = title[: limits.LEAF_TEXT]
            try:
                parse_content({"image": [picture]}, "")
            except EditError:
                problem = (
                    "a picture that is neither in the document, nor at a web address or in /files"
                )
                self._texts.lose(address[:100], problem)
                if alternative:
                    self._add("paragraph", [Leaf(alternative)])
                continue
            made.append(picture)
        if made:
            self._add("image", (), {"image": made})


_READERS: Mapping[str, Callable[[_Reader, Any, int], None]] = {
    "Para": _Reader._para,
    "Plain": _Reader._para,
    "Header": _Reader._header,
    "CodeBlock": _Reader._code,
    "RawBlock": _Reader._raw,
    "BlockQuote": _Reader._quotation,
    "Div": _Reader._div,
    "LineBlock": _Reader._lines,
    "HorizontalRule": _Reader._rule,
    "DefinitionList": _Reader._definitions,
    "Figure": _Reader._figure,
    "BulletList": _Reader._bullets,
    "OrderedList": _Reader._numbered,
    "Table": _Reader._table,
}
