"""Properties of every document and any sequence of edits."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import walk
from services.articles.tree.operations import from_json, to_json
from tests.services.articles.random_edits import BLOCKS, RUNS, edits, random_edits
from tests.services.articles.trees import Body, Editor, as_bytes, check, paragraph
from tests.thoroughness import examples

EXAMPLES = settings(max_examples=examples(25))


@EXAMPLES
@given(st.data())
def test_any_sequence_of_edits_keeps_the_laws(data: st.DataObject) -> None:
    """Trees are valid, inverses restore, ids are new, and what is stored reads back."""
    editor = Editor()
    before = editor.document
    changes = []
    now: set[str] = set()
    gone: set[str] = set()
    for change in random_edits(data, editor):
        check(change.document)
        undone = change.inverse.apply(change.document)
        assert undone.document == before
        assert list(undone.document.references) == list(before.references)
        check(undone.document)
        assert undone.inverse.apply(undone.document).document == change.document
        then = now
        now = {element.id for block in change.document.blocks for element in walk(block)}
        gone |= then - now
        assert not now & gone
        assert all(int(element_id[1:]) <= editor.ids.given for element_id in now)
        before = change.document
        changes.append(change)
    document = editor.document
    again = Document.from_json(json.loads(json.dumps(document.to_json())))
    assert again == document
    check(again)
    for change in reversed(changes):
        document = change.inverse.apply(document).document
    assert document == Document()


@EXAMPLES
@given(st.data())
def test_replaying_the_log_gives_the_tree(data: st.DataObject) -> None:
    editor = Editor()
    list(random_edits(data, editor, at_most=0))
    document = Document.from_json(json.loads(as_bytes(editor.document)))
    for _ in range(8):
        kind, body = data.draw(edits(editor.document))
        try:
            operation = editor.read(kind, body)
            change = operation.apply(editor.document)
        except EditError:
            continue
        stored = to_json(change.operation or operation)
        logged = json.loads(json.dumps([stored, to_json(change.inverse)]))
        again = from_json(logged[0]).apply(document)
        assert again.document == change.document
        assert change.operation or again.ids == change.ids
        assert from_json(logged[1]).apply(change.document).document == document
        assert to_json(from_json(logged[1])) == to_json(change.inverse)
        editor.document, document = change.document, again.document
    assert as_bytes(document) == as_bytes(editor.document)


@EXAMPLES
@given(st.data())
def test_insert_then_delete_restores_the_tree(data: st.DataObject) -> None:
    editor = Editor()
    list(random_edits(data, editor, at_most=3))
    before = editor.document
    for reference_id in sorted({"r0", "r1", "r2"} - before.references.keys()):
        editor.edit("add_reference", {"reference": {"id": reference_id}})
    before = editor.document
    place = data.draw(st.integers(0, len(before.blocks)))
    blocks = data.draw(st.lists(BLOCKS, min_size=1, max_size=3))
    # Others may have the labels already.
    labels = [f"new-{index}" for index in range(len(blocks))]
    blocks = [
        {**block, "label": label} if "label" in block else block
        for block, label in zip(blocks, labels, strict=True)
    ]
    change = editor.edit("insert_blocks", {"path": [place], "blocks": blocks})
    assert [editor.document.path_of(made) for made in change.ids] == [
        (place + n,) for n in range(len(blocks))
    ]
    for block_id in change.ids:
        editor.edit("delete_block", {"blockId": block_id})
    assert editor.document == before


@EXAMPLES
@given(RUNS, RUNS, RUNS)
def test_appending_twice_is_appending_once(
    first: list[Body], second: list[Body], third: list[Body]
) -> None:
    apart, together = Editor(), Editor()
    for editor in (apart, together):
        for reference_id in ("r0", "r1", "r2"):
            editor.edit("add_reference", {"reference": {"id": reference_id}})
        editor.insert({"type": "paragraph", "children": first})
    apart.edit("append_text", {"blockId": "e1", "text": second})
    apart.edit("append_text", {"blockId": "e1", "text": third})
    together.edit("append_text", {"blockId": "e1", "text": [*second, *third]})
    assert apart.document == together.document


@EXAMPLES
@given(st.lists(st.integers(0, 10_000), max_size=40), st.integers(0, 600))
def test_a_long_document_is_the_list_of_its_blocks(steps: list[int], length: int) -> None:
    editor = Editor()
    expected: list[str] = []
    for start in range(0, length, 200):
        count = min(200, length - start)
        change = editor.edit(
            "insert_blocks", {"path": [start], "blocks": [paragraph("x") for _ in range(count)]}
        )
        expected += change.ids
    for step in steps:
        if step % 3 and expected:
            editor.edit("delete_block", {"blockId": expected.pop(step % len(expected))})
        else:
            at = step % (len(expected) + 1)
            blocks = [paragraph("y")] * (1 + step % 400)
            before = editor.document
            change = editor.edit("insert_blocks", {"path": [at], "blocks": blocks})
            assert change.inverse.apply(editor.document).document == before
            expected[at:at] = change.ids
    assert [block.id for block in editor.document.blocks] == expected
    assert len(editor.document.blocks) == len(expected)
    check(editor.document)
