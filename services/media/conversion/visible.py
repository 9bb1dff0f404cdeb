"""Extract the visible part of an HTML page. Runs in worker processes."""

import re
from collections.abc import Iterator

from lxml.html import HtmlElement

# Elements without visible text. Scripting counts as enabled, so `noscript` is not shown.
_NO_TEXT = frozenset(
    {
        *("applet", "audio", "base", "canvas", "embed", "frame", "frameset", "iframe", "link"),
        *("map", "meta", "noembed", "noframes", "noscript", "object", "param", "script", "source"),
        *("style", "svg", "template", "track", "video"),
    }
)
# Classes by which libraries mark text for screen readers.
_UNSEEN_CLASSES = frozenset({"screen-reader-text", "sr-only", "visually-hidden"})
# `opacity` and `transform` do not count as hidden: many pages are served with them, and their
# scripts fade in the text.
_PROPERTY_BACKWARDS = re.compile(r"[\w-]*")
_NOTHING = r"(?:0+(?:\.0+)?|\.0+)"  # a number
_HIDING = {
    "display": re.compile(r"none").fullmatch,
    "visibility": re.compile(r"hidden|collapse").fullmatch,
    "content-visibility": re.compile(r"hidden").fullmatch,
    "font-size": re.compile(rf"({_NOTHING}|[01](\.\d+)?px)[a-z%]*").fullmatch,
    "clip": re.compile(
        r"rect\(\s*[01](px)?[\s,]+[01](px)?[\s,]+[01](px)?[\s,]+[01](px)?\s*\)"
    ).fullmatch,
    "clip-path": re.compile(r"inset\((50|100)%\)|circle\(0\S*\)").fullmatch,
    "color": re.compile(
        rf"transparent|rgba\([^,]*,[^,]*,[^,]*,\s*{_NOTHING}%?\s*\)|#[0-9a-f]{{3}}0|#[0-9a-f]{{6}}00"
    ).fullmatch,
}
# Offset that places an element outside of the page.
_AWAY = re.compile(r"-(\d{4,}|[5-9]\d\d)(\.\d+)?(px|r?em|v[wh])?")
_ZERO = re.compile(r"0+[a-z%]*")
_SPACES = re.compile(r"\s+")
_PLACES = ("left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top")
_WHITE = frozenset({"white", "#fff", "#ffffff", "rgb(255,255,255)", "rgba(255,255,255,1)"})
_BLACK = frozenset({"black", "#000", "#000000", "rgb(0,0,0)", "rgba(0,0,0,1)"})

# The inherited background colours of elements, once looked up.
Backgrounds = dict[HtmlElement, str]


def drop_unseen(page: HtmlElement) -> None:
    """Remove invisible elements from a page.

    Only inline styles and attributes are considered; style sheets are not read.
    """
    for element in list(_unseen(page, {})):
        if element.getparent() is not None:
            element.drop_tree()


def _unseen(page: HtmlElement, backgrounds: Backgrounds) -> Iterator[HtmlElement]:
    for element in page.iter():
        # The `tag` of comments and processing instructions is a function.
        if not isinstance(element.tag, str) or element.tag in _NO_TEXT:
            yield element
        elif element.tag not in ("html", "body") and _is_hidden(element, backgrounds):
            yield element


def _is_hidden(element: HtmlElement, backgrounds: Backgrounds) -> bool:
    attributes = element.attrib
    if not attributes:
        return False
    if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
        return True
    if element.tag == "input" and attributes.get("type", "").lower() == "hidden":
        return True
    if not _UNSEEN_CLASSES.isdisjoint(attributes.get("class", "").lower().split()):
        return True
    style = attributes.get("style")
    return style is not None and _hides(element, _declarations(style), backgrounds)


def _declarations(style: str) -> dict[str, str]:
    """Parse the declarations of a `style` attribute; the last one of a name wins."""
    declared: dict[str, str] = {}
    for declaration in style.lower().split(";"):
        before, colon, value = declaration.partition(":")
        # From its end, as a comment may be before the name.
        match = _PROPERTY_BACKWARDS.match(before.rstrip()[::-1])
        if colon and match and match[0]:
            declared[match[0][::-1]] = value.replace("!important", "").strip()
    return declared


def _hides(element: HtmlElement, declared: dict[str, str], backgrounds: Backgrounds) -> bool:
    for name, hiding in _HIDING.items():
        if name in declared and hiding(declared[name]):
            return True
    if any(_AWAY.fullmatch(declared.get(name, "")) for name in _PLACES):
        return True
    if declared.get("overflow") == "hidden" and any(
        _ZERO.fullmatch(declared.get(name, "")) for name in ("width", "height", "max-height")
    ):
        return True
    colour = _colour(declared.get("color", ""))
    return bool(colour) and colour == _background(element, backgrounds)


def _background(element: HtmlElement, backgrounds: Backgrounds) -> str:
    """Return the inherited background colour of an element, or "" if none is declared."""
    behind: HtmlElement | None = element
    passed_elements = []
    colour = ""
    while behind is not None:
        if behind in backgrounds:
            colour = backgrounds[behind]
            break
        passed_elements.append(behind)
        declared = _declarations(behind.get("style", ""))
        colour_name = declared.get("background-color") or declared.get("background")
        if colour_name := colour_name or behind.get("bgcolor", ""):
            colour = _colour(colour_name)
            break
        behind = behind.getparent()
    backgrounds.update(dict.fromkeys(passed_elements, colour))
    return colour


def _colour(value: str) -> str:
    value = _SPACES.sub("", value.lower())
    for names, name in ((_WHITE, "white"), (_BLACK, "black")):
        if value in names:
            return name
    return value
