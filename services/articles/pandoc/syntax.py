"""Nodes of pandoc's tree as JSON: `{"t": type, "c": content}`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = Any
Node = dict[str, Any]
Attributes = tuple[str, Sequence[str], Sequence[tuple[str, str]]]

VERSION = (1, 23, 1)
NO_ATTRIBUTES: Attributes = ("", (), ())
_PARTS = re.compile(r"\n|[ \t]+|[^ \t\n]+")


def node(kind: str, *content: Json) -> Node:
    """Return a node with no, one or several parts."""
    match len(content):
        case 0:
            return {"t": kind}
        case 1:
            return {"t": kind, "c": content[0]}
    return {"t": kind, "c": list(content)}


def words(text: str) -> list[Node]:
    """Return a text as inline nodes; newlines are hard breaks."""
    return [_word(part) for part in _PARTS.findall(text)]


def _word(part: str) -> Node:
    if part == "\n":
        return node("LineBreak")
    return node("Space") if part[0] in " \t" else node("Str", part)


def para(inlines: Iterable[Node]) -> Node:
    """Return a paragraph."""
    return node("Para", list(inlines))


def plain(inlines: Iterable[Node]) -> Node:
    """Return a text without the space around a paragraph."""
    return node("Plain", list(inlines))


def header(level: int, inlines: Iterable[Node], attributes: Attributes) -> Node:
    """Return a heading."""
    return node("Header", level, attributes, list(inlines))


def formula(latex: str, *, is_display: bool) -> Node:
    """Return a formula."""
    return node("Math", node("DisplayMath" if is_display else "InlineMath"), latex)


def meta(value: Json) -> Node:
    """Return a value of JSON as metadata; lists of nodes must be made before."""
    if isinstance(value, Mapping):
        if "t" in value:
            return dict(value)
        return node("MetaMap", {key: meta(each) for key, each in value.items()})
    if isinstance(value, list | tuple):
        return node("MetaList", [meta(each) for each in value])
    return node("MetaString", str(value))


def document(metadata: Mapping[str, Node], blocks: Sequence[Node]) -> Node:
    """Return a whole tree."""
    return {"pandoc-api-version": VERSION, "meta": dict(metadata), "blocks": list(blocks)}


def text_of(nodes: Json) -> str:
    """Return the text in nodes, or in anything that holds nodes."""
    parts: list[str] = []
    _collect(nodes, parts)
    return "".join(parts)


def _collect(value: Json, parts: list[str]) -> None:
    if isinstance(value, list | tuple):
        for each in value:
            _collect(each, parts)
        return
    if not isinstance(value, Mapping) or "t" not in value:
        return
    match value["t"]:
        case "Str" | "MetaString":
            parts.append(value["c"])
        case "Space" | "SoftBreak" | "LineBreak":
            parts.append(" ")
        case "Code" | "Math" | "RawInline" | "CodeBlock" | "RawBlock":
            parts.append(value["c"][1])
        case "Link" | "Image" | "Span" | "Quoted" | "Cite" | "Header":
            _collect(value["c"], parts)
        case _:
            _collect(value.get("c"), parts)
