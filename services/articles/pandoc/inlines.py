"""Leaves as inline nodes of pandoc's tree."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from services.articles.bibliography.entries import Omission
from services.articles.markdown.citations import ShownReferences
from services.articles.markdown.escape import is_safe_link, newlines
from services.articles.pandoc import syntax
from services.articles.pandoc.citations import cite_node
from services.articles.pandoc.latex import LatexCitations
from services.articles.pandoc.syntax import NO_ATTRIBUTES, Node
from services.articles.tree.document import Document
from services.articles.tree.nodes import Citation, Cite, Leaf

# Commands that make TeX read, write or run something, or give characters another meaning. TeX runs
# them in formulas, too.
_COMMANDS = (
    *("input", "include", "includegraphics", "usepackage", "RequirePackage", "documentclass"),
    *("openin", "openout", "read", "readline", "write", "closeout", "immediate", "special"),
    *("catcode", "csname", "scantokens", "directlua", "luaexec", "latelua"),
    *("newread", "newwrite", "expandafter", "everymath", "everydisplay", "loop", "endinput"),
    *("def", "edef", "gdef", "xdef", "let", "futurelet", "newcommand", "renewcommand"),
    *("providecommand", "DeclareMathOperator", "lstinputlisting", "verbatiminput"),
    *("pdfximage", "pdfobj", "pdffiledump", "pdffilesize", "shellescape", "makeatletter"),
)
_UNSAFE = re.compile(
    rf"\\(?:{'|'.join(_COMMANDS)})(?![A-Za-z])|\\(?:begin|end)\s*\{{document\}}|\^\^"
)
_BLANK_LINES = re.compile(r"\n\s*\n")

_WRAPPERS: Sequence[tuple[str, Callable[[Leaf], bool]]] = (
    ("Superscript", lambda leaf: leaf.script == "super"),
    ("Subscript", lambda leaf: leaf.script == "sub"),
    ("Underline", lambda leaf: leaf.decoration == "underline"),
    ("Strikeout", lambda leaf: leaf.decoration == "line-through"),
    ("Emph", lambda leaf: leaf.italic),
    ("Strong", lambda leaf: leaf.bold),
)


# Leaves whose LaTeX may have brackets, which end an argument in brackets: pandoc repeats a heading
# with a note in one, without the note.
_WITH_BRACKETS = ("latex", "ref")
# A mark of columns, which only environments have.
_COLUMN = re.compile(r"(?<!\\)&")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def with_citations(leaves: Sequence[Leaf]) -> Iterator[Leaf | tuple[Citation, ...]]:
    """Yield leaves, and citations after them: at the end of each run of equal ones.

    Citations with no text between them are one. Notes do not interrupt a run.
    """
    cited: list[Citation] = []
    for leaf, ends_run in _with_ends(leaves):
        if cited and leaf.text:
            yield tuple(cited)
            cited = []
        yield leaf
        if ends_run:
            cited += leaf.citations
    if cited:
        yield tuple(cited)


def _with_ends(leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, bool]]:
    """Yield leaves, each with whether a run of equal citations ends there."""
    following: Cite | None = None
    ends = []
    for leaf in reversed(leaves):
        ends.append(leaf.cite is not None and leaf.cite != following)
        if leaf.type != "note":
            following = leaf.cite
    yield from zip(leaves, reversed(ends), strict=True)


def _braced(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes in a group of LaTeX."""
    opening, closing = (syntax.node("RawInline", "latex", brace) for brace in "{}")
    return [opening, *nodes, closing]


def _is_balanced(latex: str) -> bool:
    """Return whether the braces of a formula match; others would end what is around it."""
    depth = 0
    for brace in _BRACE.findall(latex):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    return depth == 0


class InlineWriter:
    """Writes the leaves of one document.

    Args:
        document: the document.
        latex: how it cites in LaTeX; None for a tree that holds its citations.
        is_latex: whether the tree becomes LaTeX.

    Attributes:
        omitted: gathers what is missing in the result.
        has_lines: whether a text is underlined or struck through.
    """

    def __init__(
        self, document: Document, latex: LatexCitations | None = None, *, is_latex: bool = False
    ) -> None:
        self._latex = latex
        self._is_latex = is_latex
        self.omitted: list[Omission] = []
        self.has_lines = False
        self._shown = ShownReferences(document)

    def inlines(self, leaves: Sequence[Leaf], *, is_argument: bool = False) -> list[Node]:
        """Return leaves as inline nodes, with a citation at the end of each run of one.

        Args:
            leaves: the leaves.
            is_argument: whether they are a heading or a caption, an argument in LaTeX.
        """
        written: list[Node] = []
        for part in with_citations(leaves):
            if isinstance(part, Leaf):
                nodes = self._leaf(part)
                in_braces = is_argument and self._is_latex and part.type in _WITH_BRACKETS
                written += _braced(nodes) if in_braces else nodes
            elif self._latex is not None:
                written.append(self._latex.cite(part, is_argument=is_argument))
            else:
                written.append(self.cite(part))
        return written

    def cite(self, cited: Sequence[Citation]) -> Node:
        """Return a citation."""
        return cite_node(cited, self._shown)

    def formula(self, latex: str, *, is_display: bool) -> Node:
        """Return a formula; one that would make TeX do more than set it is shown as code."""
        latex = _BLANK_LINES.sub("\n", newlines(latex)).strip()
        if _COLUMN.search(latex) and "\\begin" not in latex:
            latex = f"\\begin{{aligned}}{latex}\\end{{aligned}}"
        reason = ""
        if unsafe := _UNSAFE.search(latex):
            reason = f"it has the command {unsafe[0][:64]}"
        elif not _is_balanced(latex):
            reason = "its braces do not match"
        if reason:
            self.omitted.append(
                Omission(latex[:64], f"a formula is shown as its code, as {reason}")
            )
            return syntax.node("Code", NO_ATTRIBUTES, latex)
        return syntax.formula(latex, is_display=is_display)

    def _leaf(self, leaf: Leaf) -> Iterator[Node]:
        if not leaf.text:
            return
        nodes = self._content(leaf)
        self.has_lines = self.has_lines or leaf.decoration is not None
        for kind, applies in _WRAPPERS:
            if applies(leaf):
                nodes = [syntax.node(kind, nodes)]
        if leaf.color is not None:
            style = (("style", f"color: {leaf.color}"),)
            nodes = [syntax.node("Span", ("", (), style), nodes)]
        if leaf.url is not None and is_safe_link(leaf.url):
            nodes = [syntax.node("Link", NO_ATTRIBUTES, nodes, (leaf.url, ""))]
        yield from nodes

    def _content(self, leaf: Leaf) -> list[Node]:
        match leaf.type:
            case "latex":
                return [self.formula(leaf.text, is_display=leaf.form == "display")]
            case "inlinecode":
                return [syntax.node("Code", NO_ATTRIBUTES, newlines(leaf.text))]
            case "note":
                return [syntax.node("Note", [syntax.para(self.inlines(leaf.note))])]
            case "ref":
                words = syntax.words(self._shown.ref(leaf))
                return [syntax.node("Link", NO_ATTRIBUTES, words, (f"#{leaf.ref}", ""))]
        return syntax.words(newlines(leaf.text))
