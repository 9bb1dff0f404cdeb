"""Markdown of tables: GFM, or HTML where cells span."""

from services.articles.markdown.inline import Numbers, inline, inline_html
from services.articles.markdown.lines import cell
from services.articles.tree.nodes import Element

# A bare pipe ends a cell before its content is parsed, even in code and formulas.
_PIPE = "\\|"


def table(element: Element, numbers: Numbers) -> str:
    """Return the Markdown of a table; "" without rows."""
    rows = element.elements
    if not rows:
        return ""
    if any(_spans(table_cell) for row in rows for table_cell in row.elements):
        return _html_table(rows, numbers)
    header, *body = [row_markdown(row, numbers) for row in rows]
    delimiters = f"|{' --- |' * len(rows[0].children)}"
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


def _html_table(rows: tuple[Element, ...], numbers: Numbers) -> str:
    # No line may be blank: it would end the HTML.
    lines = ["<table>"]
    for index, row in enumerate(rows):
        tag = "td" if index else "th"
        cells = "".join(_html_cell(element, tag, numbers) for element in row.elements)
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def _html_cell(element: Element, tag: str, numbers: Numbers) -> str:
    spans = "".join(
        f' {name.lower()}="{element.content[name]}"'
        for name in ("colSpan", "rowSpan")
        if element.content[name] != 1
    )
    return f"<{tag}{spans}>{inline_html(element.leaves, numbers)}</{tag}>"
