"""What is left to do with texts that were read: references without a block, and white space."""

from msgspec.structs import replace

from services.articles.pandoc.to_leaves import LeafReader
from services.articles.tree.nodes import Element, Leaf
from services.articles.tree.nodes import Node as Child
from services.articles.tree.normalise import normal_children


def with_texts(element: Element, labels: set[str], reader: LeafReader) -> Element:
    """Return an element with texts in place of references to labels that no block has."""
    children: list[Child] = []
    for child in element.children:
        if isinstance(child, Element):
            children.append(with_texts(child, labels, reader))
        elif child.ref in labels:
            text = reader.references[str(child.ref)]
            reader.lose(text, "the target of a link inside of the document")
            children.append(Leaf(text))
        else:
            children.append(child)
    if all(new is old for new, old in zip(children, element.children, strict=True)):
        return element
    return element.with_children(normal_children(element.type, children))


def trimmed(leaves: list[Leaf]) -> list[Leaf]:
    """Return leaves without white space alone at an end, where pictures and formulas were."""
    while leaves and leaves[0].type == "default" and not leaves[0].text.strip():
        leaves = leaves[1:]
    while leaves and leaves[-1].type == "default" and not leaves[-1].text.strip():
        leaves = leaves[:-1]
    if leaves and leaves[-1].type == "default":
        leaves = [*leaves[:-1], replace(leaves[-1], text=leaves[-1].text.rstrip())]
    return leaves
