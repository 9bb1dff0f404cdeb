r"""Pandoc's tree as a page in HTML, for where pandoc is not installed.

All text is escaped. Formulas are LaTeX between `\(` and `\)`, or `\[` and `\]`, as MathJax and
KaTeX read them.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from services.articles.pandoc.syntax import Node

_MARKS = {
    "Strong": "strong",
    "Emph": "em",
    "Underline": "u",
    "Strikeout": "s",
    "Superscript": "sup",
    "Subscript": "sub",
}
_ALIGNMENTS = {"AlignLeft": "left", "AlignCenter": "center", "AlignRight": "right"}
_NUMBERINGS = {"LowerAlpha": "a", "UpperAlpha": "A", "LowerRoman": "i", "UpperRoman": "I"}
_CSS = (
    "body{max-width:46em;margin:2em auto;padding:0 1em;font-family:serif;line-height:1.5}"
    "table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2em .5em}"
    "img{max-width:100%}pre{overflow:auto}"
)


def write_html(root: Node) -> str:
    """Return a tree as a page."""
    metadata: Mapping[str, Any] = root["meta"]
    title = escape(metadata["pagetitle"]["c"])
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_CSS}</style>'
    parts = []
    if "title" in metadata:
        parts.append(f"<h1>{_inlines(metadata['title']['c'])}</h1>")
    if "author" in metadata:
        names = ", ".join(_inlines(name["c"]) for name in metadata["author"]["c"])
        parts.append(f"<p>{names}</p>")
    if "abstract" in metadata:
        parts.append(f"<blockquote>{_blocks(metadata['abstract']['c'])}</blockquote>")
    parts.append(_blocks(root["blocks"]))
    body = "\n".join(parts)
    return f"<!DOCTYPE html>\n<html><head>{head}</head><body>\n{body}\n</body></html>\n"


def _blocks(nodes: Sequence[Node]) -> str:
    return "\n".join(_BLOCKS[node["t"]](node["c"]) for node in nodes)


def _inlines(nodes: Sequence[Node]) -> str:
    return "".join(_inline(node) for node in nodes)


def _inline(node: Node) -> str:
    kind: str = node["t"]
    content: Any = node.get("c")
    if (mark := _MARKS.get(kind)) is not None:
        return f"<{mark}>{_inlines(content)}</{mark}>"
    match kind:
        case "Note":
            return f'<small class="note"> ({_notes(content)})</small>'
        case "Str":
            return escape(content)
        case "Space":
            return " "
        case "LineBreak":
            return "<br>"
        case "Code":
            return f"<code>{escape(content[1])}</code>"
        case "Math":
            opening, closing = (
                (r"\[", r"\]") if content[0]["t"] == "DisplayMath" else (r"\(", r"\)")
            )
            return f'<span class="math">{opening}{escape(content[1])}{closing}</span>'
        case "Link":
            return f'<a href="{escape(content[2][0])}">{_inlines(content[1])}</a>'
        case "Image":
            return _image(content)
        case "Span":
            style = ";".join(value for name, value in content[0][2] if name == "style")
            identifier = _id(content[0])
            return f'<span{identifier} style="{escape(style)}">{_inlines(content[1])}</span>'
    assert kind == "Cite"
    return _inlines(content[1])


def _notes(blocks: Sequence[Node]) -> str:
    return " ".join(_inlines(block["c"]) for block in blocks)


def _id(attributes: Any) -> str:
    return f' id="{escape(attributes[0])}"' if attributes[0] else ""


def _image(content: Any) -> str:
    attributes, alternative, (address, _) = content
    css = escape(";".join(f"{name}:{value}" for name, value in attributes[2]))
    style = f' style="{css}"' if css else ""
    return f'<img src="{escape(address)}" alt="{escape(_plain(alternative))}"{style}>'


def _plain(nodes: Sequence[Node]) -> str:
    return "".join(node["c"] if node["t"] == "Str" else " " for node in nodes)


def _header(content: Any) -> str:
    level, attributes, inlines = content
    return f"<h{level}{_id(attributes)}>{_inlines(inlines)}</h{level}>"


def _code(content: Any) -> str:
    return f"<pre{_id(content[0])}><code>{escape(content[1])}</code></pre>"


def _figure(content: Any) -> str:
    attributes, (_, caption), blocks = content
    titled = f"<figcaption>{_blocks(caption)}</figcaption>"
    return f"<figure{_id(attributes)}>{_blocks(blocks)}{titled}</figure>"


def _items(items: Sequence[Sequence[Node]]) -> str:
    return "".join(f"<li>{_blocks(item)}</li>" for item in items)


def _ordered(content: Any) -> str:
    (start, style, _), items = content
    kind = _NUMBERINGS.get(style["t"], "1")
    return f'<ol type="{kind}" start="{start}">{_items(items)}</ol>'


def _table(content: Any) -> str:
    attributes, (_, caption), specs, (_, head), bodies, _ = content
    alignments = [_ALIGNMENTS.get(alignment["t"], "") for alignment, _ in specs]
    rows = [_row(row, "th", alignments) for row in head]
    rows += [_row(row, "td", alignments) for body in bodies for row in body[3]]
    titled = f"<caption>{_blocks(caption)}</caption>" if caption else ""
    return f"<table{_id(attributes)}>{titled}{''.join(rows)}</table>"


def _row(row: Any, tag: str, alignments: Sequence[str]) -> str:
    cells = []
    # The columns of cells after one that spans are not counted: they have the alignment of the row.
    for position, (_, _, rows, columns, blocks) in enumerate(row[1]):
        align = alignments[position] if len(row[1]) == len(alignments) else ""
        style = f' style="text-align:{align}"' if align else ""
        spans = f' rowspan="{rows}"' if rows > 1 else ""
        spans += f' colspan="{columns}"' if columns > 1 else ""
        cells.append(f"<{tag}{style}{spans}>{_blocks(blocks)}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


_BLOCKS: Mapping[str, Callable[[Any], str]] = {
    "Para": lambda content: f"<p>{_inlines(content)}</p>",
    "Plain": lambda content: _inlines(content),
    "Header": _header,
    "CodeBlock": _code,
    "BlockQuote": lambda content: f"<blockquote>{_blocks(content)}</blockquote>",
    "Figure": _figure,
    "BulletList": lambda content: f"<ul>{_items(content)}</ul>",
    "OrderedList": _ordered,
    "Table": _table,
}
