"""Markdown tables."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first row is the header; empty for no rows."""
    if not rows:
        return ""
    width = max(map(len, rows))
    head, *body = [[*map(_cell, row), *[""] * (width - len(row))] for row in rows]
    return "\n".join(map(_row, (head, ["---"] * width, *body)))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
