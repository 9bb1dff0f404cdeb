"""What blocks become in another type: nothing that they say is lost.

Paragraphs, headings and the like become each other, listings, formulas, and lists, whose items keep
the ids of the blocks; and back.
"""

from collections.abc import Sequence

from services.articles.tree import schema
from services.articles.tree.nodes import LABELLED_TYPES, PROSE_TYPES, Element, Json, Leaf
from services.articles.tree.normalise import normal_leaves
from services.articles.tree.parsing import NewId
from services.articles.tree.values import schema_error
from services.common.articles import limits
from services.common.articles.blocks import ELEMENTS

_TEXT_TYPES = (*PROSE_TYPES, "label")
# The types that blocks can be converted to, and from.
CONVERTIBLE_TYPES = (*_TEXT_TYPES, "code", "equation", "list")
_LIMITS = {"equation": limits.EQUATION, "code": limits.CODE}


def converted(blocks: Sequence[Element], kind: str, new_id: NewId) -> tuple[Element, ...]:
    """Return blocks of a type that say what others say.

    Raises:
        EditError: 40003, the type cannot hold what they say.
    """
    if kind not in CONVERTIBLE_TYPES:
        raise schema_error("/type", f"must be one of {', '.join(CONVERTIBLE_TYPES)}")
    if all(block.type == kind for block in blocks):
        return tuple(blocks)
    if kind == "list":
        items = [_of_type(block, "list-item") for block in blocks]
        return (Element(new_id(), "list", tuple(items)),)
    flat = [part for block in blocks for part in _parts(block)]
    return tuple([part if part.type == "list" else _of_type(part, kind) for part in flat])


def _parts(block: Element) -> Sequence[Element]:
    """Return the items of a list as elements beside its nested lists; another block as it is."""
    if block.type != "list":
        return (block,)
    parts: list[Element] = []
    for item in block.elements:
        parts.append(item.with_children(item.leaves))
        parts.extend(item.elements)
    return parts


def _of_type(element: Element, kind: str) -> Element:
    leaves = _leaves(element)
    style = _fitting_style(element, kind)
    label = _label(element, kind)
    if kind not in _LIMITS:
        content = {"name": "", **label} if kind == "label-item" else label
        return Element(element.id, kind, normal_leaves(leaves), style, content)
    text = "".join(leaf.text for leaf in leaves)
    plain_types = ("default", "latex") if kind == "equation" else ("default", "inlinecode")
    for leaf in leaves:
        if leaf.type not in plain_types or not leaf.same_marks(Leaf("", leaf.type)):
            problem = f"the block has marks, links or citations, which {kind} cannot hold"
            raise schema_error("/type", problem)
    if len(text) > _LIMITS[kind]:
        raise schema_error("/type", f"{kind} can have at most {_LIMITS[kind]} characters")
    content = {"equation": text} if kind == "equation" else {"code": text, "language": ""}
    return Element(element.id, kind, (), style, {**content, **label})


def _label(element: Element, kind: str) -> dict[str, Json]:
    if element.label is None:
        return {}
    if kind not in LABELLED_TYPES:
        problem = f"the block has a label, which {kind} cannot have; remove it first"
        raise schema_error("/type", problem)
    return {"label": element.label}


def _leaves(element: Element) -> Sequence[Leaf]:
    if element.type == "equation":
        return (Leaf(str(element.content["equation"]), "latex"),)
    if element.type == "code":
        if element.content["language"]:
            problem = "the listing has a language, which no other type holds; clear it first"
            raise schema_error("/type", problem)
        return (Leaf(str(element.content["code"])),)
    if element.elements or element.type not in (*_TEXT_TYPES, "list-item"):
        what = "label with items" if element.type == "label" else element.type
        raise schema_error("/blockIds", f"a {what} cannot be converted")
    return element.leaves


def _fitting_style(element: Element, kind: str) -> dict[str, Json]:
    own = schema.fields_of(schema.object_type(ELEMENTS[kind], "style"))
    return {key: value for key, value in element.style.items() if key in own}
