"""The part of an HTML page that a reader sees. Runs in the worker processes of conversions."""

import re
from collections.abc import Iterator

from lxml.html import HtmlElement

# What holds no text for a reader. Scripting counts as on, so `noscript` is not shown.
_NO_TEXT = frozenset(
    {
        *("applet", "audio", "base", "canvas", "embed", "frame", "frameset", "iframe", "link"),
        *("map", "meta", "noembed", "noframes", "noscript", "object", "param", "script", "source"),
        *("style", "svg", "template", "track", "video"),
    }
)
# Of libraries that show these to programs which read pages aloud, and to nobody else.
_UNSEEN_CLASSES = frozenset({"screen-reader-text", "sr-only", "visually-hidden"})
# Not among what hides: `opacity` and `transform`, with which pages are sent whose scripts fade
# all of their text in.
_DECLARATION = re.compile(r"([\w-]+)\s*:\s*([^;]*)")
_HIDING = {
    "display": re.compile(r"none"),
    "visibility": re.compile(r"hidden|collapse"),
    "content-visibility": re.compile(r"hidden"),
    "font-size": re.compile(r"(0*\.?0+|[01](\.\d+)?px)[a-z%]*"),
    "clip": re.compile(r"rect\(\s*[01](px)?[\s,]+[01](px)?[\s,]+[01](px)?[\s,]+[01](px)?\s*\)"),
    "clip-path": re.compile(r"inset\((50|100)%\)|circle\(0\S*\)"),
    "color": re.compile(r"transparent|rgba\(.*,\s*0*\.?0+%?\s*\)|#[0-9a-f]{3}0|#[0-9a-f]{6}00"),
}
# Far enough off the page.
_AWAY = re.compile(r"-(\d{4,}|[5-9]\d\d)(\.\d+)?(px|r?em|v[wh])?")
_ZERO = re.compile(r"0+[a-z%]*")
_PLACES = ("left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top")
_WHITE = frozenset({"white", "#fff", "#ffffff", "rgb(255,255,255)", "rgba(255,255,255,1)"})
_BLACK = frozenset({"black", "#000", "#000000", "rgb(0,0,0)", "rgba(0,0,0,1)"})


def drop_unseen(page: HtmlElement) -> None:
    """Take out of a page what no reader sees, as far as the page's own elements say it.

    Style sheets are not read: what a class hides stays in.
    """
    for element in list(_unseen(page)):
        if element.getparent() is not None:
            element.drop_tree()


def _unseen(page: HtmlElement) -> Iterator[HtmlElement]:
    for element in page.iter():
        # Comments and processing instructions have functions for tags.
        if not isinstance(element.tag, str) or element.tag in _NO_TEXT:
            yield element
        elif element.tag not in ("html", "body") and _is_hidden(element):
            yield element


def _is_hidden(element: HtmlElement) -> bool:
    given = element.attrib
    if not given:
        return False
    if "hidden" in given or given.get("aria-hidden", "").strip().lower() == "true":
        return True
    if element.tag == "input" and given.get("type", "").lower() == "hidden":
        return True
    if not _UNSEEN_CLASSES.isdisjoint(given.get("class", "").lower().split()):
        return True
    style = given.get("style")
    return style is not None and _hides(element, _declarations(style))


def _declarations(style: str) -> dict[str, str]:
    """Return the declarations of a `style` attribute; the last of a name counts."""
    return {
        name.lower(): value.lower().replace("!important", "").strip()
        for name, value in _DECLARATION.findall(style)
    }


def _hides(element: HtmlElement, declared: dict[str, str]) -> bool:
    for name, hiding in _HIDING.items():
        if name in declared and hiding.fullmatch(declared[name]):
            return True
    if any(_AWAY.fullmatch(declared.get(name, "")) for name in _PLACES):
        return True
    if declared.get("overflow") == "hidden" and any(
        _ZERO.fullmatch(declared.get(name, "")) for name in ("width", "height", "max-height")
    ):
        return True
    colour = _colour(declared.get("color", ""))
    return bool(colour) and colour == _background(element)


def _background(element: HtmlElement) -> str:
    """Return the colour behind an element, or "" where no element says one."""
    behind: HtmlElement | None = element
    while behind is not None:
        declared = _declarations(behind.get("style", ""))
        named = declared.get("background-color") or declared.get("background")
        if named := named or behind.get("bgcolor", ""):
            return _colour(named)
        behind = behind.getparent()
    return ""


def _colour(value: str) -> str:
    value = re.sub(r"\s+", "", value.lower())
    for names, name in ((_WHITE, "white"), (_BLACK, "black")):
        if value in names:
            return name
    return value
