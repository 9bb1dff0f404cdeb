"""The parser of whole texts in Markdown: CommonMark with GFM's tables, formulas and citations."""

import re
from functools import cache
from typing import TYPE_CHECKING

from services.articles.tree.inline_markdown import new_parser, push_match
from services.articles.tree.values import schema_error
from services.common.articles import limits

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# Levels of blocks. The parser leaves out what is deeper, so a text with so many is refused before.
_MAX_NESTING = 40
# `[@key, p. 3]` or `[see @one; @two]`.
_KEYS = re.compile(r"\[(?=-?@|[^\[\]\n]{1,200}\s-?@)([^\[\]\n]{1,1000})\](?!\()")
# Unlike in a text to replace, several may follow each other.
_NUMBER = re.compile(r"\[(\d{1,4})\](?!\()", re.ASCII)
_FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,200}\]:")
_WITHOUT_ELEMENTS = frozenset({"blockquote_open", "thead_open", "tbody_open"})
# A property of the parser's environment: the last line of a block of lines without `$$` at an end.
_UNCLOSED = "unclosed_formula"


def parse_tokens(markdown: str) -> "list[Token]":
    """Return the tokens of a text.

    Raises:
        EditError: it is nested too deeply, or a paragraph, an item or a cell is too long.
    """
    return _parser().parse(markdown)


@cache
def _parser() -> "MarkdownIt":
    parser = new_parser()
    parser.enable("table")
    parser.options["maxNesting"] = _MAX_NESTING
    parser.inline.ruler.at("citation", _citation_rule)
    parser.inline.ruler.before("link", "key_citation", _key_citation_rule)
    parser.block.ruler.before(
        "fence", "formula_block", _formula_rule, {"alt": ["paragraph", "reference", "blockquote"]}
    )
    from markdown_it.rules_block import reference

    def reference_rule(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        # A footnote is no address for links.
        at = state.bMarks[start] + state.tShift[start]
        return not _FOOTNOTE.match(state.src, at) and reference(state, start, end, silent)

    parser.block.ruler.at("reference", reference_rule)
    # Before inline syntax is parsed, which takes longer than linear time in the worst case.
    parser.core.ruler.after("block", "check_sizes", _check_sizes)
    return parser


def _check_sizes(state: "StateCore") -> None:
    # Items, rows and cells count, paragraphs inside of them not.
    elements = sum(
        token.nesting == 1 and not token.hidden and token.type not in _WITHOUT_ELEMENTS
        for token in state.tokens
    )
    if elements > limits.ELEMENTS:
        raise schema_error("/markdown", f"must have at most {limits.ELEMENTS} elements")
    if sum(t.content.count("[") for t in state.tokens if t.type == "inline") > limits.BRACKETS:
        raise schema_error("/markdown", f"must have at most {limits.BRACKETS} `[`")
    for token in state.tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.level >= _MAX_NESTING - 2:
            raise schema_error("/markdown", f"line {line} is nested too deeply")
        if token.type == "inline" and len(token.content) > limits.LEAF_TEXT:
            problem = f"the paragraph in line {line} has more than {limits.LEAF_TEXT} characters"
            raise schema_error("/markdown", problem)


def _citation_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "[":
        return False
    return push_match(state, silent, "citation", _NUMBER.match(state.src, state.pos))


def _key_citation_rule(state: "StateInline", silent: bool) -> bool:
    if state.src[state.pos] != "[":
        return False
    return push_match(state, silent, "key_citation", _KEYS.match(state.src, state.pos))


def _formula_rule(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Read a formula between two dollar signs at the beginning and at the end of lines."""
    if state.sCount[start] - state.blkIndent >= 4 or start < state.env.get(_UNCLOSED, 0):
        return False
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    if not first.startswith("$$"):
        return False
    lines = [first[2:]]
    line = start
    while not lines[-1].rstrip().endswith("$$"):
        line += 1
        if line >= end or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            # The lines between are not read again.
            state.env[_UNCLOSED] = line
            return False
        lines.append(_line(state, line))
    if silent:
        return True
    lines[-1] = lines[-1].rstrip()[:-2]
    token = state.push("formula_block", "", 0)
    token.content = "\n".join(lines).strip()
    token.map = [start, line + 1]
    state.line = line + 1
    return True


def _line(state: "StateBlock", line: int) -> str:
    return state.getLines(line, line + 1, state.blkIndent, False)
