"""Requests that are sent again: they are answered as the first time, and applied once."""

import asyncio
from typing import Any

import orjson
import pytest
from sqlalchemy import event

from gateway.articles.v1.edits_pb2 import AppendText, DeleteBlock, Edit, InsertBlocks
from services.articles import repeats
from services.common.errors import GatewayError
from services.common.storage.database import sync_engines
from tests.services.articles.editor_services import Client, EditorServices, code_of, paragraph


def insertion(*texts: str) -> Edit:
    blocks = orjson.dumps([paragraph(text) for text in texts])
    return Edit(insert_blocks=InsertBlocks(path=[0], blocks=blocks))


async def send(client: Client, session: str, edit: Edit, request_id: str, **fields: Any) -> Any:
    return await client.call(
        "ApplyEdit", session_id=session, edit=edit, request_id=request_id, **fields
    )


async def test_a_repeated_edit_is_answered_as_at_first(editors: EditorServices) -> None:
    await editors.start()
    ada, other = editors.client("ada", 0), editors.client("ada", 1)
    article = await ada.create()
    session = (await ada.open(article.id)).session_id
    first = await send(ada, session, insertion("a", "b"), "r", if_revision=0)
    await ada.edit(session, "delete_block", block_id=first.ids[0])
    await ada.call("DestroySession", session_id=session)
    # By another process, in another session, at a revision at which it would be refused.
    again = (await other.open(article.id)).session_id
    assert await send(other, again, insertion("a", "b"), "r", if_revision=0) == first
    assert await other.texts(again) == ["b"]
    deletion = Edit(delete_block=DeleteBlock(block_id=first.ids[1]))
    deleted = await send(other, again, deletion, "d", if_block_revision=1)
    for _ in range(70):  # more than are undone for a condition
        await other.insert(again, "c")
    assert await send(ada, again, deletion, "d", if_block_revision=1) == deleted


async def test_an_edit_that_is_sent_at_once_is_applied_once(editors: EditorServices) -> None:
    await editors.start()
    clients = [editors.client("ada", 0), editors.client("ada", 1)]
    session = await clients[0].begin()
    calls = [send(one, session, insertion("a"), "r") for one in clients for _ in range(5)]
    answers = await asyncio.gather(*calls)
    assert all(answer == answers[0] for answer in answers)
    assert await clients[0].texts(session) == ["a"]


async def test_another_request_with_the_same_id_is_refused(editors: EditorServices) -> None:
    ada = editors.client()
    session = await ada.begin()
    first = await send(ada, session, insertion("a"), "r")
    append = Edit(append_text=AppendText(block_id=first.ids[0], text=b'"b"'))
    for edit, fields in ((insertion("b"), {}), (append, {}), (insertion("a"), {"if_revision": 1})):
        with pytest.raises(GatewayError) as raised:
            await send(ada, session, edit, "r", **fields)
        assert code_of(raised) == 40905
    with pytest.raises(GatewayError) as raised:
        await ada.call("ReverseEdit", session_id=session, request_id="r")
    assert code_of(raised) == 40905
    for wrong in ("", "x" * 65, "\n", "é"):
        with pytest.raises(GatewayError) as raised:
            await send(ada, session, insertion("b"), wrong)
        assert (code_of(raised), raised.value.param) == (40003, "/requestId")
    assert await ada.texts(session) == ["a"]


async def test_users_and_documents_have_ids_of_their_own(editors: EditorServices) -> None:
    group = await editors.groups.create("g", "user_ada")
    await editors.groups.add(group, "user_bob")
    article = await editors.client().create(group_id=group)
    for user in ("ada", "bob"):
        client = editors.client(user)
        session = (await client.open(article.id)).session_id
        await send(client, session, insertion(user), "r")
    assert await client.texts(session) == ["bob", "ada"]
    another = await client.begin()
    await send(client, another, insertion("x"), "r")
    assert await client.texts(another) == ["x"]


async def test_reversals_and_restorations_can_be_repeated(editors: EditorServices) -> None:
    ada = editors.client()
    session = await ada.begin()
    for text in ("a", "b"):
        await ada.insert(session, text)
    for method, fields, texts in (
        ("ReverseEdit", {}, ["a"]),
        ("ReverseEdit", {"redo": True}, ["b", "a"]),
        ("RestoreRevision", {"revision": 1}, ["a"]),
    ):
        request_id = f"{method}{fields}"
        calls = [
            await ada.call(method, session_id=session, request_id=request_id, **fields)
            for _ in range(2)
        ]
        assert calls[0] == calls[1]
        assert await ada.texts(session) == texts


async def test_refused_edits_and_dry_runs_are_not_remembered(editors: EditorServices) -> None:
    ada = editors.client()
    session = await ada.begin()
    with pytest.raises(GatewayError):
        await send(ada, session, insertion("a"), "r", if_revision=9)
    await send(ada, session, insertion("b"), "r", dry_run=True)
    await send(ada, session, insertion("c"), "r")
    assert await ada.texts(session) == ["c"]


async def test_requests_are_forgotten_after_a_day(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()

    async def insert_again() -> list[str]:
        session = (await ada.open(article.id)).session_id
        await send(ada, session, insertion("a"), "r")
        return await ada.texts(session)

    await insert_again()
    for seconds, texts in ((86_300, ["a"]), (200, ["a", "a"])):
        editors.clock.now_s += seconds
        await editors.sweeper().sweep()
        assert await insert_again() == texts


async def test_the_newest_requests_are_remembered(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "REMEMBERED", 3)
    ada = editors.client()
    session = await ada.begin()
    for text in "abcd":
        editors.clock.now_s += 1
        await send(ada, session, insertion(text), text)
    await send(ada, session, insertion("b"), "b")
    assert await ada.texts(session) == ["d", "c", "b", "a"]
    await send(ada, session, insertion("a"), "a")
    assert await ada.texts(session) == ["a", "d", "c", "b", "a"]


async def test_others_pay_no_statement_for_it(editors: EditorServices) -> None:
    ada = editors.client()
    session = await ada.begin()
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    for engine in sync_engines(editors.engine):
        event.listen(engine, "before_cursor_execute", note)
    await ada.insert(session, "a")
    assert statements
    assert not [one for one in statements if "requests" in one or "article_files" in one]
