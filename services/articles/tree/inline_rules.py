"""Rules for inline Markdown beyond CommonMark: formulas, citations, notes, references, scripts."""

import re
from string import ascii_letters, digits
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

# A formula on one line, by pandoc's rules for dollar signs.
_FORMULA = re.compile(r"\$(?!\s)((?:[^$\\]|\\.)+?)(?<!\s)\$(?!\d)", re.DOTALL)
_DISPLAY = re.compile(r"\$\$((?:[^$\\]|\\.)+)\$\$", re.DOTALL)
_NUMBER = re.compile(r"\[(\d{1,4})\](?!\()", re.ASCII)
# What may be citations in one pair of brackets: of references by number, or by key.
_BRACKETS = re.compile(r"\[((?:[^\[\]\\\n]|\\.){1,1000})\](?!\()")
# What is one in the words beside a citation: an escaped character, or a reference of one.
_ESCAPES_AND_ENDS = re.compile(r"\\.|&#\d\d;|;", re.DOTALL)
NUMBERED = re.compile(r"(?:(.*?)\s)??(\d{1,4})(?:,(.*))?", re.DOTALL | re.ASCII)
KEY = r"(?:\{[^{}\[\]\n]{1,200}\}|[^\W_]\w*(?:[:.#$%&+?<>~/-]\w+)*)"
KEYED = re.compile(rf"((?:[^@\\]|\\.)*?)(-?)@({KEY})(.*)", re.DOTALL)
_NARRATIVE = re.compile(rf"@({KEY})(?:[ ]\[((?![@^])(?:[^\[\]\\\n]|\\.){{1,1000}})\](?!\())?")
# Before a number these say what it counts, which is no reference.
_COUNTED = re.compile(
    r"(?:fig(?:ure)?s?|tab(?:le)?s?|eqs?|equations?|sec(?:tion)?s?|chap(?:ter)?s?|steps?|pages?|pp?"
    r"|no|v(?:ersion)?|part|item|line)\.?",
    re.IGNORECASE,
)
# Characters before an `@` that begins no citation: those of an address before its `@`.
_BEFORE_ADDRESS = frozenset(ascii_letters + digits + "._%+-/")
_LATEX_REF = re.compile(r"\\(autoref|cref|Cref|eqref|ref)\{([^{}\s]{1,100})\}")
_SCRIPT = re.compile(
    r"(?:\^(?!\[)((?:[^\^\s\\\[\]]|\\.){1,100})\^|~((?:[^~\s\\]|\\.){1,100})~)(?!~)"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ATTRIBUTES = re.compile(r'\{((?:[^{}"\n]|"(?:[^"\\\n]|\\.)*")*)\}')


def add_inline_rules(parser: "MarkdownIt") -> None:
    """Add the rules to a parser."""
    ruler = parser.inline.ruler
    ruler.before("escape", "latex_ref", _latex_ref_rule)
    ruler.before("escape", "formula", _formula_rule)
    ruler.before("strikethrough", "script", _script_rule)
    ruler.before("link", "citation", _citation_rule)
    ruler.before("link", "narrative", _narrative_rule)
    ruler.before("link", "note", _note_rule)


def is_narrative_start(text: str, at: int) -> bool:
    """Return whether an `@` at a position may begin a citation."""
    return at == 0 or text[at - 1] not in _BEFORE_ADDRESS


def is_citation(inner: str) -> bool:
    """Return whether a text in brackets has the form of citations."""
    if inner.startswith("^"):
        return False
    return all(_is_cited(part.strip()) for part in split_citations(inner))


def split_citations(inner: str) -> list[str]:
    """Return the citations in a pair of brackets, which semicolons separate."""
    parts = []
    start = 0
    for match in _ESCAPES_AND_ENDS.finditer(inner):
        if match[0] == ";":
            parts.append(inner[start : match.start()])
            start = match.end()
    return [*parts, inner[start:]]


def _is_cited(part: str) -> bool:
    keyed = KEYED.fullmatch(part)
    if keyed is not None and (not keyed[1] or keyed[1][-1].isspace()):
        return True
    numbered = NUMBERED.fullmatch(part)
    if numbered is None:
        return False
    words = (numbered[1] or "").split()
    return not words or _COUNTED.fullmatch(words[-1]) is None


def plain_text(markdown: str) -> str:
    """Return what a text without marks says: escapes and references of characters resolved."""
    from markdown_it.common.utils import unescapeAll

    text: str = unescapeAll(markdown)
    return text


def _push(state: "StateInline", silent: bool, kind: str, content: str, end: int) -> bool:
    if not silent:
        state.push(kind, "", 0).content = content
    state.pos = end
    return True


def _formula_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "$":
        return False
    if match := _DISPLAY.match(state.src, state.pos):
        return _push(state, silent, "display_formula", match[1].strip(), match.end())
    if match := _FORMULA.match(state.src, state.pos):
        return _push(state, silent, "formula", match[1], match.end())
    return False


def _latex_ref_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "\\":
        return False
    match = _LATEX_REF.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        # LaTeX puts the number of an equation in parentheses.
        is_equation = match[1] == "eqref"
        if is_equation:
            state.push("text", "", 0).content = "("
        token = state.push("ref", "", 0)
        token.content = match[2]
        token.info = "number" if is_equation or match[1] == "ref" else ""
        if is_equation:
            state.push("text", "", 0).content = ")"
    state.pos = match.end()
    return True


def _script_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] not in "^~" or state.src[state.pos - 1 : state.pos] == "~":
        return False
    match = _SCRIPT.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        kind = "sup" if match[1] else "sub"
        state.push(f"{kind}_open", "", 1)
        state.push("text", "", 0).content = _ESCAPED.sub(r"\1", match[1] or match[2])
        state.push(f"{kind}_close", "", -1)
    state.pos = match.end()
    return True


def _citation_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "[":
        return False
    match = _NUMBER.match(state.src, state.pos)
    if match is None:
        match = _BRACKETS.match(state.src, state.pos)
        if match is None or not is_citation(match[1]):
            return False
    return _push(state, silent, "citation", match[0], match.end())


def _narrative_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "@" or not is_narrative_start(state.src, state.pos):
        return False
    match = _NARRATIVE.match(state.src, state.pos)
    return match is not None and _push(state, silent, "citation", match[0], match.end())


def _note_rule(state: "StateInline", silent: bool) -> bool:
    """Read `^[a note]`, and `[^name]` for one whose text is elsewhere."""
    if state.src.startswith("[^", state.pos):
        end = state.src.find("]", state.pos, state.pos + 202)
        name = state.src[state.pos + 2 : end]
        if end < 0 or not name or any(character.isspace() for character in name):
            return False
        return _push(state, silent, "note_ref", name, end + 1)
    if not state.src.startswith("^[", state.pos):
        return False
    start = state.pos + 2
    end = state.md.helpers.parseLinkLabel(state, state.pos + 1)
    if end < 0 or end == start:
        return False
    if not silent:
        token = state.push("note", "", 0)
        token.content = state.src[start:end]
        token.children = []
        state.md.inline.parse(token.content, state.md, state.env, token.children)
    state.pos = end + 1
    return True


def attributes_rule(state: "StateInline", silent: bool) -> bool:
    """Read `{#name alt="…"}` after a picture."""
    if state.src[state.pos] != "{" or silent or state.pending or not state.tokens:
        return False
    if state.tokens[-1].type != "image":
        return False
    match = _ATTRIBUTES.match(state.src, state.pos)
    return match is not None and _push(state, silent, "attributes", match[1], match.end())
