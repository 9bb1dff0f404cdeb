"""Changes of a document since a revision, and edits of several blocks at once."""

import asyncio

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.articles.v1 import articles_pb2 as wire
from services.articles import responses
from services.articles.cache import DocumentState
from services.articles.changes import changed_blocks
from services.articles.tree.document import Document
from tests.services.articles.editor_services import Client, EditorServices, paragraph
from tests.services.articles.random_edits import random_edits
from tests.services.articles.trees import Editor
from tests.thoroughness import examples


async def changes(ada: Client, session_id: str, since: int | None = None) -> wire.Changes:
    answer = await ada.call("ReadChanges", session_id=session_id, since=since)
    assert answer.HasField("changes")
    return answer.changes


async def test_nothing_but_the_revision_while_nothing_changes(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "a")
    answer = await ada.call("ReadChanges", session_id=session_id, since=1)
    assert answer == wire.ReadChangesResponse(revision=1)


async def test_changes_name_new_and_edited_blocks_alone(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    first, second, third = (await ada.insert(session_id, "a", "b", "c")).ids
    everything = await changes(ada, session_id)
    assert (everything.order, everything.changed) == ([first, second, third],) * 2
    await ada.edit(session_id, "append_text", block_id=second, text="!")
    [fourth] = (await ada.insert(session_id, "d")).ids
    await ada.edit(session_id, "delete_block", block_id=first)
    difference = await changes(ada, session_id, 1)
    assert (difference.order, difference.changed) == ([fourth, second, third], [fourth, second])
    assert (await changes(ada, session_id, 2)).changed == [fourth]


async def test_a_wait_ends_with_an_edit_of_another_process(editors: EditorServices) -> None:
    await editors.start()
    here, there = editors.client(), editors.client(process=1)
    session_id = await here.begin()
    [first] = (await here.insert(session_id, "a")).ids
    asked = {"session_id": session_id, "since": 1, "wait_seconds": 30}
    waiting = asyncio.create_task(here.call("ReadChanges", **asked))
    await here.call("ReadOutline", session_id=session_id)
    await there.edit(session_id, "append_text", block_id=first, text="!")
    assert list((await waiting).changes.changed) == [first]


async def test_edits_of_another_process_are_changes_too(editors: EditorServices) -> None:
    await editors.start()
    here, there = editors.client(), editors.client(process=1)
    session_id = await here.begin()
    first, _ = (await here.insert(session_id, "a", "b")).ids
    assert len((await changes(here, session_id)).order) == 2
    await there.edit(session_id, "append_text", block_id=first, text="!")
    assert (await changes(here, session_id, 1)).changed == [first]


async def test_renumbered_citations_are_changes(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    _, second, third = (await ada.insert(session_id, "a", "b", "c")).ids
    for name in ("x", "y"):
        await ada.edit(session_id, "add_reference", reference={"id": name})
    await ada.edit(session_id, "cite", block_id=third, reference_id="x")
    await ada.edit(session_id, "cite", block_id=second, reference_id="y")
    difference = await changes(ada, session_id, 4)
    assert (difference.cited, difference.changed) == (["y", "x"], [second, third])


async def test_the_articles_style_changes_every_block(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    ids = (await ada.insert(session_id, "a", "b")).ids
    await ada.edit(session_id, "set_article_style", style={"paragraph": {"indent": True}})
    difference = await changes(ada, session_id, 1)
    assert difference.changed == ids
    assert orjson.loads(difference.style) == {"paragraph": {"indent": True}}


async def test_a_revision_too_far_back_or_ahead_means_everything(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    first, second = (await ada.insert(session_id, "a", "b")).ids
    for _ in range(64):
        await ada.edit(session_id, "append_text", block_id=second, text="!")
    assert (await changes(ada, session_id, 1)).changed == [second]
    await ada.edit(session_id, "append_text", block_id=second, text="!")
    assert (await changes(ada, session_id, 1)).changed == [first, second]
    assert (await changes(ada, session_id, 1 << 40)).changed == [first, second]


async def test_large_deletions_are_not_undone_to_be_compared(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    inserted = await ada.edit(
        session_id,
        "insert_blocks",
        path=[0],
        blocks=[paragraph("a"), *[{"type": "code", "code": "x" * 200_000}] * 6],
    )
    for block_id in inserted.ids[1:]:
        await ada.edit(session_id, "delete_block", block_id=block_id)
    assert (await changes(ada, session_id, 1)).changed == inserted.ids[:1]
    assert (await changes(ada, session_id, 5)).changed == []


async def test_several_blocks_are_read_as_each_of_them_is(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    first, second = (await ada.insert(session_id, "a", "b")).ids
    read = await ada.call("ReadBlocks", session_id=session_id, block_ids=[second, "gone", first])
    assert list(read.blocks) == [
        await ada.call("ReadBlock", session_id=session_id, block_id=block_id)
        for block_id in (second, first)
    ]
    assert read.revision == 1


def reads(document: Document) -> dict[str, wire.ReadBlockResponse]:
    """Return what reading each block answers, but for its place."""
    ids = [block.id for block in document.blocks]
    answer = responses.read_blocks(DocumentState(document, 0), ids)
    for block in answer.blocks:
        block.ClearField("path")
    return dict(zip(ids, answer.blocks, strict=True))


@settings(max_examples=examples(25))
@given(st.data())
def test_every_block_that_reads_otherwise_is_named(data: st.DataObject) -> None:
    editor = Editor()
    made = list(random_edits(data, editor))
    undone = data.draw(st.integers(0, len(made)))
    before = editor.document
    for change in reversed(made[len(made) - undone :]):
        before = change.inverse.apply(before).document
    earlier, now = reads(before), reads(editor.document)
    differing = {block_id for block_id, read in now.items() if earlier.get(block_id) != read}
    named = changed_blocks(before, editor.document)
    assert differing <= set(named)
    assert named == [block_id for block_id in now if block_id in named]
