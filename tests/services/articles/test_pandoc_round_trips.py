"""Documents written through pandoc and read back keep all words, formulas and references."""

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.articles.pandoc.formats import EXPORT_FORMATS, IMPORT_FORMATS
from services.articles.pandoc.from_document import TreeOptions, tree_of
from services.articles.pandoc.latex import LatexCitations
from services.articles.pandoc.latex_source import readable
from services.articles.pandoc.to_blocks import blocks_of
from services.articles.tree.document import Document
from services.articles.tree.nodes import HEADING_TYPES, Element, walk
from services.media.conversion.pandoc import pandoc_path
from tests.grid import each_row
from tests.services.articles.trees import Body, Editor, row, table

FORMATS = ("docx", "latex", "html", "jats")
# As editors and people write them.
WORDS = (
    *(
        "tide",
        "Ebbe",
        "a_b",
        "50%",
        "$5",
        "#1",
        "x^2",
        "{y}",
        "n~m",
        r"\cmd",
        "<b>",
        "&amp;",
        "中文",
    ),
    *("“so”", "it's", "[1]", "@key", "*z*", "`c`", "p|q", "1.", "-", "+", ">", "e.g.", "a/b", "€3"),
    *("--flag", "!", "(c)", "“", "ﬁn", "שלום", "naïve", "1--2", '"q"', "=", "^", "$$", "%%", "\\"),
)
FORMULAS = (r"\alpha_{1} + \frac{a}{b}", "x < y", r"\text{if } n \ge 2", r"E = mc^2", r"\{a\}")
REFERENCES = ({"id": "newton:1687", "author": ["Newton, I."], "title": "Principia"}, {"id": "b.2"})
MARKS = ({}, {"bold": True}, {"italic": True}, {"script": "super"}, {"textDecoration": "underline"})

_TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
_PLAIN = st.builds(lambda text, marks: {"text": text, **marks}, _TEXTS, st.sampled_from(MARKS))
_OTHER = st.one_of(
    st.sampled_from(FORMULAS).map(lambda text: {"text": text, "type": "latex"}),
    st.sampled_from(WORDS).map(lambda text: {"text": text, "type": "inlinecode"}),
    st.sampled_from(WORDS).map(lambda t: {"text": t, "type": "inlinecode", "url": "https://a.b"}),
    _TEXTS.map(lambda text: {"text": text, "type": "url", "url": "https://a.b/c_d?e=f%20&g#h"}),
    _PLAIN.map(lambda leaf: {"text": "", "type": "note", "children": [leaf]}),
    st.just({"text": "", "type": "ref", "ref": "sec"}),
    st.just({"text": "", "cite": [{"id": "newton:1687", "prefix": "see", "locator": "p. 3"}]}),
    st.just({"text": "", "cite": [{"id": "b.2"}, {"id": "newton:1687"}]}),
)
_LEAVES = st.builds(
    lambda *leaves: [leaf for leaf in leaves if leaf is not None],
    *(_PLAIN, st.none() | _OTHER, _PLAIN),
)


def _of_leaves(kind: str) -> st.SearchStrategy[Body]:
    return _LEAVES.map(lambda leaves: {"type": kind, "children": leaves})


_CELLS = _of_leaves("table-cell")
BLOCKS = st.one_of(
    *map(_of_leaves, ("paragraph", "quote")),
    st.builds(
        lambda leaves, kind: {"type": kind, "children": leaves},
        *(_LEAVES, st.sampled_from(["h2"])),
    ),
    st.sampled_from(FORMULAS).map(lambda text: {"type": "equation", "equation": text}),
    _TEXTS.map(lambda text: {"type": "code", "code": f"{text}\n  {text}", "language": "python"}),
    st.lists(_of_leaves("list-item"), min_size=1, max_size=3).map(
        lambda items: {"type": "list", "children": items}
    ),
    st.builds(lambda *cells: table(row(*cells[:2]), row(*cells[2:])), *[_CELLS] * 4),
)


def document_of(blocks: list[Body]) -> Document:
    editor = Editor()
    for reference in REFERENCES:
        editor.edit("add_reference", {"reference": reference})
    heading = {"type": "h1", "children": [{"text": "Section"}], "label": "sec"}
    # Without a title, the first heading is that of a page, and comes back as the title.
    title = {"type": "title", "children": [{"text": "Harbours"}]}
    editor.insert(title, heading, *blocks)
    return editor.document


def written(document: Document, name: str) -> bytes:
    """Return a document in a format."""
    chosen = EXPORT_FORMATS[name]
    latex = None
    if name == "latex" and document.numbers():
        latex = LatexCitations.of(document.references.values(), has_years=False)
    options = TreeOptions(
        {},
        chosen.shows_web_pictures,
        numbers_captions=not chosen.numbers_captions,
        marks_texts=name == "docx",
        is_latex=name == "latex",
        latex=latex,
    )
    tree = tree_of(document, options)
    return run(orjson.dumps(tree.root), "json", chosen.writer)


def converted(document: Document, name: str) -> tuple[Element, ...]:
    """Return the blocks of a document that was written in a format, and read back."""
    content = written(document, name)
    content = readable(content.decode()) if name == "latex" else content
    root = orjson.loads(run(content, IMPORT_FORMATS[name], "json"))
    ids = map(str, itertools.count())
    return blocks_of(root, lambda address: None, lambda: next(ids)).blocks


def run(content: bytes, reader: str, writer: str) -> bytes:
    """Run pandoc as a conversion does."""
    command = [pandoc_path(), f"--from={reader}", f"--to={writer}", "--standalone", "--output=-"]
    if writer == "html5":
        command.append("--mathml")
    if writer == "latex":
        command.append("--syntax-highlighting=none")
    return subprocess.run(command, input=content, capture_output=True, check=True).stdout


def texts(leaves: Any) -> Iterator[str]:
    for leaf in leaves:
        if leaf.note:
            yield from texts(leaf.note)
        elif leaf.type != "latex":
            yield leaf.text


def words(blocks: Any) -> str:
    """Return all texts without white space, with plain quotes and dashes."""
    shown = [
        "".join([*texts(element.leaves), *texts(element.caption)])
        if element.type != "code"
        else str(element.content["code"])
        for block in blocks
        for element in walk(block)
    ]
    text = re.sub(r"[\s\ufffc]", "", "".join(shown))
    for quote, others in (("'", "`‘’"), ('"', "“”"), ("--", "–"), ("---", "—")):  # noqa: RUF001  # typographic
        text = re.sub(f"[{others}]", quote, text)
    return text


def formulas(blocks: Any) -> list[str]:
    """Return formulas, in LaTeX without white space."""
    elements = [element for block in blocks for element in walk(block)]
    each = [str(one.content["equation"]) for one in elements if one.type == "equation"]
    leaves = [leaf for one in elements for leaf in (*one.leaves, *one.caption)]
    each += [leaf.text for leaf in leaves if leaf.type == "latex"]
    return [re.sub(r"\s", "", formula) for formula in each]


def objects(blocks: Any, *kinds: str) -> list[str]:
    """Return the types of the leaves of some types, or that cite, in order."""
    elements = [element for block in blocks for element in walk(block)]
    leaves = [leaf for element in elements for leaf in (*element.leaves, *element.caption)]
    types = ["citation" if leaf.cite is not None else leaf.type for leaf in leaves]
    return [kind for kind in types if kind in kinds]


def headings(blocks: Any) -> list[tuple[str, str]]:
    """Return the types and the words of headings."""
    return [(one.type, words([one])) for one in blocks if one.type in HEADING_TYPES]


def targets(blocks: Any) -> list[str]:
    """Return the kinds of the blocks that references name, in their order."""
    kinds = {one.label: "heading" if one.type in HEADING_TYPES else one.type for one in blocks}
    elements = [element for block in blocks for element in walk(block)]
    leaves = [leaf for one in elements for leaf in (*one.leaves, *one.caption)]
    return [kinds[leaf.ref] for leaf in leaves if leaf.ref is not None]


def missing(expected: str, shown: str) -> str:
    """Return a text from where on it is not, in this order, in another one."""
    at = 0
    for position, character in enumerate(expected):
        at = shown.find(character, at) + 1
        if not at:
            return expected[max(0, position - 20) : position + 20]
    return ""


def check(document: Document, name: str) -> None:
    back = converted(document, name)
    assert missing(words(document.blocks), words(back)) == "", name
    # Formulas in DOCX are MathML, and are written otherwise in LaTeX.
    sizes = len(formulas(document.blocks)), len(formulas(back))
    assert sizes[0] == sizes[1], (name, formulas(back))
    assert name == "docx" or formulas(back) == formulas(document.blocks), name
    kinds = ("note", "ref", "citation") if name == "latex" else ("note", "ref")
    assert objects(back, *kinds) == objects(document.blocks, *kinds), name
    written, read = headings(document.blocks), headings(back)[: len(headings(document.blocks))]
    assert [kind for kind, _ in read] == [kind for kind, _ in written], name
    lost = [missing(one, other) for (_, one), (_, other) in zip(written, read, strict=True)]
    assert not any(lost), (name, lost)
    assert targets(back) == targets(document.blocks), name


def sample(name: str) -> list[Body]:
    """Return a block of each kind, with all words, formulas and references."""
    plain = [{"text": f"{one} {other}"} for one, other in itertools.pairwise(WORDS)]
    others: list[Body] = [
        {"text": "E = mc^2", "type": "latex"},
        {"text": "", "type": "note", "children": [{"text": "noted"}]},
        {"text": "", "type": "ref", "ref": "sec"},
        {"text": "", "cite": [{"id": "newton:1687", "prefix": "see", "locator": "p. 3"}]},
    ]
    leaves = [leaf for one in others for leaf in ({"text": "so "}, one, {"text": " on"})]
    coded = [{"text": word, "type": "inlinecode"} for word in WORDS]
    linked = [{"text": word, "type": "url", "url": "https://a.b/c_d?e=f%20&g#h"} for word in WORDS]
    # Pandoc reads no identifiers of formulas and tables in JATS.
    labels = ("sec", "lst") if name == "jats" else ("sec", "lst", "eq", "tab")
    refs: list[Body] = [{"text": "", "type": "ref", "ref": label} for label in labels]
    return [
        *({"type": "paragraph", "children": [leaf]} for leaf in (*plain, *coded, *linked)),
        *({"type": kind, "children": leaves} for kind in ("paragraph", "quote")),
        {"type": "h2", "children": leaves},
        {"type": "h3", "children": [{"text": "[a] "}, *leaves]},
        {"type": "paragraph", "children": refs},
        {"type": "equation", "equation": "a = b", **({} if name == "jats" else {"label": "eq"})},
        *({"type": "equation", "equation": formula} for formula in FORMULAS),
        {"type": "code", "code": " ".join(WORDS), "language": "python", "label": "lst"},
        {"type": "code", "code": r"\end{verbatim}", "language": "latex"},
        {"type": "list", "children": [{"type": "list-item", "children": [one]} for one in plain]},
        table(row(*({"type": "table-cell", "children": [one]} for one in plain[:9]))),
        {**table(row("a", "b")), "caption": leaves, "label": "tab"},
    ]


@each_row("name", FORMATS)
def test_a_document_comes_back(name: str) -> None:
    check(document_of(sample(name)), name)


@pytest.mark.soak
def test_latex_compiles_where_there_is_a_tex(tmp_path: Path) -> None:
    symbols = {"type": "paragraph", "children": [{"text": "Ω ≤ δ → ∑ x₂ Ж", "bold": True}]}
    accents = [
        {"text": "Flüße [a]", "textDecoration": mark} for mark in ("underline", "line-through")
    ]
    document = document_of([*sample("latex"), symbols, {"type": "paragraph", "children": accents}])
    (tmp_path / "paper.tex").write_bytes(written(document, "latex"))
    for program in filter(shutil.which, ("pdflatex", "xelatex", "lualatex")):
        command = [program, "-interaction=nonstopmode", "-no-shell-escape", "paper.tex"]
        for _ in range(2):
            run = subprocess.run(command, cwd=tmp_path, capture_output=True)
        assert run.returncode == 0, (program, run.stdout[-2000:])
        assert b"undefined references" not in run.stdout, program


@pytest.mark.soak
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=30, deadline=None, suppress_health_check=[*HealthCheck])
@given(blocks=st.lists(BLOCKS, min_size=1, max_size=8))
def test_any_document_comes_back(name: str, blocks: list[Body]) -> None:
    check(document_of(blocks), name)
