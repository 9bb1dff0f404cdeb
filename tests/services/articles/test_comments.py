"""Comments on documents: threads, passages, rights, limits, erasure, purge."""

import asyncio

import pytest
from sqlalchemy import func, select

from services.articles.erasure import ArticleErasure
from services.articles.retention import Retention
from services.articles.tables import comments
from services.common.articles import limits
from services.common.storage.database import reading
from tests.services.articles.editor_services import EditorServices
from tests.services.articles.test_sessions import code


async def shared(editors: EditorServices, *users: str) -> list[tuple[object, str]]:
    """Return clients of users with a session each on one document of ada's."""
    group = await editors.groups.create("lab", "user_ada")
    for user in users:
        await editors.groups.add(group, f"user_{user}")
    clients = [editors.client(user) for user in ("ada", *users)]
    article = await clients[0].create(group_id=group)
    return [(client, (await client.open(article.id)).session_id) for client in clients]


async def rows(editors: EditorServices) -> int:
    async with reading(editors.engine) as connection:
        return await connection.scalar(select(func.count()).select_from(comments)) or 0


async def test_a_thread_is_written_resolved_and_deleted(editors: EditorServices) -> None:
    (ada, mine), (bob, his) = await shared(editors, "bob")
    [block_id] = (await ada.insert(mine, "The moon pulls the sea.")).ids
    added = await ada.call(
        "AddComment", session_id=mine, block_id=block_id, quote="moon", text="Sun?"
    )
    editors.clock.now_s += 1
    reply = await bob.call(
        "ReplyToComment", session_id=his, comment_id=added.comment_id, text="Too."
    )
    # A reply to a reply belongs to the thread.
    last = await ada.call(
        "ReplyToComment", session_id=mine, comment_id=reply.comment_id, text="Yes"
    )
    await bob.call("EditComment", session_id=his, comment_id=reply.comment_id, text="As well.")
    listed = await bob.call("ListComments", session_id=his)
    assert (added.revision, listed.revision) == (1, 1)
    [thread] = listed.threads
    assert [
        (one.id, one.text, one.user_id, one.user_name, one.is_own, one.HasField("edited_at_ms"))
        for one in thread.comments
    ] == [
        (added.comment_id, "Sun?", "user_ada", "ada", False, False),
        (reply.comment_id, "As well.", "user_bob", "bob", True, True),
        (last.comment_id, "Yes", "user_ada", "ada", False, False),
    ]
    assert (thread.block_id, thread.quote, thread.offset) == (block_id, "moon", 4)
    assert not (thread.is_orphaned or thread.is_resolved)
    await bob.call("ResolveComment", session_id=his, comment_id=last.comment_id)
    assert not (await ada.call("ListComments", session_id=mine)).threads
    [thread] = (await ada.call("ListComments", session_id=mine, with_resolved=True)).threads
    assert thread.is_resolved
    await ada.call("ResolveComment", session_id=mine, comment_id=added.comment_id, reopens=True)
    await bob.call("DeleteComment", session_id=his, comment_id=reply.comment_id)
    [thread] = (await ada.call("ListComments", session_id=mine)).threads
    assert [one.id for one in thread.comments] == [added.comment_id, last.comment_id]
    await ada.call("DeleteComment", session_id=mine, comment_id=added.comment_id)
    assert await rows(editors) == 0


async def test_a_comment_follows_its_passage_or_is_orphaned(editors: EditorServices) -> None:
    [(ada, session_id)] = await shared(editors)
    one, two = (await ada.insert(session_id, "The moon pulls.", "other")).ids
    await ada.call("AddComment", session_id=session_id, block_id=one, quote="moon", text="a")
    await ada.call("AddComment", session_id=session_id, block_id=two, text="b")

    async def places() -> list[tuple[str, int, bool]]:
        threads = (await ada.call("ListComments", session_id=session_id)).threads
        return [(thread.block_id, thread.offset, thread.is_orphaned) for thread in threads]

    assert await places() == [(one, 4, False), (two, 0, False)]
    await ada.insert(session_id, "before", path=(0,))
    await ada.edit(session_id, "edit_text", edits=[{"old": "The", "new": "Now the bright"}])
    assert await places() == [(one, 15, False), (two, 0, False)]
    await ada.edit(session_id, "edit_text", edits=[{"old": "moon", "new": "sun"}])
    await ada.edit(session_id, "delete_block", block_id=two)
    assert await places() == [(one, 0, True), (two, 0, True)]
    # Comments are no part of the history.
    for _ in range(2):
        await ada.call("ReverseEdit", session_id=session_id)
    assert await places() == [(one, 15, False), (two, 0, False)]
    filtered = await ada.call("ListComments", session_id=session_id, block_id=two)
    assert [thread.block_id for thread in filtered.threads] == [two]


async def test_wrong_comments_are_refused(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ada, mine), (bob, his), (eve, hers) = await shared(editors, "bob", "eve")
    [block_id] = (await ada.insert(mine, "a tide, a tide")).ids
    on = {"session_id": mine, "block_id": block_id}
    added = await bob.call("AddComment", **{**on, "session_id": his}, text="x")
    first = {"session_id": mine, "comment_id": added.comment_id}
    other = await eve.begin()
    for client, method, fields, expected in (
        (ada, "AddComment", {**on, "text": ""}, 40003),
        (ada, "AddComment", {**on, "text": " \n"}, 40003),
        (ada, "AddComment", {**on, "text": "x" * 5_001}, 40003),
        (ada, "AddComment", {**on, "text": "a\0"}, 40003),
        (ada, "AddComment", {**on, "text": "x", "quote": ""}, 40003),
        (ada, "AddComment", {**on, "text": "x", "offset": 1}, 40003),
        (ada, "AddComment", {**on, "text": "x", "quote": "tide"}, 40005),
        (ada, "AddComment", {**on, "text": "x", "quote": "moon"}, 40005),
        (ada, "AddComment", {**on, "text": "x", "block_id": "nowhere"}, 40403),
        (ada, "ListComments", {"session_id": mine, "block_id": "nowhere"}, 40403),
        (ada, "EditComment", {**first, "text": "mine"}, 40301),
        (eve, "DeleteComment", {**first, "session_id": hers}, 40301),
        (ada, "ReplyToComment", {**first, "comment_id": "comment_x", "text": "x"}, 40410),
        (eve, "ReplyToComment", {**first, "session_id": other, "text": "x"}, 40410),
        (eve, "ResolveComment", {**first, "session_id": other}, 40410),
        (eve, "DeleteComment", {**first, "session_id": other}, 40410),
        (eve, "EditComment", {**first, "session_id": other, "text": "x"}, 40410),
        (eve, "ListComments", {"session_id": mine}, 40401),
    ):
        assert await code(client.call(method, **fields)) == expected, (method, fields)
    assert not (await eve.call("ListComments", session_id=other)).threads
    monkeypatch.setattr(limits, "COMMENTS", 2)
    await ada.call("AddComment", **on, quote="tide", offset=2, text="second")
    assert await code(ada.call("ReplyToComment", **first, text="third")) == 40003
    monkeypatch.setattr(limits, "COMMENTS", 9)
    monkeypatch.setattr(limits, "COMMENTS_BYTES", 1_000)
    growing = bob.call("EditComment", **{**first, "session_id": his}, text="x" * 1_000)
    assert await code(growing) == 40003
    # The document's creator may delete any comment.
    await ada.call("DeleteComment", **first)
    assert await rows(editors) == 1


async def test_comments_go_with_their_author_or_document(editors: EditorServices) -> None:
    (ada, mine), (bob, his) = await shared(editors, "bob")
    [block_id] = (await ada.insert(mine, "a")).ids
    answered, alone = [
        (await bob.call("AddComment", session_id=his, block_id=block_id, text=text)).comment_id
        for text in ("answered", "alone")
    ]
    for client, session_id, comment_id in (
        (ada, mine, answered),
        (bob, his, answered),
        (bob, his, alone),
    ):
        await client.call(
            "ReplyToComment", session_id=session_id, comment_id=comment_id, text="reply"
        )
    await bob.edit(his, "append_text", block_id=block_id, text="!", suggest=True)
    usage = editors.owner_usage
    erase = ArticleErasure(editors.engine, Retention(editors.engine, editors.clock, usage), usage)
    counted: dict[str, int] = {}

    async def count(connection: object, kind: str, number: int, size: int = 0) -> None:
        counted[kind] = counted.get(kind, 0) + number

    while await erase("user_bob", count):
        pass
    assert (counted["comments"], counted["suggestions"]) == (4, 1)
    [thread] = (await ada.call("ListComments", session_id=mine)).threads
    assert [(one.text, one.user_id) for one in thread.comments] == [("", ""), ("reply", "user_ada")]
    assert await code(bob.call("ListComments", session_id=his)) == 40401
    while await erase("user_ada", count):
        pass
    assert await rows(editors) == 0


async def test_a_repeated_change_is_made_once(editors: EditorServices) -> None:
    await editors.start()
    [(ada, session_id)] = await shared(editors)
    other = editors.client("ada", 1)
    [block_id] = (await ada.insert(session_id, "The moon")).ids

    async def repeated(method: str, **fields: object) -> object:
        sent = {"session_id": session_id, "request_id": method, **fields}
        first, *others = await asyncio.gather(
            *(client.call(method, **sent) for client in (ada, other) * 2)
        )
        # Whatever has become of the block and of the comment.
        await ada.edit(session_id, "edit_text", edits=[{"old": "The", "new": "Now the"}])
        assert others == [first] * 3 == [await other.call(method, **sent)] * 3, method
        await ada.call("ReverseEdit", session_id=session_id)
        changed = {name: f"{value}!" for name, value in fields.items() if isinstance(value, str)}
        assert await code(ada.call(method, **{**sent, **changed})) == 40905, method
        return first

    added = await repeated("AddComment", block_id=block_id, quote="The moon", text="a")
    first = {"comment_id": added.comment_id}
    reply = await repeated("ReplyToComment", **first, text="b")
    await repeated("EditComment", **first, text="c")
    await repeated("ResolveComment", **first)
    [thread] = (await ada.call("ListComments", session_id=session_id, with_resolved=True)).threads
    assert [(one.id, one.text) for one in thread.comments] == [
        (added.comment_id, "c"),
        (reply.comment_id, "b"),
    ]
    await repeated("DeleteComment", comment_id=reply.comment_id)
    assert await rows(editors) == 1
    made = await ada.insert(session_id, "x", suggest=True)
    await repeated("RejectSuggestion", suggestion_id=made.suggestion_id)
    for request_id in ("", "x" * 65, "é"):
        wrong = {"session_id": session_id, **first, "request_id": request_id}
        assert await code(ada.call("ResolveComment", **wrong)) == 40003
