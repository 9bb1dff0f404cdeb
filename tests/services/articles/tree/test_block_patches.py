"""Patches of documents by blocks: the laws of suggested edits."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from services.articles.tree.block_patches import BlockPatch
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.operations import from_json, to_json
from tests.services.articles.random_edits import edits, random_edits
from tests.services.articles.trees import Editor, as_bytes, bullets, check, item, paragraph
from tests.thoroughness import examples

EXAMPLES = settings(max_examples=examples(25))


def stored(patch: BlockPatch) -> BlockPatch:
    return BlockPatch.from_json(json.loads(json.dumps(patch.to_json())))


@EXAMPLES
@given(st.data())
def test_accepting_is_the_direct_edit(data: st.DataObject) -> None:
    editor = Editor()
    list(random_edits(data, editor, at_most=4))
    before = editor.document
    for _ in range(4):
        kind, body = data.draw(edits(before))
        try:
            after = editor.read(kind, body).apply(before).document
        except EditError:
            continue
        patch = stored(BlockPatch.between(before, after))
        assert patch.is_empty == (after == before)
        change = patch.apply(before)
        assert change.document == after
        check(change.document)
        assert change.operation is not None
        logged = [
            json.loads(json.dumps(to_json(one))) for one in (change.operation, change.inverse)
        ]
        assert from_json(logged[0]).apply(before).document == after
        assert from_json(logged[1]).apply(after).document == before


@EXAMPLES
@given(st.data())
def test_edits_elsewhere_and_a_suggestion_commute(data: st.DataObject) -> None:
    """A patch applies to a later state as if it had come first, or is refused."""
    editor = Editor()
    list(random_edits(data, editor, at_most=3))
    added = editor.insert(paragraph("another's"))
    before = editor.document
    kind, body = data.draw(edits(before))
    try:
        after = editor.read(kind, body).apply(before).document
    except EditError:
        return
    patch = stored(BlockPatch.between(before, after))
    others = editor.read("append_text", {"blockId": added, "text": "!"}).apply(before).document
    written = as_bytes(others)
    touches = added in {*patch.changed, *patch.removed}
    try:
        accepted = patch.apply(others).document
    except EditError as error:
        assert (error.code, error.pointer) == (EditErrorCode.SUGGESTION_STALE, "/suggestionId")
        assert touches and as_bytes(others) == written
        return
    assert not touches
    later = editor.read("append_text", {"blockId": added, "text": "!"}).apply(after).document
    assert accepted == later
    check(accepted)


def suggested(editor: Editor, kind: str, body: dict[str, object]) -> BlockPatch:
    before = editor.document
    return BlockPatch.between(before, editor.read(kind, body).apply(before).document)


def refused(patch: BlockPatch, document: Document) -> str:
    try:
        patch.apply(document)
    except EditError as error:
        assert error.code == EditErrorCode.SUGGESTION_STALE
        return error.problem
    raise AssertionError("applied")


def test_a_place_that_has_changed_is_refused() -> None:
    editor = Editor()
    first = editor.insert(paragraph("first"))
    second = editor.insert(paragraph("second"))
    editor.edit("add_reference", {"reference": {"id": "r", "title": "T"}})
    new = {"path": [1], "blocks": [paragraph("new")]}
    insertion = suggested(editor, "insert_blocks", new)
    deletion = suggested(editor, "delete_block", {"blockId": second})
    update = suggested(editor, "update_reference", {"reference": {"id": "r", "year": "1"}})
    addition = suggested(editor, "add_reference", {"reference": {"id": "s"}})
    style = suggested(editor, "set_article_style", {"style": {"global": {"paperSize": "A5"}}})
    start = editor.insert(paragraph("start"), path=[0])
    texts = [block.leaves[0].text for block in insertion.apply(editor.document).document.blocks]
    assert texts == ["start", "first", "new", "second"]
    editor.edit("append_text", {"blockId": second, "text": "!"})
    assert second in refused(deletion, editor.document)
    editor.edit("delete_block", {"blockId": first})
    assert first in refused(insertion, editor.document)
    editor.edit("update_reference", {"reference": {"id": "r", "title": "U"}})
    assert "reference r" in refused(update, editor.document)
    editor.edit("add_reference", {"reference": {"id": "s", "title": "x"}})
    assert "reference s" in refused(addition, editor.document)
    editor.edit("set_article_style", {"style": {"global": {"paperSize": "A4"}}})
    assert "style" in refused(style, editor.document)
    assert editor.document.element(start) is not None


def test_elements_may_move_between_blocks() -> None:
    editor = Editor()
    lists = [editor.insert(bullets(f"a{number}", f"b{number}")) for number in range(2)]
    moved = editor.children(lists[0])[0]["id"]
    inner = editor.insert(bullets("inner"))
    for body in (
        {"blockId": moved, "path": [1, 1]},
        {"blockId": moved, "path": [2, 0]},
        {"blockId": inner, "path": [0, 0, 1]},
    ):
        patch = stored(suggested(editor, "move_block", body))
        after = editor.read("move_block", body).apply(editor.document).document
        change = patch.apply(editor.document)
        assert change.document == after
        assert change.inverse.apply(after).document == editor.document
        check(change.document)
    editor.insert({"type": "list", "children": [item("x")]})
    order = [block.id for block in editor.document.blocks]
    moves = [
        ("move_block", {"blockId": order[3], "path": [0]}),
        ("move_block", {"blockId": order[0], "path": [4]}),
    ]
    patch = stored(suggested(editor, "apply_edits", {"edits": moves}))
    assert [block.id for block in patch.apply(editor.document).document.blocks] == [
        order[3],
        order[1],
        order[2],
        order[0],
    ]
