"""Sessions: one of each user and document, their end, and what is told about them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import func, select

from services.articles.tables import sessions
from services.common.errors import GatewayError
from services.common.storage.database import reading
from tests.services.articles.editor_services import Client, EditorServices, code_of

LENGTH_S = 600
DAY_S = 86_400


async def code(call: Awaitable[object]) -> int | None:
    """Return the code that a call is refused with."""
    with pytest.raises(GatewayError) as raised:
        await call
    return code_of(raised)


async def test_a_document_is_opened_with_its_length_and_revision(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    first = await ada.open(article.id)
    assert (first.block_count, first.revision, first.reused) == (0, 0, False)
    await ada.insert(first.session_id, "a", "b")
    again = await ada.open(article.id)
    assert (again.block_count, again.revision, again.reused) == (2, 1, True)
    assert again.session_id == first.session_id


async def test_two_keys_of_one_user_share_the_session(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    opened = await ada.open(article.id)
    other_key = editors.users.key("ada")
    other = Client(editors.processes[0].stub, other_key)
    assert (await other.open(article.id)).session_id == opened.session_id
    await other.insert(opened.session_id, "a")


async def test_each_named_client_of_a_user_has_a_session(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    opened = [
        (await ada.call("CreateSession", article_id=article.id, client_id=client_id))
        for client_id in ("one", "two", None, "one")
    ]
    assert [session.reused for session in opened] == [False, False, False, True]
    one, two, shared, again = [session.session_id for session in opened]
    assert len({one, two, shared}) == 3 and again == one
    await ada.call("DestroySession", session_id=one)
    await ada.insert(two, "kept")
    assert await ada.texts(shared) == ["kept"]
    for client_id in ("", "x" * 65, "é", "a\nb"):
        opening = ada.call("CreateSession", article_id=article.id, client_id=client_id)
        assert await code(opening) == 40003, client_id


async def test_concurrent_opens_share_one_session(editors: EditorServices) -> None:
    await editors.start()
    article = await editors.client().create()
    opened = await asyncio.gather(
        *(editors.client("ada", number % 2).open(article.id) for number in range(6))
    )
    assert len({one.session_id for one in opened}) == 1
    assert sorted(one.reused for one in opened) == [False] + [True] * 5


async def test_two_users_have_sessions_of_their_own(editors: EditorServices) -> None:
    group = await editors.groups.create("lab", "user_ada")
    await editors.groups.add(group, "user_bob")
    ada, bob = editors.client("ada"), editors.client("bob")
    article = await ada.create(group_id=group)
    first, second = await ada.open(article.id), await bob.open(article.id)
    assert not second.reused
    assert first.session_id != second.session_id


Call = Callable[[Client, str], Awaitable[object]]

# Every kind of call that names a session, among them some that are refused.
CALLS: dict[str, Call] = {
    "keep alive": lambda ada, session_id: ada.call("KeepSessionAlive", session_id=session_id),
    "read": lambda ada, session_id: ada.read(session_id),
    "insert": lambda ada, session_id: ada.insert(session_id, "x"),
    "refused by the tree": lambda ada, session_id: ada.insert(session_id, "x", path=(9,)),
    "refused unread": lambda ada, session_id: ada.edit(
        session_id, "insert_blocks", path=(0,), blocks=[{"type": "poem"}]
    ),
    "no json": lambda ada, session_id: ada.edit(
        session_id, "insert_blocks", path=(0,), blocks=b"{"
    ),
    "stale": lambda ada, session_id: ada.insert(session_id, "x", if_revision=99),
    "no such block": lambda ada, session_id: ada.call(
        "ReadBlock", session_id=session_id, block_id="none"
    ),
    "no file of theirs": lambda ada, session_id: ada.edit(
        session_id,
        "insert_blocks",
        path=(0,),
        blocks=[{"type": "image", "image": [{"fileId": "file-x"}]}],
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_every_call_moves_the_expiry_of_its_session(
    editors: EditorServices, call: Call
) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    editors.clock.now_s += LENGTH_S - 1
    try:
        await call(ada, session_id)
    except GatewayError as error:
        assert error.article_code not in (40401, 41001)
    editors.clock.now_s += LENGTH_S - 1
    await ada.read(session_id)
    editors.clock.now_s += LENGTH_S
    assert await code(call(ada, session_id)) == 41001


async def test_opening_again_moves_the_expiry(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    for _ in range(2):
        editors.clock.now_s += LENGTH_S - 1
        assert (await ada.open(article.id)).session_id == session_id


async def test_an_expired_session_stays_so_and_another_is_opened(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    old = (await ada.open(article.id)).session_id
    await ada.insert(old, "kept")
    editors.clock.now_s += LENGTH_S
    assert await code(ada.insert(old, "lost")) == 41001
    new = await ada.open(article.id)
    assert not new.reused
    assert new.session_id != old
    assert await ada.texts(new.session_id) == ["kept"]
    assert await code(ada.read(old)) == 41001
    assert await code(ada.call("DestroySession", session_id=old)) == 41001


async def test_an_expired_session_is_remembered_for_a_day(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    sweeper = editors.sweeper()
    editors.clock.now_s += LENGTH_S + DAY_S - 1
    await sweeper.sweep()
    assert await code(ada.read(session_id)) == 41001
    editors.clock.now_s += 1
    await sweeper.sweep()
    assert await code(ada.read(session_id)) == 40401
    async with reading(editors.engine) as connection:
        assert await connection.scalar(select(func.count()).select_from(sessions)) == 0


async def test_a_destroyed_session_is_unknown_and_nothing_is_lost(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    await ada.insert(session_id, "kept")
    await ada.call("DestroySession", session_id=session_id)
    assert await code(ada.read(session_id)) == 40401
    assert await code(ada.call("DestroySession", session_id=session_id)) == 40401
    again = await ada.open(article.id)
    assert not again.reused
    assert await ada.texts(again.session_id) == ["kept"]


async def test_a_foreign_session_is_unknown_and_unchanged(editors: EditorServices) -> None:
    ada, eve = editors.client("ada"), editors.client("eve")
    session_id = await ada.begin()
    editors.clock.now_s += LENGTH_S - 1
    errors = []
    for named in (session_id, "session_unknown", ""):
        for method in ("ReadArticle", "DestroySession"):
            with pytest.raises(GatewayError) as raised:
                await eve.call(method, session_id=named)
            errors.append((raised.value.article_code, raised.value.message, raised.value.param))
    assert set(errors) == {(40401, errors[0][1], "/sessionId")}
    # What eve did has not kept it alive.
    editors.clock.now_s += 1
    assert await code(ada.read(session_id)) == 41001
    assert await code(eve.read(session_id)) == 40401


async def test_a_foreign_session_cannot_be_destroyed(editors: EditorServices) -> None:
    ada, eve = editors.client("ada"), editors.client("eve")
    session_id = await ada.begin()
    assert await code(eve.call("DestroySession", session_id=session_id)) == 40401
    await ada.read(session_id)


async def test_a_session_outlives_the_process_that_made_it(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "a")
    await editors.start()
    assert await editors.client("ada", 1).texts(session_id) == ["a"]


async def test_the_sessions_of_a_deleted_document_are_over(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    await ada.call("DeleteArticle", article_id=article.id)
    assert await code(ada.read(session_id)) == 41002
    assert await code(ada.insert(session_id, "x")) == 41002
    assert await code(ada.call("DestroySession", session_id=session_id)) == 41002
    assert await code(ada.open(article.id)) == 40402


async def test_leaving_the_group_ends_access_by_a_session(editors: EditorServices) -> None:
    group = await editors.groups.create("lab", "user_ada")
    await editors.groups.add(group, "user_bob")
    bob = editors.client("bob")
    session_id = (await bob.open((await bob.create(group_id=group)).id)).session_id
    await editors.groups.remove(group, "user_bob")
    assert await code(bob.insert(session_id, "x")) == 40402
    assert await code(bob.read(session_id)) == 40402


@pytest.mark.parametrize("session_id", ["", "\0", "session_\0", "x" * 1_000_000, "\u4e2d"])
async def test_a_malformed_session_id_is_unknown(editors: EditorServices, session_id: str) -> None:
    ada = editors.client()
    assert await code(ada.call("ReadArticle", session_id=session_id)) == 40401
    assert await code(ada.call("DestroySession", session_id=session_id)) == 40401
