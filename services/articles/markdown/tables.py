"""Markdown of tables: GFM, or HTML where cells span."""

from collections.abc import Sequence
from typing import Any

from services.articles.markdown.citations import ShownReferences
from services.articles.markdown.escape import attribute
from services.articles.markdown.inline import inline, inline_html
from services.articles.markdown.lines import cell, paragraph
from services.articles.tree.nodes import Element, Json, Leaf
from services.articles.tree.rows import placed_cells

# A bare pipe ends a cell before its content is parsed, even in code and formulas.
_PIPE = "\\|"
# The cells of the row below the header, and the attribute of HTML cells, by `textAlign`.
_DELIMITERS = {"start": ":---", "center": ":---:", "end": "---:"}
_ALIGN = {"start": ' align="left"', "center": ' align="center"', "end": ' align="right"'}


def table(element: Element, shown: ShownReferences, text_align: Json = None) -> str:
    """Return the Markdown of a table, whose style has a `textAlign`; "" without rows."""
    rows = element.elements
    caption = _caption(element, shown)
    if not rows:
        return caption
    align = _alignments(element, text_align)
    if any(_spans(table_cell) for row in rows for table_cell in row.elements):
        return _html_table(element, shown, align)
    header, *body = [row_markdown(row, shown) for row in rows]
    delimiters = " | ".join([_DELIMITERS.get(str(one), "---") for one in align])
    lines = [header, f"| {delimiters} |", *body]
    return "\n".join([*lines, "", caption] if caption else lines)


def _alignments(element: Element, text_align: Json) -> list[Json]:
    """Return the alignment of each column."""
    own: Any = element.content.get("align") or [None] * int(str(element.content["colLength"]))
    return [one or text_align for one in own]


def _caption(element: Element, shown: ShownReferences) -> str:
    """Return the paragraph after a table with its caption and its label."""
    if not element.caption and element.label is None:
        return ""
    label = "" if element.label is None else f"{{#{element.label}}}"
    caption = cell(inline(element.caption, shown))
    return " ".join(part for part in (":", caption, label) if part)


def row_markdown(row: Element, shown: ShownReferences) -> str:
    """Return a row of a GFM table."""
    cells = [cell_markdown(element, shown) for element in row.elements]
    return f"| {' | '.join(cells)} |"


def cell_markdown(element: Element, shown: ShownReferences) -> str:
    """Return the content of a cell of a GFM table."""
    return cell(inline(element.leaves, shown, _PIPE))


def _spans(element: Element) -> bool:
    return element.content["colSpan"] != 1 or element.content["rowSpan"] != 1


def _html_table(element: Element, shown: ShownReferences, align: Sequence[Json]) -> str:
    # No line may be blank but those around formulas: it would end the HTML.
    identifier = "" if element.label is None else f' id="{attribute(element.label)}"'
    lines = [f"<table{identifier}>"]
    if element.caption:
        lines.append(f"<caption>{_html_content(element.caption, shown)}</caption>")
    cells_of: dict[int, list[str]] = {}
    for placed in placed_cells(element.elements):
        tag = "td" if placed.row else "th"
        attributes = _ALIGN.get(str(align[placed.column]), "")
        html = _html_cell(placed.cell, tag, shown, attributes)
        cells_of.setdefault(placed.row, []).append(html)
    for row in range(len(element.elements)):
        lines.append(f"<tr>{''.join(cells_of.get(row, ()))}</tr>")
    return "\n".join([*lines, "</table>"])


def _html_cell(element: Element, tag: str, shown: ShownReferences, attributes: str) -> str:
    spans = "".join(
        f' {name.lower()}="{element.content[name]}"'
        for name in ("colSpan", "rowSpan")
        if element.content[name] != 1
    )
    return f"<{tag}{attributes}{spans}>{_html_content(element.leaves, shown)}</{tag}>"


def _html_content(leaves: Sequence[Leaf], shown: ShownReferences) -> str:
    if any(leaf.type == "latex" for leaf in leaves):
        # Between blank lines Markdown is parsed, without which a formula would be none.
        return f"\n\n{paragraph(inline(leaves, shown))}\n\n"
    return inline_html(leaves, shown)
