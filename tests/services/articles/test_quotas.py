"""Quotas of documents by plan, and how deleting frees them, on both engines."""

import asyncio

import pytest
from sqlalchemy import func, select

from gateway.errors.v1 import errors_pb2
from services.articles import snapshots
from services.articles.tables import articles, operations
from services.articles.usage import BLOCK, DOCUMENT_BYTES, OPERATION_BYTES, Account
from services.common.errors import GatewayError
from services.common.settings import ArticleDocuments, ArticleQuota, Articles
from services.common.storage.database import reading
from tests.services.articles.editor_services import (
    Client,
    EditorServices,
    code_of,
    snapshot_revision,
)

QUOTA = 100_000
TEXT = "x" * 20_000


@pytest.fixture
def settings() -> Articles:
    return Articles(
        quota=ArticleQuota(personal_free=QUOTA),
        documents=ArticleDocuments(personal_free=4),
        max_sessions=3,
    )


async def account(editors: EditorServices, user: str = "ada") -> Account:
    async with reading(editors.engine) as connection:
        return await editors.owner_usage.account(connection, f"user_{user}")


async def counted(editors: EditorServices) -> tuple[int, int]:
    """Count what live documents are charged for: how many there are, and their bytes."""
    size = func.octet_length if editors.engine.dialect.name == "postgresql" else func.length
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
    async with reading(editors.engine) as connection:
        documents, size_bytes = (await connection.execute(live)).one()
        in_logs = await connection.scalar(logged)
    min_bytes = documents * DOCUMENT_BYTES + int(in_logs or 0)
    assert min_bytes <= int(size_bytes) < min_bytes + documents * BLOCK
    return documents, int(size_bytes)


async def fill(ada: Client, session_id: str) -> GatewayError:
    """Insert until it is refused; give the refusal."""
    with pytest.raises(GatewayError) as raised:
        for _ in range(QUOTA):
            await ada.insert(session_id, TEXT)
    return raised.value


async def test_edits_beyond_the_quota_are_refused_and_change_nothing(
    editors: EditorServices,
) -> None:
    ada = editors.client()
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
    assert (await account(editors)).size_bytes == (await counted(editors))[1] <= QUOTA


async def test_a_small_edit_fits_beside_one_that_does_not(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    outcomes = await asyncio.gather(
        *(ada.insert(session_id, "small") for _ in range(5)),
        ada.insert(session_id, *([TEXT] * 10)),
        *(ada.insert(session_id, "small") for _ in range(5)),
        return_exceptions=True,
    )
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [type(outcome) for outcome in refused] == [GatewayError]
    assert await ada.texts(session_id) == ["small"] * 10


async def test_two_processes_do_not_exceed_the_quota_together(editors: EditorServices) -> None:
    await editors.start()
    ada = [editors.client("ada", process) for process in (0, 1)]
    sessions = [await ada[0].begin() for _ in range(3)]
    outcomes = await asyncio.gather(
        *(ada[number % 2].insert(sessions[number % 3], TEXT) for number in range(24)),
        return_exceptions=True,
    )
    answers = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, GatewayError)]
    # Blocks of the three documents' logs may leave less room than one more edit takes.
    assert 3 <= len(answers) <= 4
    assert len(refused) == 24 - len(answers)
    assert {outcome.article_code for outcome in refused} == {40303}
    assert (await account(editors))[1:3] == await counted(editors)
    assert (await account(editors)).size_bytes <= QUOTA


async def test_deleting_frees_bytes_and_places_at_once(editors: EditorServices) -> None:
    ada = editors.client()
    created = [await ada.create() for _ in range(4)]
    with pytest.raises(GatewayError) as raised:
        await ada.create()
    assert code_of(raised) == 40303
    assert "4 documents" in raised.value.message
    session_id = (await ada.open(created[0].id)).session_id
    await fill(ada, session_id)
    await ada.call("DeleteArticle", article_id=created[0].id)
    again = await ada.begin()
    await ada.insert(again, TEXT)
    assert (await account(editors))[1:3] == await counted(editors)


async def test_a_document_that_is_restored_counts_again(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    await ada.insert((await ada.open(article.id)).session_id, TEXT)
    before = await account(editors)
    await ada.call("DeleteArticle", article_id=article.id)
    assert await account(editors) == Account("personal_free", 0, 0, before.size_bytes)
    await editors.articles.restore(article.id)
    assert await account(editors) == before
    assert before[1:3] == await counted(editors)


async def test_endless_deleting_waits_for_the_sweeper(editors: EditorServices) -> None:
    ada = editors.client()
    for _ in range(2):
        article = await ada.create()
        await fill(ada, (await ada.open(article.id)).session_id)
        await ada.call("DeleteArticle", article_id=article.id)
    session_id = await ada.begin()
    refusal = await fill(ada, session_id)
    assert refusal.article_code == 40303
    assert "still being purged" in refusal.message
    await editors.sweeper().sweep()
    after = await account(editors)
    assert after.size_bytes + after.deleted_bytes <= QUOTA
    await ada.insert(session_id, TEXT)
    assert (await account(editors))[1:3] == await counted(editors)


async def test_deleted_documents_are_purged_in_time_with_their_bytes(
    editors: EditorServices,
) -> None:
    ada = editors.client()
    article = await ada.create()
    await ada.insert((await ada.open(article.id)).session_id, TEXT)
    await ada.call("DeleteArticle", article_id=article.id)
    await editors.sweeper().sweep()
    assert (await account(editors)).deleted_bytes > 0
    editors.clock.now_s += editors.settings.deleted_retention_s + 1
    await editors.sweeper().sweep()
    assert await account(editors) == Account("personal_free", 0, 0, 0)


async def test_edits_of_others_count_for_the_creator(editors: EditorServices) -> None:
    group = await editors.groups.create("lab", "user_ada")
    await editors.groups.add(group, "user_bob")
    article = await editors.client("ada").create(group_id=group)
    bob = editors.client("bob")
    refusal = await fill(bob, (await bob.open(article.id)).session_id)
    assert refusal.article_code == 40303
    assert (await account(editors, "bob")).size_bytes == 0
    assert (await account(editors)).size_bytes > 0.7 * QUOTA
    await bob.insert(await bob.begin(), TEXT)


async def test_a_larger_plan_counts_from_the_next_session_on(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    await fill(ada, session_id)
    editors.users.plans["ada"] = "personal_pro"
    await ada.open(article.id)
    await ada.insert(session_id, TEXT)
    assert (await account(editors)).plan == "personal_pro"


async def test_history_goes_before_the_quota_is_full(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOT_EVERY", 10)
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    [block] = (await ada.insert(session_id, "x")).ids
    await editors.start()
    theirs = editors.client("ada", 1)
    assert await theirs.texts(session_id) == ["x"]
    committer = editors.processes[0].committer
    for number in range(25):
        text = [{"type": "default", "text": f"{number:01000}"}]
        await ada.edit(session_id, "replace_text", block_id=block, fields={"children": text})
        await committer.stop()
    assert 2 * (await account(editors)).size_bytes > QUOTA
    for _ in range(3):
        await ada.insert(session_id, "later")
    await editors.sweeper().sweep()
    assert 2 * (await account(editors)).size_bytes <= QUOTA
    assert (await account(editors))[1:3] == await counted(editors)
    assert await snapshot_revision(editors.engine, article.id) == 20
    expected = ["later"] * 3 + [f"{24:01000}"]
    # Who has the document in memory, who has an old state of it, and who has none.
    assert await ada.texts(session_id) == expected
    assert await theirs.texts(session_id) == expected
    await editors.start()
    assert await editors.client("ada", 2).texts(session_id) == expected


async def test_content_counts_when_its_history_is_gone(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOT_EVERY", 3)
    ada = editors.client()
    session_id = (await ada.open((await ada.create()).id)).session_id
    for _ in range(6):
        await fill(ada, session_id)
        await editors.processes[0].committer.stop()
        await editors.sweeper().sweep()
    stored = sum(map(len, await ada.texts(session_id)))
    assert 0.4 * QUOTA < stored <= (await account(editors)).size_bytes <= QUOTA


async def test_sessions_of_a_user_are_bounded(editors: EditorServices) -> None:
    ada = editors.client()
    created = [await ada.create() for _ in range(4)]
    sessions = [await ada.open(article.id) for article in created[:3]]
    with pytest.raises(GatewayError) as raised:
        await ada.open(created[3].id)
    assert code_of(raised) == 42901
    assert raised.value.retry_after_s == 600
    assert (await ada.open(created[0].id)).reused
    await editors.client("bob").begin()
    await ada.call("DestroySession", session_id=sessions[0].session_id)
    await ada.open(created[3].id)


async def test_sessions_that_expired_make_room(editors: EditorServices) -> None:
    ada = editors.client()
    created = [await ada.create() for _ in range(4)]
    for article in created[:3]:
        await ada.open(article.id)
    editors.clock.now_s += 601
    await ada.open(created[3].id)


async def test_a_full_disk_refuses_edits_but_not_reads_or_deletes(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    await ada.insert(session_id, "there")
    editors.disk.fill()
    for call in (ada.insert(session_id, "x"), ada.create()):
        with pytest.raises(GatewayError) as raised:
            await call
        assert raised.value.reason == errors_pb2.REASON_STORAGE_FULL
        assert raised.value.retry_after_s
    assert await ada.texts(session_id) == ["there"]
    assert (await ada.open(article.id)).reused
    editors.disk.clear()
    await ada.insert(session_id, "more")
    editors.disk.fill()
    await ada.call("DeleteArticle", article_id=article.id)
