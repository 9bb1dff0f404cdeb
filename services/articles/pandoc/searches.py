"""Searches of pandoc's tree, before its blocks are read, or before it is written."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from services.articles.pandoc import syntax
from services.articles.pandoc.syntax import Node
from services.articles.pandoc.to_leaves import MAX_NESTING
from services.articles.tree.nodes import Json
from services.articles.tree.tex_equations import TEX_LABEL
from services.common.articles.texts import is_label

# Nodes that become blocks with labels, with the positions of their attributes.
_IDENTIFIED = {"Header": 1, "Figure": 0, "Table": 0, "CodeBlock": 0, "Span": 0, "Div": 0}
_DATES = ("issued", "accessed", "event-date", "original-date", "submitted")
# The identifier of what pandoc writes above the blocks of a page.
_TITLE_BLOCK = "title-block-header"


def picture_addresses(root: Node) -> list[str]:
    """Return the addresses of all pictures in a tree, each once."""
    pictures = _nodes(root["blocks"], ("Image",))
    return list(dict.fromkeys(picture["c"][2][0] for picture in pictures))


def labels_in(blocks: Any) -> frozenset[str]:
    """Return the identifiers of blocks to which links in a tree lead, if they can be labels."""
    links = {link["c"][2][0] for link in _nodes(blocks, ("Link",))}
    identifiers = [_identifier(node) for node in _nodes(blocks, tuple(_IDENTIFIED))]
    for formula in _nodes(blocks, ("Math",)):
        identifiers += TEX_LABEL.findall(formula["c"][1])
    return frozenset(one for one in identifiers if f"#{one}" in links and is_label(one))


def remove_dead_links(root: Node) -> None:
    """Replace links to places that are not in a tree by their texts.

    A block without content is not written, even if others refer to it, and Typst refuses a whole
    document for one such link.
    """
    identified = _nodes(root, tuple(_IDENTIFIED))
    places = {f"#{node['c'][_IDENTIFIED[node['t']]][0]}" for node in identified}
    for link in list(_nodes(root, ("Link",))):
        address = link["c"][2][0]
        if address.startswith("#") and address not in places:
            link.update(syntax.node("Span", syntax.NO_ATTRIBUTES, link["c"][1]))


def _identifier(node: Node) -> str:
    content = node["c"]
    if node["t"] == "Span" and any(one["t"] != "Math" for one in content[1]):
        # Marks in texts are empty, or are around a formula.
        return ""
    return str(content[_IDENTIFIED[node["t"]]][0])


def _nodes(value: Any, kinds: tuple[str, ...]) -> Iterator[Node]:
    """Yield the nodes of some kinds below a value."""
    waiting: list[Any] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if value.get("t") in kinds:
                yield value
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


def without_title(root: Node, labels: Collection[str]) -> tuple[Mapping[str, Node], list[Node]]:
    """Return the metadata and the blocks of a tree, without a heading that repeats the title.

    A heading to which links lead stays, in place of the title.
    """
    metadata: dict[str, Node] = root["meta"]
    blocks: list[Node] = root["blocks"]
    title = syntax.text_of(metadata["title"]).split() if "title" in metadata else []
    for index, block in enumerate(blocks[:3] if title else ()):
        if block["t"] == "Header" and syntax.text_of(block).split() == title:
            if block["c"][1][0] in labels:
                return {name: each for name, each in metadata.items() if name != "title"}, blocks
            return metadata, [*blocks[:index], *blocks[index + 1 :]]
        if block["t"] == "Div" and block["c"][0][0] == _TITLE_BLOCK:
            # Its authors are those of the metadata.
            inner = [one for one in block["c"][1] if syntax.text_of(one).split() != title]
            others = {name: value for name, value in metadata.items() if name != "author"}
            return others, [*blocks[:index], *inner, *blocks[index + 1 :]]
    return metadata, blocks


def reference_items(value: Node | None) -> tuple[Json, ...]:
    """Return the references in the metadata of a tree as items of CSL-JSON."""
    if value is None or value["t"] != "MetaList":
        return ()
    items = [plain_metadata(one) for one in value["c"]]
    return tuple([_with_dates(item) if isinstance(item, dict) else item for item in items])


def _with_dates(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its dates, which may be texts here, as objects."""
    dates = {name: {"raw": item[name]} for name in _DATES if isinstance(item.get(name), str)}
    return {**item, **dates}


def plain_metadata(value: Node, depth: int = 0) -> Any:
    """Return metadata as JSON."""
    if depth > MAX_NESTING:
        raise RecursionError
    match value["t"]:
        case "MetaMap":
            return {name: plain_metadata(each, depth + 1) for name, each in value["c"].items()}
        case "MetaList":
            return [plain_metadata(each, depth + 1) for each in value["c"]]
        case "MetaBool":
            return value["c"]
    return syntax.text_of(value)
