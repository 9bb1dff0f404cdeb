"""What documents may take up by plan, and how deleting frees it: on both engines."""

import asyncio

import pytest
from sqlalchemy import func, select

from gateway.errors.v1 import errors_pb2
from services.articles import snapshots
from services.articles.tables import articles, operations
from services.articles.usage import BLOCK, DOCUMENT_BYTES, OPERATION_BYTES, Account
from services.common.database import reading
from services.common.errors import GatewayError
from services.common.settings import ArticleDocuments, ArticleQuota, Articles
from tests.services.articles.editor import Client, Editing, code_of, snapshot_revision

QUOTA = 100_000
TEXT = "x" * 20_000


@pytest.fixture
def settings() -> Articles:
    return Articles(
        quota=ArticleQuota(personal_free=QUOTA),
        documents=ArticleDocuments(personal_free=4),
        max_sessions=3,
    )


async def account(editing: Editing, user: str = "ada") -> Account:
    async with reading(editing.engine) as connection:
        return await editing.owner_usage.account(connection, f"user_{user}")


async def counted(editing: Editing) -> tuple[int, int]:
    """Count what live documents are charged for: how many there are, and their bytes."""
    size = func.octet_length if editing.engine.dialect.name == "postgresql" else func.length
    logged = select(
        func.coalesce(
            func.sum(size(operations.c.operation) + size(operations.c.inverse) + OPERATION_BYTES), 0
        )
    ).where(
        operations.c.article_id.in_(select(articles.c.id).where(articles.c.deleted_at_ms.is_(None)))
    )
    live = select(func.count(), func.coalesce(func.sum(articles.c.size_bytes), 0)).where(
        articles.c.deleted_at_ms.is_(None)
    )
    async with reading(editing.engine) as connection:
        documents, size_bytes = (await connection.execute(live)).one()
        in_logs = await connection.scalar(logged)
    least = documents * DOCUMENT_BYTES + int(in_logs or 0)
    assert least <= int(size_bytes) < least + documents * BLOCK
    return documents, int(size_bytes)


async def fill(ada: Client, session_id: str) -> GatewayError:
    """Insert until it is refused; give the refusal."""
    with pytest.raises(GatewayError) as raised:
        for _ in range(QUOTA):
            await ada.insert(session_id, TEXT)
    return raised.value


async def test_edits_beyond_the_quota_are_refused_and_change_nothing(editing: Editing) -> None:
    ada = editing.client()
    session_id = await ada.begin()
    refusal = await fill(ada, session_id)
    assert (refusal.reason, refusal.article_code) == (
        errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED,
        40303,
    )
    assert "100000 bytes" in refusal.message
    assert "delete documents" in refusal.message
    before = await ada.texts(session_id)
    assert before == [TEXT] * 4
    await fill(ada, session_id)
    assert await ada.texts(session_id) == before
    assert (await account(editing)).size_bytes == (await counted(editing))[1] <= QUOTA


async def test_a_small_edit_fits_beside_one_that_does_not(editing: Editing) -> None:
    ada = editing.client()
    session_id = await ada.begin()
    outcomes = await asyncio.gather(
        *(ada.insert(session_id, "small") for _ in range(5)),
        ada.insert(session_id, *([TEXT] * 10)),
        *(ada.insert(session_id, "small") for _ in range(5)),
        return_exceptions=True,
    )
    refused = [one for one in outcomes if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [GatewayError]
    assert await ada.texts(session_id) == ["small"] * 10


async def test_two_processes_do_not_exceed_the_quota_together(editing: Editing) -> None:
    await editing.start()
    ada = [editing.client("ada", at) for at in (0, 1)]
    sessions = [await ada[0].begin() for _ in range(3)]
    outcomes = await asyncio.gather(
        *(ada[number % 2].insert(sessions[number % 3], TEXT) for number in range(24)),
        return_exceptions=True,
    )
    done = [one for one in outcomes if not isinstance(one, BaseException)]
    refused = [one for one in outcomes if isinstance(one, GatewayError)]
    # Blocks of the three documents' logs may leave less room than one more edit takes.
    assert 3 <= len(done) <= 4
    assert len(refused) == 24 - len(done)
    assert {one.article_code for one in refused} == {40303}
    assert (await account(editing))[1:3] == await counted(editing)
    assert (await account(editing)).size_bytes <= QUOTA


async def test_deleting_frees_bytes_and_places_at_once(editing: Editing) -> None:
    ada = editing.client()
    made = [await ada.create() for _ in range(4)]
    with pytest.raises(GatewayError) as raised:
        await ada.create()
    assert code_of(raised) == 40303
    assert "4 documents" in raised.value.message
    session_id = (await ada.open(made[0].id)).session_id
    await fill(ada, session_id)
    await ada.call("DeleteArticle", article_id=made[0].id)
    again = await ada.begin()
    await ada.insert(again, TEXT)
    assert (await account(editing))[1:3] == await counted(editing)


async def test_a_document_that_is_restored_counts_again(editing: Editing) -> None:
    ada = editing.client()
    article = await ada.create()
    await ada.insert((await ada.open(article.id)).session_id, TEXT)
    before = await account(editing)
    await ada.call("DeleteArticle", article_id=article.id)
    assert await account(editing) == Account("personal_free", 0, 0, before.size_bytes)
    await editing.articles.restore(article.id)
    assert await account(editing) == before
    assert before[1:3] == await counted(editing)


async def test_endless_deleting_waits_for_the_sweeper(editing: Editing) -> None:
    ada = editing.client()
    for _ in range(2):
        article = await ada.create()
        await fill(ada, (await ada.open(article.id)).session_id)
        await ada.call("DeleteArticle", article_id=article.id)
    session_id = await ada.begin()
    refusal = await fill(ada, session_id)
    assert refusal.article_code == 40303
    assert "being cleared away" in refusal.message
    await editing.sweeper().sweep()
    after = await account(editing)
    assert after.size_bytes + after.deleted_bytes <= QUOTA
    await ada.insert(session_id, TEXT)
    assert (await account(editing))[1:3] == await counted(editing)


async def test_deleted_documents_are_purged_in_time_with_their_bytes(editing: Editing) -> None:
    ada = editing.client()
    article = await ada.create()
    await ada.insert((await ada.open(article.id)).session_id, TEXT)
    await ada.call("DeleteArticle", article_id=article.id)
    await editing.sweeper().sweep()
    assert (await account(editing)).deleted_bytes > 0
    editing.clock.now_s += editing.settings.keep_deleted_s + 1
    await editing.sweeper().sweep()
    assert await account(editing) == Account("personal_free", 0, 0, 0)


async def test_edits_of_others_count_for_the_creator(editing: Editing) -> None:
    group = await editing.groups.create("lab", "user_ada")
    await editing.groups.add(group, "user_bob")
    article = await editing.client("ada").create(group_id=group)
    bob = editing.client("bob")
    refusal = await fill(bob, (await bob.open(article.id)).session_id)
    assert refusal.article_code == 40303
    assert (await account(editing, "bob")).size_bytes == 0
    assert (await account(editing)).size_bytes > 0.7 * QUOTA
    await bob.insert(await bob.begin(), TEXT)


async def test_a_larger_plan_counts_from_the_next_session_on(editing: Editing) -> None:
    ada = editing.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    await fill(ada, session_id)
    editing.users.plans["ada"] = "personal_pro"
    await ada.open(article.id)
    await ada.insert(session_id, TEXT)
    assert (await account(editing)).plan == "personal_pro"


async def test_history_goes_before_the_quota_is_full(
    editing: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOT_EVERY", 10)
    ada = editing.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    [block] = (await ada.insert(session_id, "x")).ids
    await editing.start()
    theirs = editing.client("ada", 1)
    assert await theirs.texts(session_id) == ["x"]
    committer = editing.instances[0].committer
    for number in range(25):
        text = [{"type": "default", "text": f"{number:01000}"}]
        await ada.edit(session_id, "replace_text", block_id=block, fields={"children": text})
        await committer.stop()
    assert 2 * (await account(editing)).size_bytes > QUOTA
    for _ in range(3):
        await ada.insert(session_id, "later")
    await editing.sweeper().sweep()
    assert 2 * (await account(editing)).size_bytes <= QUOTA
    assert (await account(editing))[1:3] == await counted(editing)
    assert await snapshot_revision(editing.engine, article.id) == 20
    expected = ["later"] * 3 + [f"{24:01000}"]
    # Who has the document in memory, who has an old state of it, and who has none.
    assert await ada.texts(session_id) == expected
    assert await theirs.texts(session_id) == expected
    await editing.start()
    assert await editing.client("ada", 2).texts(session_id) == expected


async def test_sessions_of_a_user_are_bounded(editing: Editing) -> None:
    ada = editing.client()
    made = [await ada.create() for _ in range(4)]
    opened = [await ada.open(one.id) for one in made[:3]]
    with pytest.raises(GatewayError) as raised:
        await ada.open(made[3].id)
    assert code_of(raised) == 42901
    assert raised.value.retry_after_s == 600
    assert (await ada.open(made[0].id)).reused
    await editing.client("bob").begin()
    await ada.call("DestroySession", session_id=opened[0].session_id)
    await ada.open(made[3].id)


async def test_sessions_that_expired_make_room(editing: Editing) -> None:
    ada = editing.client()
    made = [await ada.create() for _ in range(4)]
    for one in made[:3]:
        await ada.open(one.id)
    editing.clock.now_s += 601
    await ada.open(made[3].id)


async def test_a_full_disk_refuses_edits_but_not_reads_or_deletes(
    editing: Editing,
) -> None:
    ada = editing.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    await ada.insert(session_id, "there")
    editing.disk.fill()
    for call in (ada.insert(session_id, "x"), ada.create()):
        with pytest.raises(GatewayError) as raised:
            await call
        assert raised.value.reason == errors_pb2.REASON_STORAGE_FULL
        assert raised.value.retry_after_s
    assert await ada.texts(session_id) == ["there"]
    assert (await ada.open(article.id)).reused
    editing.disk.clear()
    await ada.insert(session_id, "more")
    editing.disk.fill()
    await ada.call("DeleteArticle", article_id=article.id)
