"""What doc/read returns, written again, reads equal."""

from hypothesis import example, given
from hypothesis import strategies as st

from services.articles.bibliography.entries import Omission
from services.articles.markdown import ElementRenderer, joined
from tests.services.articles.markdown.test_round_trip import (
    EXAMPLES,
    LEAVES,
    PROSE,
    TEXTS,
    editor_with,
)
from tests.services.articles.trees import (
    Body,
    Editor,
    bullets,
    label,
    label_item,
    paragraph,
    row,
    table,
    text,
)


def shown_leaf(leaf: Body) -> Body:
    """Return a leaf without what doc/read does not show.

    These are addresses outside of the web, and that only one of two adjacent links or pieces of
    code is cited, which are otherwise equal.
    """
    if leaf.get("type") in ("url", "inlinecode"):
        leaf = {key: value for key, value in leaf.items() if key != "cite"}
    return {**leaf, "url": "https://a.org/?b=1&copy;"} if "url" in leaf else leaf


FORMULA = st.fixed_dictionaries(
    {"type": st.just("latex"), "text": st.text(alphabet="ab\\${}|<>`*_1 \n", max_size=6)},
    optional={"form": st.just("display")},
)
AFFIX = st.text(alphabet="ab1 ,;:.@[]*_<&^\\é", max_size=8).map(str.strip) | st.sampled_from(
    ["see", "p. 3", "pp. 3-5, 7", "e.g., 12", "and others"]
)
CITES = st.builds(
    lambda citations, is_narrative: [
        {**citations[0], "narrative": is_narrative, **({"prefix": None} if is_narrative else {})},
        *citations[1:],
    ],
    st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from(["r0", "r1"])},
            optional={"prefix": AFFIX, "locator": AFFIX, "suffix": AFFIX},
        ),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
CITED = st.builds(lambda text, cite: {"text": text, "cite": cite}, TEXTS, CITES)
SCRIPT = st.builds(
    lambda text, script: {"text": text, "script": script}, TEXTS, st.sampled_from(["super", "sub"])
)
REF = st.fixed_dictionaries(
    {"type": st.just("ref"), "ref": st.sampled_from(["label-0", "label-1", "sec:é/x"])},
    optional={"form": st.just("number"), "bold": st.just(True)},
)
SIMPLE = st.builds(
    lambda leaves, more: [*map(shown_leaf, leaves), *more],
    LEAVES,
    st.lists(FORMULA | CITED | SCRIPT | REF, max_size=2),
)
NOTE = SIMPLE.filter(lambda leaves: any(leaf.get("text") or "ref" in leaf for leaf in leaves)).map(
    lambda leaves: {"type": "note", "children": leaves}
)
TEXT = st.builds(lambda before, note: [*before, *note], SIMPLE, st.lists(NOTE, max_size=1))
ITEMS = st.builds(
    lambda leaves, nested: {"type": "list-item", "children": [*leaves, *nested]},
    TEXT,
    st.lists(
        st.builds(lambda leaves: bullets({"type": "list-item", "children": leaves}), TEXT),
        max_size=1,
    ),
)
CELLS = st.builds(lambda leaves: {"type": "table-cell", "children": leaves}, TEXT)
CAPTION: st.SearchStrategy[Body] = st.fixed_dictionaries({}, optional={"caption": TEXT})
TABLES = st.builds(
    lambda rows, align, caption: {**table(*(row(*cells) for cells in rows)), **align, **caption},
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=3),
    st.sampled_from(
        [{}, {"style": {"textAlign": "center"}}, {"align": ["end"]}, {"align": ["start", "center"]}]
    ),
    CAPTION,
)
BLOCKS = st.one_of(
    st.builds(lambda kind, leaves: {"type": kind, "children": leaves}, PROSE, TEXT),
    st.builds(
        lambda items, order, start: bullets(*items, style={"orderType": order}, start=start),
        st.lists(ITEMS, min_size=1, max_size=3),
        st.sampled_from(["disc", "lower-roman"]),
        st.sampled_from([None, 0, 7]),
    ),
    st.builds(lambda name, leaves: label(label_item(name, leaves[0]["text"])), st.just("N"), TEXT),
    TABLES,
    st.text(alphabet="ab\\$ \n<`*", max_size=9).map(lambda t: {"type": "equation", "equation": t}),
    st.builds(
        lambda code, language: {"type": "code", "code": code, "language": language},
        st.text(alphabet="`~ab\n $<", max_size=12),
        st.text(alphabet="`Ab +\\&;\n~", max_size=8),
    ),
    st.builds(
        lambda alt, title, count, caption: {
            "type": "image",
            "image": [{"url": "https://a.org/x y(1).png", "alt": alt, "title": title}] * count,
            **caption,
        },
        st.text(alphabet='a *[]"\\\n<&{}', max_size=6),
        st.text(alphabet='a *[]"\\\n<&', max_size=6),
        st.integers(1, 2),
        CAPTION,
    ),
)
LABELLED_TYPES = ("h1", "h2", "h3", "h4", "h5", "h6", "image", "table", "equation", "code")


@st.composite
def documents(draw: st.DrawFn) -> list[Body]:
    """Blocks, of which some have labels."""
    blocks = draw(st.lists(BLOCKS, min_size=1, max_size=4))
    labels = iter(["label-0", "sec:é/x"])
    # A title is written as a heading, which would count.
    blocks = [{**block, "type": "h1"} if block["type"] == "title" else block for block in blocks]
    return [
        {**block, "label": label}
        if block["type"] in LABELLED_TYPES and draw(st.booleans()) and (label := next(labels, None))
        else block
        for block in blocks
    ]


def is_missing(omission: Omission) -> bool:
    """Return whether something is missing beside references to blocks that are nowhere."""
    return "no block has this label" not in omission.reason


def read_again(editor: Editor, *, with_keys: bool) -> tuple[str, str]:
    """Return the Markdown of a document, and that of the document that it is written to.

    Numbers of citations are those of a document, which the other therefore has in its first block.
    """
    renderer = ElementRenderer(editor.document, with_keys=with_keys)
    markdown = joined(renderer.blocks(editor.document.blocks))
    other = editor_with(paragraph("x", *(text("", cite=r) for r in editor.document.numbers())))
    if not markdown:
        return "", ""
    written = other.edit("write_markdown", {"markdown": markdown})
    assert not [omission for omission in written.omitted if is_missing(omission)]
    again = ElementRenderer(other.document, with_keys=with_keys)
    return markdown, joined(again.blocks(list(other.document.blocks)[1:]))


@EXAMPLES
@given(documents())
def test_a_document_written_again_reads_equal(blocks: list[Body]) -> None:
    before, after = read_again(editor_with(*blocks), with_keys=False)
    assert after == before


NARRATIVE = text("", cite=[{"id": "r0", "narrative": True}])


@EXAMPLES
@given(documents())
@example([paragraph(text("", cite=[{"id": "r0", "suffix": "1;"}]))])
@example([paragraph(text("", cite=[{"id": "r0", "locator": "1,:"}]))])
@example([paragraph(text("", cite=[{"id": "r0", "locator": "&1", "suffix": "1"}]))])
@example([paragraph(NARRATIVE, text("1", cite="r0"))])
@example([paragraph(NARRATIVE, text("1", type="latex"))])
@example([paragraph(text("1", italic=True), text("1", italic=True, cite="r0"))])
def test_a_document_with_keys_written_again_reads_equal(blocks: list[Body]) -> None:
    before, after = read_again(editor_with(*blocks), with_keys=True)
    assert after == before
