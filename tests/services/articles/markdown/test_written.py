"""What doc/read returns, written again, reads equal."""

from hypothesis import given
from hypothesis import strategies as st

from services.articles.markdown import ElementRenderer, joined, render_document
from tests.services.articles.markdown.test_round_trip import EXAMPLES, LEAVES, PROSE, editor_with
from tests.services.articles.trees import Body, bullets, label, label_item, row, table


def shown_leaf(leaf: Body) -> Body:
    """Return a leaf without what doc/read does not show.

    These are addresses outside of the web, and that only one of two adjacent links or pieces of
    code is cited, which are otherwise equal.
    """
    if leaf.get("type") in ("url", "inlinecode"):
        leaf = {key: value for key, value in leaf.items() if key != "cite"}
    return {**leaf, "url": "https://a.org/?b=1&copy;"} if "url" in leaf else leaf


FORMULA = st.fixed_dictionaries(
    {"type": st.just("latex"), "text": st.text(alphabet="ab\\${}|<>`*_1 \n", max_size=6)}
)
TEXT = st.builds(
    lambda leaves, formula: [*map(shown_leaf, leaves), *formula],
    LEAVES,
    st.lists(FORMULA, max_size=1),
)
ITEMS = st.builds(
    lambda leaves, nested: {"type": "list-item", "children": [*leaves, *nested]},
    TEXT,
    st.lists(
        st.builds(lambda leaves: bullets({"type": "list-item", "children": leaves}), TEXT),
        max_size=1,
    ),
)
CELLS = st.builds(lambda leaves: {"type": "table-cell", "children": leaves}, TEXT)
TABLES = st.builds(
    lambda rows, align: {**table(*(row(*cells) for cells in rows)), "style": align},
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=3),
    st.sampled_from([{}, {"textAlign": "center"}]),
)
BLOCKS = st.one_of(
    st.builds(lambda kind, leaves: {"type": kind, "children": leaves}, PROSE, TEXT),
    st.builds(
        lambda items, order: bullets(*items, style={"orderType": order}),
        st.lists(ITEMS, min_size=1, max_size=3),
        st.sampled_from(["disc", "lower-roman"]),
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
        lambda alt, title: {
            "type": "image",
            "image": [{"url": "https://a.org/x y(1).png", "alt": alt, "title": title}] * 2,
        },
        st.text(alphabet='a *[]"\\\n<&', max_size=6),
        st.text(alphabet='a *[]"\\\n<&', max_size=6),
    ),
)


@EXAMPLES
@given(st.lists(BLOCKS, min_size=1, max_size=4))
def test_a_document_written_again_reads_equal(blocks: list[Body]) -> None:
    editor = editor_with(*blocks)
    markdown = render_document(editor.document)[1]
    if not markdown:
        return
    # At the end of the same document, as numbers of citations are those of a document.
    written = editor.edit("write_markdown", {"markdown": markdown})
    assert written.omitted == ()
    again = ElementRenderer(editor.document).blocks(
        editor.document.element(block_id) for block_id in written.ids
    )
    assert joined(again) == markdown
