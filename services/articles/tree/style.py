"""Styles: checks by block type, merge patches, and the computed style of a block.

An ElementStyle is `{style: CssStyle, …the type's own properties}`. A style that a caller
sends is a merge patch (RFC 7396): null removes a property.
"""

from collections.abc import Mapping

from services.articles.tree import schema
from services.articles.tree.errors import join_pointer
from services.articles.tree.nodes import BLOCK_TYPES, Element, Json
from services.articles.tree.values import schema_error
from services.common.articles.blocks import ELEMENTS
from services.common.articles.styles import ArticleStyle, InheritableCss

Style = Mapping[str, Json]

# CSS properties that every block inherits from the global part of an article's style.
_INHERITED = tuple(InheritableCss.__annotations__)

# Default styles of blocks, by type.
_DEFAULTS: dict[str, Style] = {"list": {"orderType": "disc"}, "abstract": {"language": "none"}}


def check_element_style(kind: str, patch: object, pointer: str) -> None:
    """Check a style against the type of its block; null is valid everywhere.

    Raises:
        EditError: a property is unknown or belongs to another type, or a value is wrong.
    """
    own = schema.object_type(ELEMENTS[kind], "style")
    for key in patch if isinstance(patch, Mapping) else ():
        if key not in schema.fields_of(own) and _is_property(key):
            raise schema_error(
                join_pointer(pointer, key), f"not allowed for a block of type {kind}"
            )
    schema.check(own, patch, pointer)


def _is_property(key: str) -> bool:
    return any(
        key in schema.fields_of(schema.object_type(ELEMENTS[kind], "style")) for kind in BLOCK_TYPES
    )


def check_article_style(patch: object, pointer: str) -> None:
    """Check a patch of an ArticleStyle; null is valid everywhere.

    Raises:
        EditError: a part or a property is unknown, or a value is wrong.
    """
    schema.check(ArticleStyle, patch, pointer)


def merge_patch(target: Json, patch: Json) -> Json:
    """Apply a merge patch (RFC 7396): objects merge, null removes, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def apply_style_patch(target: Style, patch: Style) -> Style:
    """Apply a merge patch to an object."""
    patched = merge_patch(target, patch)
    assert isinstance(patched, Mapping)
    return patched


def inverse_patch(target: Style, patch: Style) -> Style:
    """Return the patch that changes `apply_style_patch(target, patch)` back to `target`."""
    inverse: dict[str, Json] = {}
    for key, value in patch.items():
        before = target.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            inverse[key] = inverse_patch(before, value)
        else:
            inverse[key] = before
    return inverse


def computed_style(article: Style, element: Element) -> Style:
    """Return the style that applies to an element.

    Later ones override: defaults, the global CSS, the article's style of the type, the own style.

    Args:
        article: the document's ArticleStyle.
        element: any element of the document.
    """
    everywhere = article.get("global")
    inherited: dict[str, Json] = {}
    if isinstance(everywhere, Mapping):
        inherited = {key: everywhere[key] for key in _INHERITED if key in everywhere}
    style: Json = _DEFAULTS.get(element.type, {})
    if inherited:
        style = merge_patch(style, {"style": inherited})
    if element.type in article:
        style = merge_patch(style, article[element.type])
    if element.style:
        style = merge_patch(style, element.style)
    assert isinstance(style, Mapping)
    return style
