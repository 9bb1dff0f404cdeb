"""Leaves as inline Markdown.

The result still has the newlines of the text: `lines` converts them to hard breaks, headings to
spaces, tables to `<br>`.

Bold, italic and strikethrough are written with `**`, `*` and `~~` where CommonMark's rules of left-
and right-flanking delimiters allow it, and with HTML tags elsewhere: between letters if the marked
text begins or ends with punctuation (frequent in Chinese, where no spaces separate words), and next
to another delimiter.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape as html_escape

from msgspec.structs import replace

from services.articles.markdown.citations import ShownReferences
from services.articles.markdown.escape import (
    address,
    attribute,
    destination,
    escaped,
    inline_formula,
    is_safe_link,
    newlines,
)
from services.articles.tree.nodes import Cite, Leaf

_DELIMITERS = "*~`"
_DIGITS = frozenset("0123456789")
_KEY_PART = re.compile(r"[:.#$%&+?<>~/-]?\w")
_ADDRESS_END = re.compile(r"[A-Za-z0-9._%+/-]")
_BACKTICKS = re.compile(r"`+")
_SCRIPTS = {"super": "sup", "sub": "sub"}
# Opening and closing tag of each delimiter.
_TAGS = {
    "***": ("<strong><em>", "</em></strong>"),
    "**": ("<strong>", "</strong>"),
    "*": ("<em>", "</em>"),
    "~~": ("<del>", "</del>"),
}


def with_markers(leaves: Sequence[Leaf], shown: ShownReferences) -> Iterator[tuple[Leaf, str]]:
    """Yield each leaf with what comes after it: its citation, at the end of a run of equal ones.

    Notes do not interrupt a run.
    """
    following: Cite | None = None
    run_marker = ""
    markers = []
    for leaf in reversed(leaves):
        marker = ""
        if leaf.cite is not None and leaf.cite != following:
            marker = shown.marker(leaf)
            if following is not None and marker == run_marker:
                # They differ in what nobody sees: whether a page is a locator or a suffix.
                marker = ""
            run_marker = marker or run_marker
        markers.append(marker)
        if leaf.type != "note":
            following = leaf.cite
    yield from zip(leaves, reversed(markers), strict=True)


def inline(leaves: Sequence[Leaf], shown: ShownReferences, pipe: str = "|") -> str:
    """Return leaves as inline Markdown.

    Args:
        leaves: leaves in normal form.
        shown: the numbers that they show.
        pipe: replacement of `|` in code and formulas, which have no other escapes.
    """
    if len(leaves) == 1 and _is_plain(leaves[0]):
        return escaped(newlines(leaves[0].text))
    # Joined at the end: appending to one long string takes quadratic time.
    parts = [""]
    marked = _joined_runs(with_markers(leaves, shown))
    for index, (leaf, marker) in enumerate(marked):
        if marker:
            following = marker[0]
        else:
            following = _first_character(marked[index + 1]) if index + 1 < len(marked) else ""
        source = _rendered(leaf, parts[-1][-1:], following, pipe, shown)
        if source:
            parts[-1], source = _joined(parts[-1], source)
            parts.append(source)
        if marker:
            if marker.startswith("@") and _ADDRESS_END.search(parts[-1][-1:]):
                # Otherwise read as an address.
                if _is_key(parts[-1]):
                    parts[-1] = f"@{{{parts[-1][1:]}}}"
                else:
                    parts.append("<span></span>")
            parts.append(marker)
    return "".join(parts)


def _joined_runs(marked: Iterable[tuple[Leaf, str]]) -> list[tuple[Leaf, str]]:
    """Return leaves with their markers, those joined that look alike and are read as one.

    A citation does not show how much of the text before it is cited, nor spaces their marks.
    """
    runs: list[tuple[list[str], Leaf, str]] = []
    for leaf, marker in marked:
        shown = replace(leaf, text="", cite=None)
        if leaf.type == "default" and leaf.text.isspace() and not _is_linked(leaf):
            shown = Leaf("")
        if runs and not runs[-1][2] and leaf.type == "default" and runs[-1][1] == shown:
            runs[-1][0].append(leaf.text)
            runs[-1] = (runs[-1][0], shown, marker)
        else:
            runs.append(([leaf.text], shown, marker))
    return [(replace(shown, text="".join(texts)), marker) for texts, shown, marker in runs]


def _is_plain(leaf: Leaf) -> bool:
    return leaf.type == "default" and leaf.cite is None and not _is_marked(leaf)


def _is_marked(leaf: Leaf) -> bool:
    return bool(leaf.bold or leaf.italic or leaf.decoration or leaf.color or leaf.script)


def _is_linked(leaf: Leaf) -> bool:
    return leaf.url is not None and is_safe_link(leaf.url)


def _joined(before: str, source: str) -> tuple[str, str]:
    """Return two adjacent pieces, escaped if they would form other syntax together."""
    if source.startswith("[") and before.endswith("!"):
        # An exclamation mark would make the link an image, a caret a note.
        return f"{before[:-1]}\\!", source
    if _is_key(before) and _KEY_PART.match(source):
        # Otherwise a part of the key of a citation.
        return f"@{{{before[1:]}}}", source
    if source[:1] in ("(", ":") and before.endswith("]"):
        # After `[1]` these would form a link or a link reference definition.
        return before, f"\\{source}"
    if source[:1] in _DIGITS and before.endswith("$") and not before.endswith("\\$"):
        # Before a digit a dollar sign ends no formula in pandoc and on GitHub.
        return before, f"&#{ord(source[0])};{source[1:]}"
    return before, source


def _is_key(source: str) -> bool:
    """Return whether a piece is a narrative citation that ends with its key, without braces."""
    return source.startswith("@") and not source.endswith(("]", "}"))


def _first_character(marked: tuple[Leaf, str]) -> str:
    # The flanking rules only distinguish spaces, letters and punctuation.
    leaf, marker = marked
    text = newlines(leaf.text)
    if not text and marker:
        return marker[0]
    if leaf.is_object:
        return "^" if leaf.type == "note" else "["
    if text[:1].isspace():
        return text[0]
    if _is_marked(leaf) or _is_linked(leaf) or leaf.type in ("latex", "inlinecode"):
        return "<"
    return escaped(text[:1])[:1]


def _rendered(leaf: Leaf, before: str, following: str, pipe: str, shown: ShownReferences) -> str:
    if leaf.type == "note":
        note = inline(leaf.note, shown, pipe)
        return f"^[{note}]" if note else ""
    if leaf.type == "ref":
        leaf = replace(leaf, text=shown.ref(leaf), type="url", url=f"#{leaf.ref}")
    text = newlines(leaf.text)
    if not text:
        return ""
    linked = _is_linked(leaf)
    if not linked and not _is_marked(leaf):
        return _core(leaf, text, before, pipe)
    core = text.strip()
    if not core:
        return text
    start = text.index(core)
    leading, trailing = text[:start], text[start + len(core) :]
    if linked:
        before, following = "[", "]"
    else:
        before, following = (leading or before)[-1:], (trailing or following)[:1]
    inner = _marked(leaf, core, before, following, pipe)
    if linked and leaf.url is not None:
        inner = f"[{inner}]({destination(leaf.url)})"
    return leading + inner + trailing


def _marked(leaf: Leaf, core: str, before: str, following: str, pipe: str) -> str:
    opening, closing = _html_tags(leaf)
    delimiters = _delimiters(leaf)
    source = opening + _core(leaf, core, "", pipe) + closing
    for delimiter in reversed(delimiters[1:]):
        source = delimiter + source + delimiter
    if not delimiters:
        return source
    outermost = delimiters[0]
    if _can_flank(source, before, following):
        return outermost + source + outermost
    return _TAGS[outermost][0] + source + _TAGS[outermost][1]


def _delimiters(leaf: Leaf) -> list[str]:
    emphasis = "**" * leaf.bold + "*" * leaf.italic
    strike = "~~" if leaf.decoration == "line-through" else ""
    return [delimiter for delimiter in (emphasis, strike) if delimiter]


def _html_tags(leaf: Leaf) -> tuple[str, str]:
    opening = closing = ""
    if leaf.decoration == "underline":
        opening, closing = "<u>", "</u>"
    if leaf.script is not None:
        tag = _SCRIPTS[leaf.script]
        opening, closing = f"{opening}<{tag}>", f"</{tag}>{closing}"
    if leaf.color is not None:
        opening += f'<span style="color: {attribute(leaf.color)}">'
        closing = f"</span>{closing}"
    return opening, closing


def _core(leaf: Leaf, text: str, before: str, pipe: str) -> str:
    if leaf.type == "latex":
        source = inline_formula(text).replace("|", pipe)
        return formula_in_dollars(source, leaf.form)
    if leaf.type == "inlinecode":
        return _code_span(text, before, pipe)
    return escaped(text)


def formula_in_dollars(source: str, form: str | None) -> str:
    """Return a formula in a line; "" for an empty one."""
    dollars = "$$" if form == "display" else "$"
    return f"{dollars}{source}{dollars}" if source else ""


def _code_span(text: str, before: str, pipe: str) -> str:
    text = text.replace("\n", " ")
    if before == "`":
        # The backticks of two adjacent spans would join into a longer fence.
        return f"<code>{escaped(text)}</code>"
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (1 if longest == 0 else longest + 1)
    padded = text.startswith("`") or text.endswith("`")
    if padded or (text.startswith(" ") and text.endswith(" ") and text.strip(" ")):
        text = f" {text} "
    return fence + text.replace("|", pipe) + fence


def _can_flank(source: str, before: str, following: str) -> bool:
    """Return whether delimiters around the source can open and close between these neighbours."""
    if before and before in _DELIMITERS:
        return False
    opens = _is_word(source[0]) or _is_boundary(before)
    closes = _is_word(source[-1]) or _is_boundary(following)
    return opens and closes


def _is_word(character: str) -> bool:
    # Symbols count as punctuation since CommonMark 0.31, but not before: here as neither.
    return not character.isspace() and unicodedata.category(character)[0] not in "PSZC"


def _is_boundary(character: str) -> bool:
    if not character or character in " \t\n" or (character.isascii() and _is_symbol(character)):
        return True
    return unicodedata.category(character)[0] == "P" or unicodedata.category(character) == "Zs"


def _is_symbol(character: str) -> bool:
    return character.isprintable() and not character.isalnum()


def inline_html(leaves: Sequence[Leaf], shown: ShownReferences) -> str:
    """Return leaves as HTML, for a table that Markdown cannot express."""
    return "".join(
        [_html(leaf, shown) + html_escape(marker) for leaf, marker in with_markers(leaves, shown)]
    )


def _html(leaf: Leaf, shown: ShownReferences) -> str:
    if leaf.type == "note":
        note = inline_html(leaf.note, shown)
        return f"^[{note}]" if note else ""
    if leaf.type == "ref":
        leaf = replace(leaf, text=shown.ref(leaf), type="url", url=f"#{leaf.ref}")
    text = newlines(leaf.text)
    if not text:
        return ""
    if leaf.type == "latex":
        source = html_escape(formula_in_dollars(inline_formula(text), leaf.form))
    elif leaf.type == "inlinecode":
        source = f"<code>{html_escape(text)}</code>"
    else:
        source = html_escape(text)
    opening, closing = _html_tags(leaf)
    source = opening + source + closing
    for delimiter in reversed(_delimiters(leaf)):
        source = _TAGS[delimiter][0] + source + _TAGS[delimiter][1]
    if _is_linked(leaf) and leaf.url is not None:
        source = f'<a href="{attribute(address(leaf.url))}">{source}</a>'
    return source.replace("\n", "<br>")
