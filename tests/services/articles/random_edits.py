"""Random blocks and edits of documents, for property tests."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from hypothesis import strategies as st

from gateway.articles.v1.edits_pb2 import TableAction
from services.articles.tree.conversions import CONVERTIBLE_TYPES
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import (
    HEADING_TYPES,
    HOLDS,
    PROSE_TYPES,
    Element,
    all_leaves,
    element_to_json,
)
from services.articles.tree.operations import Change
from tests.services.articles.trees import (
    KINDS,
    Body,
    Editor,
    as_bytes,
    bullets,
    cell,
    item,
    label,
    label_item,
    located,
    paragraph,
    row,
    table,
    text,
)

REFERENCE_IDS = ["r0", "r1", "r2"]
WORDS = st.text(alphabet="ab *_[]<>|$\n中é🙂א", max_size=6)

OLD_TEXTS = st.sampled_from(["one", "three", "twothree", "a", "b", "x", "Tides"]) | WORDS
TEXT_EDITS = st.fixed_dictionaries({"old": OLD_TEXTS, "new": WORDS, "all": st.booleans()})

LABEL_NAMES = ["fig-a", "eq:b", "sec.1"]
AFFIXES = st.sampled_from(["see", "p. 3", "3; 4", "[x]*", "e.g., 12 in"])
CITATIONS = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from(REFERENCE_IDS)},
        optional={"prefix": AFFIXES, "locator": AFFIXES, "suffix": AFFIXES},
    ),
    min_size=1,
    max_size=3,
) | st.sampled_from([[{"id": "r0", "narrative": True, "locator": "p. 1"}, {"id": "r1"}]])
CITES = st.sampled_from([*REFERENCE_IDS, None]) | CITATIONS
LEAVES = st.fixed_dictionaries(
    {"text": WORDS},
    optional={
        "type": st.sampled_from(["default", "latex", "inlinecode"]),
        "bold": st.booleans(),
        "italic": st.sampled_from([True, False, None]),
        "textDecoration": st.sampled_from(["underline", "line-through", None]),
        "color": st.sampled_from(["red", "#0af", None]),
        "script": st.sampled_from(["super", "sub", None]),
        "cite": CITES,
    },
)
LINKS = st.builds(lambda t: {"type": "url", "text": t, "url": "https://example.org/"}, WORDS)
REFS = st.fixed_dictionaries(
    {"type": st.just("ref"), "ref": st.sampled_from([*LABEL_NAMES, "nowhere"])},
    optional={"form": st.sampled_from(["number", None]), "italic": st.booleans()},
)
FORMULAS = st.fixed_dictionaries(
    {"type": st.just("latex"), "text": WORDS, "form": st.sampled_from(["display", None])}
)
NOTES = st.builds(
    lambda leaves: {"type": "note", "children": [{"text": "n"}, *leaves]},
    st.lists(LEAVES | LINKS | REFS | FORMULAS, max_size=2),
)
INLINE = LEAVES | LEAVES | LINKS | REFS | NOTES | FORMULAS
RUNS = st.lists(INLINE, max_size=4)
LABELLED: st.SearchStrategy[Body] = st.fixed_dictionaries(
    {}, optional={"label": st.sampled_from(LABEL_NAMES)}
)
CAPTIONED: st.SearchStrategy[Body] = st.fixed_dictionaries({}, optional={"caption": RUNS})
PROSE = st.builds(
    lambda kind, leaves: {"type": kind, "children": leaves},
    st.sampled_from([*PROSE_TYPES, "label"]),
    RUNS,
)
HEADINGS = st.builds(
    lambda kind, leaves, label: {"type": kind, "children": leaves, **label},
    st.sampled_from(HEADING_TYPES),
    RUNS,
    LABELLED,
)
SHALLOW_LISTS = st.builds(
    lambda runs: {"type": "list", "children": [item(*leaves) for leaves in runs]},
    st.lists(RUNS, max_size=2),
)
LIST_ITEMS = st.deferred(
    lambda: st.builds(
        lambda leaves, nested: {"type": "list-item", "children": [*leaves, *nested]},
        RUNS,
        st.lists(SHALLOW_LISTS, max_size=1),
    )
)
LISTS = st.builds(
    lambda items, start: {
        "type": "list",
        "children": items,
        "style": {"orderType": "decimal"},
        "start": start,
    },
    st.lists(LIST_ITEMS, max_size=3),
    st.sampled_from([None, 0, 1, 7]),
)
LABEL_ITEMS = st.builds(
    lambda name, leaves: {"type": "label-item", "name": name, "children": leaves}, WORDS, RUNS
)
LABELS = st.builds(lambda items: label(*items), st.lists(LABEL_ITEMS, max_size=2))


@st.composite
def tables(draw: st.DrawFn) -> Body:
    """A table of at most 3 x 3, now and then with a cell that spans a corner of 2 x 2."""
    height, width = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    rows = [[cell(draw(WORDS)) for _ in range(width)] for _ in range(height)]
    if height > 1 and width > 1 and draw(st.booleans()):
        rows[0][:2] = [cell("wide", colSpan=2, rowSpan=2)]
        rows[1][:2] = []
    align = draw(st.lists(st.sampled_from(["start", "center", None]), max_size=width))
    made = {**table(*(row(*cells) for cells in rows)), **draw(LABELLED), **draw(CAPTIONED)}
    return {**made, "align": align} if height else made


VOIDS = st.builds(
    lambda block, label: {**block, **label} if block["type"] != "author" else block,
    st.sampled_from(
        [
            {"type": "equation", "equation": "a<b"},
            {"type": "code", "code": "x = 1", "language": "Python"},
            {"type": "image", "image": [{"url": "https://example.org/a.png"}], "children": []},
            {"type": "author", "author": [{"id": 1, "name": "Ada"}]},
        ]
    ),
    LABELLED,
)
IMAGES = st.builds(
    lambda pictures, label, caption: {"type": "image", "image": pictures, **label, **caption},
    st.lists(
        st.just({"url": "https://example.org/a.png", "alt": 'a "b"', "title": "c"}), max_size=2
    ),
    LABELLED,
    CAPTIONED,
)
BLOCKS = PROSE | HEADINGS | LISTS | LABELS | tables() | VOIDS | IMAGES
PARTS = LIST_ITEMS | LABEL_ITEMS | SHALLOW_LISTS | st.just(row("x", "y"))


@st.composite
def edits(draw: st.DrawFn, document: Document) -> tuple[str, Body]:
    """An edit of a document; most are possible, some are not."""
    everything = [
        (path, element)
        for place, block in enumerate(document.blocks)
        for path, element in located((place,), block)
    ]
    kind = draw(st.sampled_from(KINDS))
    fit = [one for one in everything if _fits(kind, one[1])]
    mostly = draw(st.integers(0, 7)) > 0
    pool = fit if fit and mostly else everything
    path, element = draw(st.sampled_from(pool) if pool else st.just(((0,), None)))
    target: Body = {"blockId": element.id if element else "nowhere"}
    if kind == "insert_blocks":
        return kind, draw(_insertions(len(document.blocks), path, element))
    if kind in ("cite", "set_leaf_style"):
        if element and element.leaves and draw(st.booleans()):
            at = draw(st.integers(0, len(element.children) - 1))
            target = {"leafPath": [*path, at]}
        if kind == "cite":
            return kind, {**target, **_cited(draw(CITES))}
        return kind, {**target, **draw(MARKS)}
    if kind == "replace_text":
        return kind, {**target, **draw(_contents(element))}
    if kind in ("edit_text", "apply_edits"):
        one = TEXT_EDITS if kind == "edit_text" else _single_edits(document)
        return kind, {"edits": draw(st.lists(one, min_size=1, max_size=2))}
    if kind in CHANGES:
        return kind, {**target, **draw(CHANGES[kind])}
    if kind in STRUCTURE_KINDS:
        return kind, draw(_structure_edits(kind, document, path, target, everything))
    if kind in TEXTS:
        return kind, draw(TEXTS[kind])
    reference_id = draw(st.sampled_from(REFERENCE_IDS))
    if kind == "delete_reference":
        return kind, {"referenceId": reference_id}
    return kind, {"reference": {"id": reference_id, **draw(FIELDS)}}


def _cited(cite: object) -> Body:
    return {"citations": cite} if isinstance(cite, list) else {"cite": cite}


STRUCTURE_KINDS = ("move_block", "duplicate_block", "convert_blocks", "edit_table")


def _structure_edits(
    kind: str,
    document: Document,
    path: tuple[int, ...],
    target: Body,
    everything: Sequence[tuple[tuple[int, ...], Element]],
) -> st.SearchStrategy[Body]:
    if kind == "edit_table":
        return TABLE_CHANGES.map(lambda change: {**target, **change})
    if kind == "convert_blocks":
        following = [block.id for block in document.blocks][path[0] :] or ["nowhere"]
        runs = st.integers(1, 3).map(lambda count: following[:count])
        return st.fixed_dictionaries({"block_ids": runs, "type": CONVERTED_TYPES})
    return _places(len(document.blocks), everything).map(lambda place: {**target, **place})


def _places(
    length: int, everything: Sequence[tuple[tuple[int, ...], Element]]
) -> st.SearchStrategy[Body]:
    paths = st.integers(0, length).map(lambda at: [at])
    if everything:
        somewhere = st.sampled_from(everything)
        befores = somewhere.map(lambda one: {"before_id": one[1].id})
        paths |= somewhere.map(lambda one: [*one[0]])
        deeper = st.builds(lambda one, at: [*one[0], at], somewhere, st.integers(0, 2))
        places = befores | st.fixed_dictionaries({"path": paths | deeper})
    else:
        places = st.fixed_dictionaries({"path": paths})
    return st.builds(
        lambda place, section: {**place, "with_section": section}, places, st.booleans()
    )


def _single_edits(document: Document) -> st.SearchStrategy[tuple[str, Body]]:
    return edits(document).filter(lambda edit: edit[0] != "apply_edits")


def _fits(kind: str, element: Element) -> bool:
    if kind == "edit_table":
        return element.type == "table"
    if kind == "append_text":
        return element.type in (*PROSE_TYPES, "label")
    if kind in ("cite", "set_leaf_style"):
        return any(True for _ in all_leaves(element))
    if kind == "insert_blocks":
        return element.type in HOLDS
    return True


def _insertions(
    length: int, path: tuple[int, ...], element: Element | None
) -> st.SearchStrategy[Body]:
    top = st.builds(
        lambda at, blocks: {"path": [at], "blocks": blocks},
        st.integers(0, length),
        st.lists(BLOCKS, min_size=1, max_size=3),
    )
    held = HOLDS.get(element.type) if element else None
    fitting = {
        "list-item": LIST_ITEMS,
        "label-item": LABEL_ITEMS,
        "list": SHALLOW_LISTS,
        "table-row": st.just(row("x", "y")),
    }.get(held or "")
    if element is None or fitting is None:
        return top
    below = st.builds(
        lambda at, blocks: {"path": [*path, at], "blocks": blocks},
        st.integers(0, len(element.children)),
        st.lists(fitting, min_size=1, max_size=2),
    )
    return top | below


def _contents(element: Element | None) -> st.SearchStrategy[Body]:
    children = st.fixed_dictionaries({"children": RUNS | WORDS})
    if element is None:
        return children
    if element.type in ("table", "image", *HEADING_TYPES):
        children |= LABEL_CHANGES
    if element.type in ("table", "image"):
        children |= st.fixed_dictionaries({"caption": RUNS | st.none()})
    if element.type == "table":
        children |= st.sampled_from([{"align": ["end"]}, {"align": None}])
    if element.leaves:
        return children
    if element.type == "equation":
        return st.fixed_dictionaries({"equation": WORDS})
    if element.type == "code":
        return st.fixed_dictionaries({"code": WORDS, "language": WORDS})
    # Sending back what one read keeps the ids.
    again = element_to_json(element)["children"]
    assert isinstance(again, list)
    return st.permutations(again).map(lambda kept: {"children": kept}) | children


_APPENDED_TEXTS = st.fixed_dictionaries({"text": WORDS | RUNS})
CONVERTED_TYPES = st.sampled_from([*CONVERTIBLE_TYPES, "table"])
_SLOTS = st.integers(0, 3)
TABLE_CHANGES = st.fixed_dictionaries(
    {"action": st.integers(0, len(TableAction.keys()) - 1)},
    optional={
        **{"row": _SLOTS, "column": _SLOTS, "rows": _SLOTS, "columns": _SLOTS},
        "align": st.sampled_from(["start", "end"]),
    },
)
MARKS = st.fixed_dictionaries(
    {"bold": st.sampled_from([True, False, None])},
    optional={
        "italic": st.booleans(),
        "textDecoration": st.sampled_from(["underline", None]),
        "color": st.sampled_from(["red", None]),
        "script": st.sampled_from(["super", None]),
    },
)
LABEL_CHANGES = st.fixed_dictionaries({"label": st.sampled_from([*LABEL_NAMES, None])})
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "language": st.sampled_from(["zh", "en-GB", None]),
        "keywords": st.sampled_from([["a", "b"], [], None]),
        "direction": st.sampled_from(["rtl", None]),
        "date": st.sampled_from(["2026-11", None]),
    },
)
_CSS = st.dictionaries(
    st.sampled_from(["color", "fontSize", "marginTop"]), st.sampled_from(["red", 12, 1.5, None])
)
ELEMENT_STYLES: st.SearchStrategy[Body] = st.fixed_dictionaries(
    {},
    optional={
        "style": _CSS | st.none(),
        "isTemplate": st.sampled_from([True, False, None]),
        "indent": st.booleans(),
    },
)
ARTICLE_STYLES = st.fixed_dictionaries(
    {},
    optional={
        "global": st.fixed_dictionaries(
            {},
            optional={
                "paperSize": st.sampled_from(["A4", "Letter", None]),
                "margin": st.dictionaries(
                    st.sampled_from(["top", "left"]), st.sampled_from([1, "2cm", None])
                ),
            },
        )
        | st.none(),
        "paragraph": ELEMENT_STYLES | st.none(),
    },
)
CHANGES: dict[str, st.SearchStrategy[Body]] = {
    "append_text": _APPENDED_TEXTS,
    "set_block_style": ELEMENT_STYLES,
    "delete_block": st.just({}),
}
BIBLIOGRAPHIES = st.sampled_from(
    [
        {"format": 1, "text": "@book{r1, title = {A}}\n@misc{r9,}\n@misc{r9,}\n@misc{broken"},
        {"format": 4, "text": "[]"},
        {"format": 2, "text": "@misc{r8, author = {Ada and Bob}}"},
    ]
)
MARKDOWN = st.fixed_dictionaries(
    {"markdown": st.sampled_from(["# a\n\n- b [@r0]\n  - c [1]", "|a|b|\n|-|-|\n|$x$|", ""])},
    optional={"position": st.integers(0, 3)},
)
TEXTS = {
    "import_references": BIBLIOGRAPHIES,
    "write_markdown": MARKDOWN,
    "set_properties": st.fixed_dictionaries({"properties": PROPERTIES}),
    "set_article_style": st.fixed_dictionaries({"style": ARTICLE_STYLES}),
}
FIELDS = st.dictionaries(
    st.sampled_from(["title", "year", "author", "x-note"]), st.just(None), max_size=2
) | st.just({"title": "On trees", "author": ["Ada", "Bob"], "x-note": ["a", "b"]})


def one_of_each(cited: str) -> list[Body]:
    """Some block of every shape; a few leaves cite a reference."""
    return [
        paragraph("one", text("two", bold=True, cite=cited), "three"),
        bullets("a", item(text("b", cite=cited), bullets("c"))),
        {
            **table(row("a", "b"), row(cell(text("c", cite=cited)), "d")),
            "caption": [text("k", cite=[{"id": cited, "locator": "p. 2"}])],
            "align": ["end"],
        },
        paragraph({"type": "note", "children": [text("n", cite=cited)]}, kind="quote"),
        paragraph("s", {"type": "ref", "ref": LABEL_NAMES[0]}, kind="h5"),
        label(label_item("k", "a"), label_item("l", text("b", italic=True))),
        {"type": "equation", "equation": "x"},
        {"type": "code", "code": "x"},
    ]


def random_edits(data: st.DataObject, editor: Editor, at_most: int = 8) -> Iterator[Change]:
    """Apply random edits; give each change that was not refused."""
    for reference_id in REFERENCE_IDS[: data.draw(st.sampled_from([3, 3, 3, 1]))]:
        yield editor.edit("add_reference", {"reference": {"id": reference_id}})
    yield editor.edit("insert_blocks", {"path": [0], "blocks": one_of_each(cited="r0")})
    blocks = data.draw(st.lists(BLOCKS, max_size=3))
    if blocks:
        with suppress(EditError):
            yield editor.edit("insert_blocks", {"path": [1], "blocks": blocks})
    for _ in range(data.draw(st.integers(0, at_most))):
        kind, body = data.draw(edits(editor.document))
        before = as_bytes(editor.document)
        try:
            change = editor.edit(kind, body)
        except EditError:
            assert as_bytes(editor.document) == before
            continue
        yield change
