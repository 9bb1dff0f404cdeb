"""The history of documents: undoing and redoing, comparing and restoring revisions."""

import pytest

from services.articles.reversible import EntryHead, Reversible, reversible
from services.common.errors import GatewayError
from tests.grid import each_row
from tests.services.articles.editor_services import Client, EditorServices, code_of, paragraph
from tests.services.articles.test_sessions import code


async def reverse(client: Client, session: str, *, redo: bool = False) -> int:
    answer = await client.call("ReverseEdit", session_id=session, redo=redo)
    revision: int = answer.revision
    return revision


async def edit_in_many_ways(client: Client, session: str) -> list[str]:
    """Edit a document in each way; return its text after each edit, beginning with nothing."""
    texts = [""]

    async def edit(kind: str, **fields: object) -> list[str]:
        ids = list((await client.edit(session, kind, **fields)).ids)
        texts.append((await client.read(session)).text)
        return ids

    one, two = await edit(
        "insert_blocks", path=[0], blocks=[paragraph("one"), paragraph("two moons")]
    )
    await edit("append_text", block_id=one, text=" more")
    await edit("add_reference", reference={"id": "r", "title": "t"})
    await edit("cite", leaf_path=[1, 0], reference_id="r")
    await edit("insert_blocks", path=[0], blocks=[paragraph("first")])
    await edit("set_leaf_style", leaf_path=[1, 0], marks={"bold": True})
    await edit("replace_text", block_id=two, fields={"children": "three moons"})
    await edit("delete_block", block_id=one)
    await edit("set_article_style", style={"global": {"paperSize": "A4"}})
    await edit("delete_reference", reference_id="r")
    return texts


async def test_undoing_all_leaves_nothing_and_redoing_brings_it_back(
    editors: EditorServices,
) -> None:
    ada = editors.client()
    session = await ada.begin()
    texts = await edit_in_many_ways(ada, session)
    edits = len(texts) - 1
    for expected in reversed(texts[:-1]):
        await reverse(ada, session)
        assert (await ada.read(session)).text == expected
    empty = await ada.read(session)
    assert (empty.text, empty.style, empty.references) == ("", b"{}", b"[]")
    with pytest.raises(GatewayError) as raised:
        await reverse(ada, session)
    assert code_of(raised) == 40904
    for expected in texts[1:]:
        await reverse(ada, session, redo=True)
        assert (await ada.read(session)).text == expected
    with pytest.raises(GatewayError) as raised:
        await reverse(ada, session, redo=True)
    assert code_of(raised) == 40904
    assert (await ada.read(session)).revision == 3 * edits


async def test_each_revision_can_be_restored(editors: EditorServices) -> None:
    ada = editors.client()
    session = await ada.begin()
    texts = await edit_in_many_ways(ada, session)
    for revision in (7, 0, 4, len(texts) - 1):
        await ada.call("RestoreRevision", session_id=session, revision=revision)
        assert (await ada.read(session)).text == texts[revision]
    restored = await ada.call("RestoreRevision", session_id=session, revision=4)
    again = await ada.call("RestoreRevision", session_id=session, revision=restored.revision)
    assert again.revision == restored.revision
    # Restoring is an edit that can be undone.
    await reverse(ada, session)
    assert (await ada.read(session)).text == texts[-1]
    with pytest.raises(GatewayError) as raised:
        await ada.call("RestoreRevision", session_id=session, revision=99)
    assert code_of(raised) == 40408


async def test_each_undoes_their_own_edits(editors: EditorServices) -> None:
    group = await editors.groups.create("g", "user_ada")
    await editors.groups.add(group, "user_bob")
    ada, bob = editors.client("ada"), editors.client("bob")
    article = await ada.create(group_id=group)
    hers, his = [(await one.open(article.id)).session_id for one in (ada, bob)]
    (mine,) = (await ada.insert(hers, "ada's")).ids
    await bob.insert(his, "bob's")
    await ada.edit(hers, "append_text", block_id=mine, text="!")
    await reverse(bob, his)
    assert await ada.texts(hers) == ["ada's!"]
    # Another's edit of the same block is not undone with hers.
    await bob.edit(his, "append_text", block_id=mine, text="?")
    with pytest.raises(GatewayError) as raised:
        await reverse(ada, hers)
    assert code_of(raised) == 40903
    assert await ada.texts(hers) == ["ada's!?"]
    await reverse(bob, his)
    await reverse(ada, hers)
    assert await ada.texts(hers) == ["ada's"]
    page = await bob.call("ListHistory", session_id=his, limit=3)
    shown = [(one.operation, one.is_own, one.reversed_revision) for one in page.entries]
    assert shown == [("undo", False, 3), ("undo", True, 5), ("append", True, 0)]
    older = await bob.call("ListHistory", session_id=his, before=page.entries[-1].revision)
    assert [one.revision for one in older.entries] == [4, 3, 2, 1]
    assert (page.has_more, older.has_more) == (True, False)


async def test_revisions_are_compared_block_by_block(editors: EditorServices) -> None:
    ada = editors.client()
    session = await ada.begin()
    kept, changed, removed = (await ada.insert(session, "kept", "changed", "removed")).ids
    await ada.edit(session, "append_text", block_id=changed, text="!")
    await ada.edit(session, "append_text", block_id=kept, text="!")
    await ada.edit(session, "replace_text", block_id=kept, fields={"children": "kept"})
    await ada.edit(session, "delete_block", block_id=removed)
    (added,) = (await ada.insert(session, "added")).ids

    async def compare(first: int, last: int | None = None) -> list[tuple[str, str, str]]:
        answer = await ada.call("ReadDifferences", session_id=session, first=first, last=last)
        assert not answer.has_more
        return [(one.block_id, one.before, one.after) for one in answer.blocks]

    assert await compare(1) == [
        (added, "", "added"),
        (changed, "changed", "changed!"),
        (removed, "removed", ""),
    ]
    assert await compare(1, 2) == [(changed, "changed", "changed!")]
    assert await compare(6) == []
    for first, last in ((7, None), (1, 7)):
        with pytest.raises(GatewayError) as raised:
            await compare(first, last)
        assert code_of(raised) == 40408


async def test_each_client_undoes_its_own_edits(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()

    async def opened(client_id: str | None) -> str:
        answer = await ada.call("CreateSession", article_id=article.id, client_id=client_id)
        return str(answer.session_id)

    one, two, unnamed = [await opened(client_id) for client_id in ("one", "two", None)]
    for session, word in ((unnamed, "mine"), (one, "first"), (two, "second")):
        await ada.insert(session, word)
    await reverse(ada, one)
    assert await ada.texts(one) == ["second", "mine"]
    assert await code(reverse(ada, one)) == 40904
    await reverse(ada, unnamed)
    # In another session, it is the same client.
    await ada.call("DestroySession", session_id=one)
    one = await opened("one")
    assert await code(reverse(ada, two, redo=True)) == 40904
    await reverse(ada, one, redo=True)
    assert sorted(await ada.texts(one)) == ["first", "second"]


EDIT, UNDO, REDO = "insert", "undo", "redo"


@each_row(
    ("entries", "expected"),
    [
        ([], (0, 0)),
        ([(1, EDIT, 0), (2, EDIT, 0)], (2, 0)),
        ([(1, EDIT, 0), (2, EDIT, 0), (3, UNDO, 2)], (1, 3)),
        ([(1, EDIT, 0), (2, UNDO, 1)], (0, 2)),
        ([(1, EDIT, 0), (2, EDIT, 0), (3, UNDO, 2), (4, UNDO, 1)], (0, 4)),
        ([(1, EDIT, 0), (2, UNDO, 1), (3, REDO, 2)], (3, 0)),
        ([(1, EDIT, 0), (2, UNDO, 1), (3, EDIT, 0)], (3, 0)),
    ],
)
def test_what_can_be_undone_follows_from_the_log(
    entries: list[tuple[int, str, int]], expected: tuple[int, int]
) -> None:
    heads = [EntryHead(*entry) for entry in entries]
    assert reversible(heads) == Reversible(*expected)
