"""The parser of whole texts in Markdown: CommonMark with GFM's tables, formulas and citations."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from services.articles.tree.inline_markdown import new_parser
from services.articles.tree.inline_rules import attributes_rule
from services.articles.tree.tex_equations import ENVIRONMENTS
from services.articles.tree.values import schema_error
from services.common.articles import limits

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.ruler import RuleOptionsType
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

# Levels of blocks. The parser leaves out what is deeper, so a text with so many is refused before.
_MAX_NESTING = 40
# The beginning of the text of a footnote.
_FOOTNOTE = re.compile(r"\[\^([^\]\s]{1,200})\]:[ \t]*")
# The end of a formula, which may have attributes.
_FORMULA_END = re.compile(r"\$\$[ \t]*(?:\{([^{}$]{0,200})\})?[ \t]*$")
_ATTRIBUTE = re.compile(
    r"#([^\s#{}]+)|\.([\w-]+)|(?<![\w-])([A-Za-z][\w-]*)=(?:\"((?:[^\"\\]|\\.)*)\"|([^\s\"{}]+))|(?<!\S)-(?!\S)"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_CAPTION = re.compile(r"(?:[Tt]able)?:[ \t]+")
_WITHOUT_ELEMENTS = frozenset({"blockquote_open", "thead_open", "tbody_open"})
_TEX_BEGIN = re.compile(rf"\\begin\{{((?:{'|'.join(ENVIRONMENTS)})\*?)\}}")
# A property of the parser's environment: by what ends a formula, the last line of a block of lines
# without it.
_UNCLOSED = "unclosed_formulas"
_TEX_ENDS = {
    f"{name}{star}": re.compile(rf"\\end\{{{name}{re.escape(star)}\}}[ \t]*$")
    for name in ENVIRONMENTS
    for star in ("", "*")
}
_NOTES = "notes"


class Definitions(dict[str, Any]):
    """The addresses that a text defines by names, and the names that links use."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a definition, and note that it is used."""
        if name in self:
            self.used.add(name)
        return super().get(name, default)


class Footnote(NamedTuple):
    """The text of a footnote, which begins in a line, counted from 1."""

    paragraphs: tuple[str, ...]
    line: int


class ParsedText(NamedTuple):
    """The tokens of a text, with what is defined in it.

    Attributes:
        tokens: the tokens; those of headings, formulas, listings and captions have what is in
            braces after them as `meta["attributes"]`, and captions are marked by `meta["caption"]`.
        definitions: addresses by names.
        repeated: names that are defined several times.
        footnotes: footnotes by names.
        lines: the lines of the text.
    """

    tokens: "list[Token]"
    definitions: Definitions
    repeated: tuple[str, ...]
    footnotes: dict[str, Footnote]
    lines: "Sequence[str]"


def parse_text(markdown: str) -> ParsedText:
    """Parse a text.

    Raises:
        EditError: it is nested too deeply, or a paragraph, an item or a cell is too long.
    """
    definitions = Definitions()
    environment: dict[str, Any] = {"references": definitions, _NOTES: {}}
    tokens = _parser().parse(markdown, environment)
    lines = markdown.split("\n")
    repeated = tuple([each["label"] for each in environment.get("duplicate_refs", ())])
    return ParsedText(tokens, definitions, repeated, environment[_NOTES], lines)


class Attributes(NamedTuple):
    """The attributes in braces after a heading, a picture, a formula or a listing."""

    label: str | None = None
    classes: tuple[str, ...] = ()
    values: Mapping[str, str] = {}

    @classmethod
    def parse(cls, text: str) -> "Attributes":
        """Parse attributes without the braces; what is none is ignored."""
        label, classes, values = None, [], {}
        for match in _ATTRIBUTE.finditer(text):
            if match[1]:
                label = match[1]
            elif match[3]:
                values[match[3]] = _ESCAPED.sub(r"\1", match[4] if match[5] is None else match[5])
            else:
                classes.append(match[2] or "unnumbered")
        return cls(label, tuple(classes), values)


def parse_inline_tokens(markdown: str, definitions: Definitions) -> "list[Token]":
    """Return the tokens of one line of a text."""
    (inline,) = _parser().parseInline(markdown, {"references": definitions})
    return inline.children or []


@cache
def _parser() -> "MarkdownIt":
    parser = new_parser()
    parser.enable("table")
    parser.options["maxNesting"] = _MAX_NESTING
    parser.inline.ruler.before("link", "attributes", attributes_rule)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote"]}
    parser.block.ruler.before("fence", "formula_block", _formula_rule, interrupts)
    parser.block.ruler.before("fence", "tex_equation", _tex_equation_rule, interrupts)
    parser.block.ruler.before("reference", "footnote", _footnote_rule)
    # Before inline syntax is parsed, which takes longer than linear time in the worst case.
    parser.core.ruler.after("block", "check_sizes", _check_sizes)
    parser.core.ruler.after("check_sizes", "attributes", _read_attributes)
    return parser


def _check_sizes(state: "StateCore") -> None:
    # Items, rows and cells count, paragraphs inside of them not.
    elements = sum(
        token.nesting == 1 and not token.hidden and token.type not in _WITHOUT_ELEMENTS
        for token in state.tokens
    )
    if elements > limits.ELEMENTS:
        raise schema_error("/markdown", f"must have at most {limits.ELEMENTS} elements")
    notes = [text for note in state.env.get(_NOTES, {}).values() for text in note.paragraphs]
    texts = [token.content for token in state.tokens if token.type == "inline"]
    if sum(text.count("[") for text in (*texts, *notes)) > limits.BRACKETS:
        raise schema_error("/markdown", f"must have at most {limits.BRACKETS} `[`")
    for token in state.tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.level >= _MAX_NESTING - 2:
            raise schema_error("/markdown", f"line {line} is nested too deeply")
        if token.type == "inline" and len(token.content) > limits.LEAF_TEXT:
            problem = f"the paragraph in line {line} has more than {limits.LEAF_TEXT} characters"
            raise schema_error("/markdown", problem)


def _read_attributes(state: "StateCore") -> None:
    """Take attributes off the ends of headings and captions, and note which texts are captions."""
    opening: Token | None = None
    after_table = False
    for token in state.tokens:
        if token.type != "inline":
            after_table = token.type == "table_close" or (
                after_table and token.type == "paragraph_open"
            )
            opening = token
            continue
        is_heading = opening is not None and opening.type == "heading_open"
        caption = _CAPTION.match(token.content + " ")
        if opening is not None and caption and after_table:
            opening.meta["caption"] = True
            token.content = token.content[caption.end() :]
        if opening is not None and (is_heading or "caption" in opening.meta):
            content, attributes = split_attributes(token.content)
            if attributes:
                token.content = content
                opening.meta["attributes"] = attributes


def split_attributes(text: str) -> tuple[str, str]:
    """Return a text without the attributes in braces at its end, and these."""
    start = text.rfind("{") if text.endswith("}") else -1
    if start < 0 or (start and not text[start - 1].isspace()) or text[start + 1] not in "#.-":
        return text, ""
    return text[:start].rstrip(), text[start + 1 : -1]


def _footnote_rule(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Read the text of a footnote, up to the first line that is not indented after an empty one."""
    at = state.bMarks[start] + state.tShift[start]
    name = _FOOTNOTE.match(state.src, at)
    if name is None or silent:
        return False
    paragraphs = [[state.src[name.end() : state.eMarks[start]]]]
    line = start + 1
    after_blank = False
    while line < end:
        if state.isEmpty(line):
            after_blank = True
        elif after_blank and state.sCount[line] < state.blkIndent + 4:
            break
        else:
            text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
            if _FOOTNOTE.match(text):
                break
            if after_blank:
                paragraphs.append([])
            paragraphs[-1].append(text)
            after_blank = False
        line += 1
    joined = [" ".join(lines).strip() for lines in paragraphs]
    footnote = Footnote(tuple([text for text in joined if text]), start + 1)
    state.env[_NOTES].setdefault(name[1], footnote)
    state.line = line
    return True


def _formula_rule(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Read a formula between two dollar signs at the beginning and at the end of lines."""
    first = _first_line(state, start)
    if not first.startswith("$$"):
        return False
    lines = _lines_of_formula(state, start, end, first[2:], "$$", _FORMULA_END)
    if lines is None or silent:
        return lines is not None
    closing = _FORMULA_END.search(lines[-1])
    assert closing is not None, "the last line of a formula has its end"
    lines[-1] = lines[-1][: closing.start()]
    token = _push_formula(state, "formula_block", start, lines)
    if closing[1]:
        token.meta["attributes"] = closing[1]
    return True


def _tex_equation_rule(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Read a formula in an environment of LaTeX that begins and ends lines."""
    first = _first_line(state, start)
    begin = _TEX_BEGIN.match(first)
    if begin is None:
        return False
    closing = _TEX_ENDS[begin[1]]
    lines = _lines_of_formula(state, start, end, first, begin[1], closing)
    if lines is not None and not silent:
        _push_formula(state, "tex_equation", start, lines)
    return lines is not None


def _first_line(state: "StateBlock", line: int) -> str:
    """Return a line from its first character, or "" for one of indented code."""
    if state.sCount[line] - state.blkIndent >= 4:
        return ""
    return str(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]])


def _lines_of_formula(
    state: "StateBlock", start: int, end: int, first: str, name: str, closing: re.Pattern[str]
) -> list[str] | None:
    """Return the lines of a formula, up to the one in which it ends; None if it does not."""
    unclosed = state.env.setdefault(_UNCLOSED, {})
    if start < unclosed.get(name, 0):
        return None
    lines = [first]
    line = start
    while not closing.search(lines[-1]):
        line += 1
        if line >= end or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            # The lines between are not read again.
            unclosed[name] = line
            return None
        lines.append(_line(state, line))
    return lines


def _push_formula(state: "StateBlock", kind: str, start: int, lines: list[str]) -> "Token":
    token = state.push(kind, "", 0)
    token.content = "\n".join(lines).strip()
    state.line = start + len(lines)
    token.map = [start, state.line]
    return token


def _line(state: "StateBlock", line: int) -> str:
    return state.getLines(line, line + 1, state.blkIndent, False)
