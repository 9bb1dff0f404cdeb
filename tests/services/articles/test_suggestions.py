"""Suggested edits: pending, accepted, rejected, refused when their place has changed."""

import asyncio
import json

import pytest
from sqlalchemy import func, select

from services.articles.edit_calls import EditConditions
from services.articles.repeats import AnsweredRequests
from services.articles.sessions import SessionRef
from services.articles.suggestions import AcceptSuggestion, SuggestionRepository
from services.articles.tables import suggestions
from services.common.articles import limits
from services.common.errors import GatewayError
from services.common.storage.database import reading
from tests.services.articles.editor_services import EditorServices, stored_and_replayed
from tests.services.articles.test_comments import shared
from tests.services.articles.test_sessions import code


async def count(editors: EditorServices) -> int:
    async with reading(editors.engine) as connection:
        return await connection.scalar(select(func.count()).select_from(suggestions)) or 0


async def test_a_suggestion_is_accepted_as_an_edit(editors: EditorServices) -> None:
    (ada, mine), (bob, his) = await shared(editors, "bob")
    [first, _] = (await ada.insert(mine, "first", "last")).ids
    suggested = await bob.insert(his, "new", path=(1,), suggest=True)
    assert (suggested.revision, suggested.suggestion_id[:11]) == (1, "suggestion_")
    assert await ada.texts(mine) == ["first", "last"]
    await ada.insert(mine, "start", path=(0,))
    page = await ada.call("ListSuggestions", session_id=mine)
    [one] = page.suggestions
    assert (one.id, one.user_name, one.is_own, one.edit) == (
        suggested.suggestion_id,
        "bob",
        False,
        "insert_blocks",
    )
    assert (one.revision, page.revision, one.is_stale, page.has_more) == (1, 2, False, False)
    [block] = one.blocks
    assert (block.block_id, block.after, block.after_id) == (suggested.ids[0], "new", first)
    assert not block.HasField("before")
    accepted = await ada.call(
        "AcceptSuggestion", session_id=mine, suggestion_id=one.id, request_id="q"
    )
    again = await ada.call(
        "AcceptSuggestion", session_id=mine, suggestion_id=one.id, request_id="q"
    )
    assert accepted.revision == again.revision == 3
    assert await bob.texts(his) == ["start", "first", "new", "last"]
    accepting = ada.call("AcceptSuggestion", session_id=mine, suggestion_id=one.id)
    assert await code(accepting) == 40411
    await ada.call("ReverseEdit", session_id=mine)
    assert await ada.texts(mine) == ["start", "first", "last"]
    [article] = (await ada.groups())[1].articles
    stored, replayed = await stored_and_replayed(editors.engine, article.id)
    assert stored == replayed and await count(editors) == 0


async def test_rejecting_leaves_every_byte(editors: EditorServices) -> None:
    (ada, mine), (bob, his) = await shared(editors, "bob")
    [block_id] = (await ada.insert(mine, "text")).ids
    before = await ada.read(mine)
    suggested = await bob.edit(his, "delete_block", block_id=block_id, suggest=True)
    await bob.call("RejectSuggestion", session_id=his, suggestion_id=suggested.suggestion_id)
    assert await ada.read(mine) == before
    rejecting = {"session_id": mine, "suggestion_id": suggested.suggestion_id}
    assert await code(ada.call("RejectSuggestion", **rejecting)) == 40411
    assert await code(ada.call("AcceptSuggestion", **rejecting)) == 40411


async def test_a_changed_place_is_refused_and_the_suggestion_stays(
    editors: EditorServices,
) -> None:
    [(ada, session_id)] = await shared(editors)
    [block_id] = (await ada.insert(session_id, "one two three")).ids
    replacing = {"block_id": block_id, "fields": {"children": "four"}, "suggest": True}
    stale = await ada.edit(session_id, "replace_text", **replacing)
    edits = [[{"old": "one", "new": "1"}], [{"old": "three", "new": "3"}]]
    texts = [
        (await ada.edit(session_id, "edit_text", edits=edit, suggest=True)).suggestion_id
        for edit in edits
    ]
    # Texts are found wherever they are in the block.
    for suggestion_id in texts:
        await ada.call("AcceptSuggestion", session_id=session_id, suggestion_id=suggestion_id)
    assert await ada.texts(session_id) == ["1 two 3"]
    gone = await ada.edit(session_id, "edit_text", edits=[{"old": "two", "new": "2"}], suggest=True)
    await ada.edit(session_id, "edit_text", edits=[{"old": "two", "new": "II"}])
    await ada.insert(session_id, "another two")
    before = await ada.read(session_id)
    for suggestion_id in (stale.suggestion_id, gone.suggestion_id):
        accepting = ada.call("AcceptSuggestion", session_id=session_id, suggestion_id=suggestion_id)
        assert await code(accepting) == 40907
    assert await ada.read(session_id) == before
    page = (await ada.call("ListSuggestions", session_id=session_id)).suggestions
    assert [(one.id, one.is_stale) for one in page] == [
        (stale.suggestion_id, True),
        (gone.suggestion_id, True),
    ]
    assert [(block.before, block.after) for block in page[0].blocks] == [("1 II 3", "four")]


async def test_one_of_two_acceptances_is_applied(editors: EditorServices) -> None:
    """Two processes accept an insertion at once, which changes no block."""
    await editors.start()
    (ada, mine), _ = await shared(editors, "bob")
    suggested = await ada.insert(mine, "new", suggest=True)
    other = editors.client("ada", 1)
    accepting = {"session_id": mine, "suggestion_id": suggested.suggestion_id}
    results = await asyncio.gather(
        *(client.call("AcceptSuggestion", **accepting) for client in (ada, other) * 2),
        return_exceptions=True,
    )
    codes = [error.article_code for error in results if isinstance(error, GatewayError)]
    assert codes == [40411] * 3
    assert await ada.texts(mine) == ["new"]


async def test_a_repeated_suggestion_is_stored_once(editors: EditorServices) -> None:
    [(ada, session_id)] = await shared(editors)
    made = [await ada.insert(session_id, "a", suggest=True, request_id="q") for _ in range(2)]
    assert made[0].suggestion_id == made[1].suggestion_id
    assert [*made[0].ids] == [*made[1].ids]
    assert await code(ada.insert(session_id, "b", suggest=True, request_id="q")) == 40905
    assert await code(ada.insert(session_id, "a", request_id="q")) == 40905
    assert await count(editors) == 1


async def test_wrong_suggestions_are_refused(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ada, mine), (bob, his) = await shared(editors, "bob")
    [block_id] = (await ada.insert(mine, "a")).ids
    for fields, expected in (
        ({"block_id": "nowhere"}, 40403),
        ({"block_id": block_id, "if_revision": 0}, 40901),
        ({"block_id": block_id, "dry_run": True}, 40004),
    ):
        suggesting = ada.edit(mine, "delete_block", **fields, suggest=True)
        assert await code(suggesting) == expected, fields
    nothing = ada.edit(mine, "append_text", block_id=block_id, text="", suggest=True)
    assert await code(nothing) == 40003
    for limit in (0, 51):
        assert await code(ada.call("ListSuggestions", session_id=mine, limit=limit)) == 40003
    made = await bob.insert(his, "b", suggest=True)
    other = await bob.begin()
    for method in ("AcceptSuggestion", "RejectSuggestion"):
        elsewhere = bob.call(method, session_id=other, suggestion_id=made.suggestion_id)
        assert await code(elsewhere) == 40411
    stale = ada.call(
        "AcceptSuggestion", session_id=mine, suggestion_id=made.suggestion_id, if_revision=0
    )
    assert await code(stale) == 40901
    monkeypatch.setattr(limits, "SUGGESTIONS", 2)
    await ada.insert(mine, "c", suggest=True)
    assert await code(ada.insert(mine, "d", suggest=True)) == 40003
    page = await ada.call("ListSuggestions", session_id=mine, limit=1)
    assert page.has_more and [one.id for one in page.suggestions] == [made.suggestion_id]
    after = await ada.call("ListSuggestions", session_id=mine, after_id=made.suggestion_id)
    assert len(after.suggestions) == 1 and not after.has_more
    monkeypatch.setattr(limits, "SUGGESTIONS", 9)
    monkeypatch.setattr(limits, "SUGGESTIONS_BYTES", 1_000)
    assert await code(ada.insert(mine, "x" * 1_000, suggest=True)) == 40003
    assert await count(editors) == 2 and json.loads((await ada.read(mine)).references) == []


async def test_two_acceptances_in_one_transaction_are_one(editors: EditorServices) -> None:
    [(ada, session_id)] = await shared(editors)
    made = await ada.insert(session_id, "new", suggest=True)
    [article] = (await ada.groups())[1].articles
    requests = AnsweredRequests(editors.engine, editors.clock)
    stored = SuggestionRepository(editors.engine, editors.clock, requests)
    suggestion = await stored.get(article.id, made.suggestion_id)
    accepting = AcceptSuggestion(suggestion, lambda: "unused")
    committer = editors.processes[0].committer
    results = await asyncio.gather(
        *(
            committer.edit(
                SessionRef(session_id, "user_ada"),
                accepting,
                EditConditions(suggestion_id=suggestion.id),
            )
            for _ in range(2)
        ),
        return_exceptions=True,
    )
    assert [getattr(result, "article_code", None) for result in results] == [None, 40411]
    assert await ada.texts(session_id) == ["new"]
