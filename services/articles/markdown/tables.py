"""Markdown of tables: GFM, or HTML where cells span."""

from services.articles.markdown.inline import Numbers, inline, inline_html
from services.articles.markdown.lines import cell, paragraph
from services.articles.tree.nodes import Element, Json

# A bare pipe ends a cell before its content is parsed, even in code and formulas.
_PIPE = "\\|"
# The cells of the row below the header, and the attribute of HTML cells, by `textAlign`.
_DELIMITERS = {"start": ":---", "center": ":---:", "end": "---:"}
_ALIGN = {"start": ' align="left"', "center": ' align="center"', "end": ' align="right"'}


def table(element: Element, numbers: Numbers, text_align: Json = None) -> str:
    """Return the Markdown of a table, whose style has a `textAlign`; "" without rows."""
    rows = element.elements
    if not rows:
        return ""
    if any(_spans(table_cell) for row in rows for table_cell in row.elements):
        return _html_table(rows, numbers, _ALIGN.get(str(text_align), ""))
    header, *body = [row_markdown(row, numbers) for row in rows]
    delimiter = _DELIMITERS.get(str(text_align), "---")
    delimiters = f"|{f' {delimiter} |' * len(rows[0].children)}"
    return "\n".join([header, delimiters, *body])


def row_markdown(row: Element, numbers: Numbers) -> str:
    """Return a row of a GFM table."""
    cells = [cell_markdown(element, numbers) for element in row.elements]
    return f"| {' | '.join(cells)} |"


def cell_markdown(element: Element, numbers: Numbers) -> str:
    """Return the content of a cell of a GFM table."""
    return cell(inline(element.leaves, numbers, _PIPE))


def _spans(element: Element) -> bool:
    return element.content["colSpan"] != 1 or element.content["rowSpan"] != 1


def _html_table(rows: tuple[Element, ...], numbers: Numbers, attributes: str) -> str:
    # No line may be blank but those around formulas: it would end the HTML.
    lines = ["<table>"]
    for index, row in enumerate(rows):
        tag = "td" if index else "th"
        cells = "".join(_html_cell(element, tag, numbers, attributes) for element in row.elements)
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def _html_cell(element: Element, tag: str, numbers: Numbers, attributes: str) -> str:
    spans = "".join(
        f' {name.lower()}="{element.content[name]}"'
        for name in ("colSpan", "rowSpan")
        if element.content[name] != 1
    )
    if any(leaf.type == "latex" for leaf in element.leaves):
        # Between blank lines Markdown is parsed, without which a formula would be none.
        content = f"\n\n{paragraph(inline(element.leaves, numbers))}\n\n"
    else:
        content = inline_html(element.leaves, numbers)
    return f"<{tag}{attributes}{spans}>{content}</{tag}>"
