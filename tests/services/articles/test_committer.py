"""Commits of edits: durability, races between processes, snapshots, the cache."""

import asyncio
import threading
import tracemalloc
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors.v1 import errors_pb2
from services.articles import codec, snapshots
from services.articles.cache import DocumentCache, DocumentState
from services.articles.edit_results import EditResult
from services.articles.operation_log import LogEntry, MissingRevisionError, OperationLog
from services.articles.sessions import SessionRef
from services.articles.tables import operations
from services.articles.tree.document import Document
from services.articles.tree.operations import Change, InsertBlocks, Operation
from services.articles.tree.parsing import parse_element
from services.articles.usage import OwnerUsage
from services.common.clock import Clock
from services.common.errors import GatewayError, unavailable
from services.common.settings import Articles, Storage
from services.common.storage.database import writing
from tests.services.articles.editor_services import (
    EditorServices,
    paragraph,
    snapshot_revision,
    stored_and_replayed,
)

COMMITS = "gateway_article_commits_total"
CONFLICTS = "gateway_article_conflicts_total"
LOADED = "gateway_articles_loaded_total"
SNAPSHOTS = "gateway_article_snapshots_total"


async def shared(editors: EditorServices) -> tuple[str, str, str]:
    """Make a document that ada and bob share; give it and a session of each."""
    group = await editors.groups.create("lab", "user_ada")
    await editors.groups.add(group, "user_bob")
    article = await editors.client("ada").create(group_id=group)
    ada = (await editors.client("ada").open(article.id)).session_id
    bob = (await editors.client("bob").open(article.id)).session_id
    return article.id, ada, bob


async def test_concurrent_inserts_of_two_processes_are_all_kept(editors: EditorServices) -> None:
    await editors.start()
    article_id, ada, bob = await shared(editors)
    users = (("ada", 0, ada), ("bob", 1, bob))
    answers = await asyncio.gather(
        *(
            editors.client(user, process).insert(session, f"{user}{number}", f"{user}{number}+")
            for number in range(15)
            for user, process, session in users
        )
    )
    assert sorted(answer.revision for answer in answers) == list(range(1, 31))
    texts = await editors.client("ada").texts(ada)
    assert sorted(texts) == sorted(
        f"{user}{number}{tail}"
        for user, _, _ in users
        for number in range(15)
        for tail in ("", "+")
    )
    for first, second in zip(texts[::2], texts[1::2], strict=True):
        assert second == f"{first}+"
    assert await editors.client("bob", 1).texts(bob) == texts
    stored, replayed = await stored_and_replayed(editors.engine, article_id)
    assert stored == replayed


# A SQLite file has one writer at a time, so nobody loses there.
@pytest.mark.parametrize("storage", ["postgresql"], indirect=True)
async def test_the_loser_of_a_race_applies_its_edit_again(
    editors: EditorServices, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await editors.start()
    article_id, ada, bob = await shared(editors)
    charge, raced = OwnerUsage.charge, False

    async def late(self: OwnerUsage, connection: AsyncConnection, sizes: Mapping[str, int]) -> bool:
        nonlocal raced
        if not raced:
            raced = True
            await editors.client("bob", 1).insert(bob, "bob")
        return await charge(self, connection, sizes)

    monkeypatch.setattr(OwnerUsage, "charge", late)
    answer = await editors.client("ada", 0).insert(ada, "ada")
    assert answer.revision == 2
    assert await editors.client("ada", 0).texts(ada) == ["ada", "bob"]
    assert editors.processes[0].count(CONFLICTS) == 1
    stored, replayed = await stored_and_replayed(editors.engine, article_id)
    assert stored == replayed


# A SQLite file has one writer at a time, so nobody loses there.
@pytest.mark.parametrize("storage", ["postgresql"], indirect=True)
async def test_the_loser_of_a_race_with_a_revision_is_refused(
    editors: EditorServices, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await editors.start()
    _, ada, bob = await shared(editors)
    charge, raced = OwnerUsage.charge, False

    async def late(self: OwnerUsage, connection: AsyncConnection, sizes: Mapping[str, int]) -> bool:
        nonlocal raced
        if not raced:
            raced = True
            await editors.client("bob", 1).insert(bob, "bob")
        return await charge(self, connection, sizes)

    monkeypatch.setattr(OwnerUsage, "charge", late)
    with pytest.raises(GatewayError) as raised:
        await editors.client("ada", 0).insert(ada, "ada", if_revision=0)
    assert raised.value.article_code == 40901
    assert await editors.client("ada", 0).texts(ada) == ["bob"]


async def test_a_batch_that_lost_a_race_keeps_the_order_of_its_edits(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    committer = editors.processes[0].committer
    session = SessionRef(session_id, "user_ada")
    await committer.read(session)
    append, raced = OperationLog.append, False

    async def late(
        self: OperationLog, connection: AsyncConnection, entries: Sequence[LogEntry]
    ) -> None:
        nonlocal raced
        if not raced:
            raced = True
            raise IntegrityError("another process was first", None, Exception())
        await append(self, connection, entries)

    monkeypatch.setattr(OperationLog, "append", late)
    inserts = [
        InsertBlocks(
            (number,),
            (parse_element(paragraph(str(number)), "", 1, lambda number=number: f"e{number}", {}),),
        )
        for number in range(4)
    ]
    answers = await asyncio.gather(*(committer.edit(session, insert) for insert in inserts))
    assert raced
    assert [answer.revision for answer in answers] == [1, 2, 3, 4]
    assert await ada.texts(session_id) == ["0", "1", "2", "3"]


async def test_a_process_catches_up_from_the_log_alone(editors: EditorServices) -> None:
    second = await editors.start()
    _, ada, bob = await shared(editors)
    reader, writer = editors.client("bob", 1), editors.client("ada", 0)
    assert await reader.texts(bob) == []
    for number in range(3):
        await writer.insert(ada, str(number))
    assert await reader.texts(bob) == ["2", "1", "0"]
    answer = await reader.insert(bob, "bob", path=(3,))
    assert answer.revision == 4
    assert await writer.texts(ada) == ["2", "1", "0", "bob"]
    assert second.count(LOADED) == 1


async def test_calls_that_wait_together_share_a_transaction(editors: EditorServices) -> None:
    ada = editors.client()
    sessions = [await ada.begin() for _ in range(8)]
    await asyncio.gather(*(ada.read(session) for session in sessions))
    before = editors.processes[0].count(COMMITS)
    calls = [ada.insert(session, str(number)) for session in sessions for number in range(8)]
    answers = await asyncio.gather(*calls)
    assert sorted(answer.revision for answer in answers) == sorted(list(range(1, 9)) * 8)
    assert editors.processes[0].count(COMMITS) - before < len(calls) / 2


class _Broken:
    """An operation with a fault that nobody foresaw."""

    name = "broken"

    def apply(self, document: Document) -> Change:
        raise RuntimeError("hush")


async def test_edits_are_applied_in_a_thread(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await editors.start()
    _, ada, _ = await shared(editors)
    threads: list[int] = []
    apply = codec.apply

    def noting(document: Document, operation: Operation) -> codec.AppliedOperation:
        threads.append(threading.get_ident())
        return apply(document, operation)

    monkeypatch.setattr(codec, "apply", noting)
    await editors.client("ada").insert(ada, "one")
    assert threads and threading.get_ident() not in threads


async def test_a_failing_call_leaves_the_rest_of_its_batch_alone(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    committer = editors.processes[0].committer
    session = SessionRef(session_id, "user_ada")
    await committer.read(session)
    broken: Any = _Broken()
    outcomes = await asyncio.gather(
        committer.edit(session, broken),
        ada.insert(session_id, "a"),
        ada.insert(session_id, "b", path=(9,)),
        ada.insert(session_id, "c"),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], RuntimeError)
    assert isinstance(outcomes[2], GatewayError)
    assert sorted(outcome.revision for outcome in (outcomes[1], outcomes[3])) == [1, 2]


async def test_a_cancelled_call_leaves_the_others_alone(editors: EditorServices) -> None:
    ada = editors.client()
    sessions = [await ada.begin() for _ in range(2)]
    # A new process holds no document: both wait for one reading, and the first leaves.
    committer = (await editors.start()).committer
    reads = [
        asyncio.create_task(committer.read(SessionRef(session, "user_ada")))
        for session in (sessions[0], sessions[0], sessions[1])
    ]
    await asyncio.sleep(0)
    reads[0].cancel()
    outcomes = await asyncio.gather(*reads, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert [outcome.revision for outcome in outcomes[1:] if isinstance(outcome, DocumentState)] == [
        0,
        0,
    ]


async def test_uncommitted_edits_are_not_visible(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "a")
    append = OperationLog.append

    async def failing(
        self: OperationLog, connection: AsyncConnection, entries: Sequence[LogEntry]
    ) -> None:
        await append(self, connection, entries)
        raise unavailable("the database does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(OperationLog, "append", failing)
        with pytest.raises(GatewayError) as raised:
            await ada.insert(session_id, "b")
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert await ada.texts(session_id) == ["a"]
    assert (await ada.insert(session_id, "c")).revision == 2


async def test_a_missing_revision_in_the_log_is_an_error(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    for _ in range(3):
        await ada.insert(session_id, "a")
    async with writing(editors.engine) as connection:
        await connection.execute(delete(operations).where(operations.c.revision == 2))
    with pytest.raises(MissingRevisionError, match="revision 2 is missing"):
        await OperationLog(editors.engine, Clock()).load(article.id)
    await editors.start()
    with pytest.raises(GatewayError) as raised:
        await editors.client("ada", 1).read(session_id)
    assert raised.value.reason == errors_pb2.REASON_INTERNAL


async def test_a_snapshot_saves_replaying_the_log(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOT_EVERY", 5)
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    committer = editors.processes[0].committer
    for number in range(13):
        await ada.insert(session_id, str(number))
        await committer.stop()
    assert await snapshot_revision(editors.engine, article.id) == 10
    assert editors.processes[0].count(SNAPSHOTS) == 2
    opened = await OperationLog(editors.engine, Clock()).load(article.id)
    assert (opened.revision, opened.tail_operations) == (13, 3)
    stored, replayed = await stored_and_replayed(editors.engine, article.id)
    assert stored == replayed
    await editors.start()
    second_process = editors.client("ada", 1)
    assert await second_process.texts(session_id) == await ada.texts(session_id)
    await second_process.insert(session_id, "last")


async def test_large_operations_make_a_snapshot_due_sooner(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    session_id = (await ada.open(article.id)).session_id
    blocks = [paragraph("x" * 10_000) for _ in range(30)]
    await ada.edit(session_id, "insert_blocks", path=[0], blocks=blocks)
    await editors.processes[0].committer.stop()
    assert await snapshot_revision(editors.engine, article.id) == 1
    await ada.insert(session_id, "small")
    await editors.processes[0].committer.stop()
    assert await snapshot_revision(editors.engine, article.id) == 1


async def test_an_older_snapshot_never_replaces_a_newer(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create()
    log = OperationLog(editors.engine, editors.clock)
    await log.take_snapshot(article.id, DocumentState(Document(), 7))
    await log.take_snapshot(article.id, DocumentState(Document(), 6))
    assert await snapshot_revision(editors.engine, article.id) == 7


class TestSmallCache:
    @pytest.fixture
    def settings(self) -> Articles:
        return Articles(cache_bytes=20_000)

    async def test_evicted_documents_are_loaded_again(self, editors: EditorServices) -> None:
        ada = editors.client()
        sessions = [await ada.begin() for _ in range(4)]
        for turn in range(3):
            for session in sessions:
                answer = await ada.insert(session, "x" * 700)
                assert answer.revision == turn + 1
        assert len(editors.processes[0].cache) < 4
        for session in sessions:
            assert await ada.texts(session) == ["x" * 700] * 3


def held(revision: int, json_bytes: int = 0) -> DocumentState:
    return DocumentState(Document(), revision, json_bytes)


def test_the_cache_evicts_the_least_recently_used() -> None:
    cache = DocumentCache(int(2.5 * held(1, 40).size))
    for name in ("a", "b"):
        cache.put(name, held(1, 40))
    assert cache.get("a") is not None
    cache.put("c", held(1, 40))
    assert (cache.get("a") is None, cache.get("b") is None) == (False, True)
    cache.put("huge", held(1, 40_000))
    assert len(cache) == 1
    assert cache.get("huge") is not None


def test_the_cache_keeps_the_newer_state() -> None:
    cache = DocumentCache(1)
    newer = held(2, 10)
    cache.put("a", newer)
    cache.put("a", held(1, 90))
    assert cache.get("a") is newer


def test_the_cache_counts_a_changed_document_once() -> None:
    cache = DocumentCache(held(1, 40).size + held(1, 60).size)
    for revision in range(5):
        cache.put("a", held(revision, 40))
    cache.put("b", held(1, 60))
    assert cache.get("a") is not None


def test_the_cache_counts_the_memory_of_empty_documents() -> None:
    cache = DocumentCache(1 << 20)
    for number in range(2000):
        cache.put(str(number), held(0))
    tracemalloc.start()
    try:
        documents = [Document() for _ in range(len(cache))]
        traced_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(documents) < 2000
    assert traced_bytes < 1 << 20


def test_an_edit_may_make_nothing() -> None:
    assert EditResult(0).outcome.ids == ()
