"""Styles: which properties fit which block, how a patch merges, what finally applies.

An ElementStyle is `{style: CssStyle, …the type's own properties}`. A style that a caller
sends is a patch in the sense of RFC 7396: null takes a property away.
"""

from collections.abc import Callable, Mapping
from functools import partial

from services.articles.tree import limits
from services.articles.tree.errors import join_pointer
from services.articles.tree.nodes import BLOCK_TYPES, Element, Json
from services.articles.tree.values import (
    array,
    boolean,
    choice,
    integer,
    mapping,
    number,
    schema_error,
    string,
)

Style = Mapping[str, Json]
_Check = Callable[[object, str], object]

_BASE_CSS = (
    "fontFamily fontSize fontWeight color backgroundColor justifyContent marginTop marginBottom "
    "width lineHeight letterSpacing borderStyle borderWidth borderRadius borderColor"
).split()
_CSS_KEYS = {
    "image": frozenset([*_BASE_CSS, "columnGap", "rowGap"]),
    "list": frozenset([*_BASE_CSS, "columnGap", "rowGap", "alignItems"]),
}
_PLAIN_CSS_KEYS = frozenset(_BASE_CSS)
_AUTHOR_CSS_KEYS = frozenset(
    "fontFamily fontSize fontWeight color justifyContent width lineHeight letterSpacing gap".split()
)
# What the global part of an article's style hands down to every block.
_INHERITED = ("fontFamily", "fontSize", "fontWeight", "color", "lineHeight", "letterSpacing")


def _css_value(value: object, pointer: str) -> object:
    if isinstance(value, str):
        return string(value, pointer, limits.CSS_VALUE)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise schema_error(pointer, "must be a string or a number")
    return number(value, pointer)


def _text(value: object, pointer: str) -> object:
    return string(value, pointer, limits.CSS_VALUE)


def _one_of(*options: str) -> _Check:
    return partial(choice, options=options)


def _columns(value: object, pointer: str) -> object:
    return integer(value, pointer, 1, 3)


def _ratios(value: object, pointer: str) -> object:
    ratios = array(value, pointer)
    if not 1 <= len(ratios) <= 3:
        raise schema_error(pointer, "must hold one to three numbers")
    for place, ratio in enumerate(ratios):
        if number(ratio, join_pointer(pointer, place)) <= 0:
            raise schema_error(join_pointer(pointer, place), "must be greater than 0")
    return ratios


def _fields(checks: Mapping[str, _Check], value: object, pointer: str) -> object:
    given = mapping(value, pointer, checks)
    for key, entry in given.items():
        if entry is not None:
            checks[key](entry, join_pointer(pointer, key))
    return given


def _css(keys: frozenset[str]) -> _Check:
    return partial(_fields, dict.fromkeys(keys, _css_value))


_LANGUAGE = _one_of("none", "zh", "en")
_PROPERTIES: dict[str, dict[str, _Check]] = {
    "paragraph": {"indent": boolean},
    "abstract": {
        "language": _LANGUAGE,
        "titlePosition": _one_of("left", "top"),
        "titlePadding": _css_value,
    },
    "h1": {"isHideIndex": boolean},
    "h2": {"isHideIndex": boolean},
    "h3": {"isHideIndex": boolean},
    "label": {
        "nameWidth": _text,
        "columnGap": _css_value,
        "rowGap": _css_value,
        "twoColumn": boolean,
    },
    "equation": {"serial": boolean},
    "code": {"isHideLanguage": boolean},
    "image": {
        "serial": boolean,
        "titleLanguage": _LANGUAGE,
        "titleMargin": _css_value,
        "titlePadding": _css_value,
        "columns": _columns,
        "columnRatios": _ratios,
    },
    "author": {
        "authorStyle": _css(_AUTHOR_CSS_KEYS),
        "institutionStyle": _css(_AUTHOR_CSS_KEYS),
    },
    "list": {
        "orderType": _one_of(
            "disc", "decimal", "lower-alpha", "upper-alpha", "lower-roman", "upper-roman"
        ),
        "orderWidth": _css_value,
        "indentWidth": _css_value,
    },
    "table": {
        "textAlign": _one_of("center", "start", "end"),
        "verticalAlign": _one_of("top", "middle", "bottom", "start", "center", "end"),
        "firstRowBold": boolean,
        "firstColBold": boolean,
        "padding": _css_value,
    },
}


def _element_checks(kind: str) -> dict[str, _Check]:
    return {
        "style": _css(_CSS_KEYS.get(kind, _PLAIN_CSS_KEYS)),
        "isTemplate": boolean,
        **_PROPERTIES.get(kind, {}),
    }


_ELEMENT = {kind: _element_checks(kind) for kind in BLOCK_TYPES}
_PART = _element_checks("part")
_EVERY_PROPERTY = frozenset(key for checks in _ELEMENT.values() for key in checks)
_GLOBAL: dict[str, _Check] = {
    "paperSize": _one_of("A3", "A4", "A5", "B5", "Letter", "Legal"),
    "orientation": _one_of("portrait", "landscape"),
    "margin": partial(_fields, dict.fromkeys(("top", "right", "bottom", "left"), _css_value)),
    **dict.fromkeys(_INHERITED, _css_value),
}
_ARTICLE: dict[str, _Check] = {
    "global": partial(_fields, _GLOBAL),
    **{kind: partial(_fields, checks) for kind, checks in _ELEMENT.items()},
}

# What a block has when neither it nor the article says otherwise.
_DEFAULTS: dict[str, Style] = {"list": {"orderType": "disc"}, "abstract": {"language": "none"}}


def check_element_style(kind: str, patch: object, pointer: str) -> None:
    """Refuse what does not fit a block of the type; null fits everywhere.

    Raises:
        EditError: a property is unknown or belongs to another type, or a value is wrong.
    """
    checks = _ELEMENT.get(kind, _PART)
    for key in mapping(patch, pointer):
        if key not in checks and key in _EVERY_PROPERTY:
            raise schema_error(join_pointer(pointer, key), f"does not fit a block of type {kind}")
    _fields(checks, patch, pointer)


def check_article_style(patch: object, pointer: str) -> None:
    """Refuse what is no part of an ArticleStyle; null fits everywhere.

    Raises:
        EditError: a part or a property is unknown, or a value is wrong.
    """
    _fields(_ARTICLE, patch, pointer)


def merge_patch(target: Json, patch: Json) -> Json:
    """Apply a merge patch (RFC 7396): objects merge, null removes, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    made = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge_patch(made.get(key), value)
    return made


def apply_style_patch(target: Style, patch: Style) -> Style:
    """Apply a merge patch to an object."""
    made = merge_patch(target, patch)
    assert isinstance(made, Mapping)
    return made


def inverse_patch(target: Style, patch: Style) -> Style:
    """Return the patch that takes `apply_style_patch(target, patch)` back to `target`."""
    made: dict[str, Json] = {}
    for key, value in patch.items():
        before = target.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            made[key] = inverse_patch(before, value)
        else:
            made[key] = before
    return made


def computed_style(article: Style, element: Element) -> Style:
    """Return what finally applies: defaults, then global CSS, the article's part, the block's own.

    Args:
        article: the document's ArticleStyle.
        element: any element of the document.
    """
    everywhere = article.get("global")
    inherited: dict[str, Json] = {}
    if isinstance(everywhere, Mapping):
        inherited = {key: everywhere[key] for key in _INHERITED if key in everywhere}
    made: Json = _DEFAULTS.get(element.type, {})
    if inherited:
        made = merge_patch(made, {"style": inherited})
    if element.type in article:
        made = merge_patch(made, article[element.type])
    if element.style:
        made = merge_patch(made, element.style)
    assert isinstance(made, Mapping)
    return made
