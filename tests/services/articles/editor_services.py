"""Article services over one database, with gRPC clients of several users."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import grpc
import orjson
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from prometheus_client import CollectorRegistry
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.accounts_pb2 import PLAN_PERSONAL_FREE, Plan
from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.articles_pb2_grpc import (
    ArticleEditorServiceStub,
    add_ArticleEditorServiceServicer_to_server,
)
from gateway.articles.v1.edits_pb2 import Edit
from services.articles import codec
from services.articles.assembly import SERVICE_NAME
from services.articles.cache import DocumentCache
from services.articles.callers import Callers
from services.articles.comments import CommentRepository
from services.articles.committer import DocumentCommitter
from services.articles.copies import ArticleCopier
from services.articles.following import ChangeWaiter
from services.articles.groups import GroupRepository
from services.articles.history import History
from services.articles.metrics import ArticleMetrics
from services.articles.operation_log import OperationLog
from services.articles.repeats import AnsweredRequests
from services.articles.repository import ArticleRepository
from services.articles.retention import Retention
from services.articles.servicer import ArticleEditorServicer
from services.articles.sessions import SessionRepository
from services.articles.suggestions import SuggestionRepository
from services.articles.sweeper import article_sweeper
from services.articles.tables import operations, snapshots
from services.articles.tree.document import Document
from services.articles.usage import OwnerUsage
from services.common.clock import Clock
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.authentication import Caller, call_metadata, caller, caller_id
from services.common.grpc.channels import Metadata, open_channel
from services.common.grpc.server import Server
from services.common.ids import new_id
from services.common.settings import Articles, Limits
from services.common.storage.database import reading
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.media.conversion.pool import ConversionPool, PooledConverter
from tests.disks import Disk
from tests.manual_clock import ManualClock

MAX_MESSAGE = 8 << 20
RPCS = wire.DESCRIPTOR.services_by_name["ArticleEditorService"].methods_by_name


@dataclass
class Users:
    """Keys of users, known to every server.

    Attributes:
        plans: names of the plans of users; who is not there has the smallest.
    """

    known: dict[str, Caller] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)

    def key(self, user: str) -> str:
        key = f"gw-{len(self.known):043}"
        self.known[key] = Caller(f"user_{user}", "", PLAN_PERSONAL_FREE)
        return key

    async def names_of(self, user_ids: Collection[str]) -> Mapping[str, str]:
        ids = {caller.user_id for caller in self.known.values()}
        return {user_id: user_id.removeprefix("user_") for user_id in ids & {*user_ids}}

    async def identify(self, key: str) -> Caller:
        caller = self.known[key]
        plan = self.plans.get(caller.user_id.removeprefix("user_"), "personal_free")
        return replace(caller, plan=Plan.Value(f"PLAN_{plan.upper()}"))


@dataclass
class FakeFileStore:
    """A fake file store with the files of each user; counts its look-ups."""

    files: set[tuple[str, str]] = field(default_factory=set)
    asked: int = 0

    async def has(self, file_id: str) -> bool:
        self.asked += 1
        return (caller.get().user_id, file_id) in self.files


class Client:
    """One user's view of the editor, over gRPC."""

    def __init__(self, stub: ArticleEditorServiceStub, key: str) -> None:
        self._stub = stub
        self._metadata: Metadata = call_metadata(key, "req_test")

    async def call(self, method: str, **fields: Any) -> Any:
        """Call a method with a request of these fields."""
        request = GetMessageClass(RPCS[method].input_type)
        return await self._call(method, request(**fields))

    async def edit(
        self,
        session_id: str,
        kind: str,
        if_revision: int | None = None,
        *,
        suggest: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
        **fields: Any,
    ) -> wire.ApplyEditResponse:
        """Apply an edit; what a bytes field is given is written as JSON."""
        edit = Edit()
        message = getattr(edit, kind)
        for name, value in fields.items():
            described = message.DESCRIPTOR.fields_by_name[name]
            if described.type == described.TYPE_BYTES and not isinstance(value, bytes):
                fields[name] = orjson.dumps(value)
        message.MergeFrom(type(message)(**fields))
        message.SetInParent()
        request = wire.ApplyEditRequest(
            session_id=session_id,
            if_revision=if_revision,
            edit=edit,
            suggest=suggest,
            dry_run=dry_run,
            request_id=request_id,
        )
        response: wire.ApplyEditResponse = await self._call("ApplyEdit", request)
        return response

    async def _call(self, method: str, request: Message) -> Any:
        try:
            return await getattr(self._stub, method)(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error

    async def create(self, name: str = "", group_id: int = 0) -> wire.Article:
        return (await self.call("CreateArticle", name=name, group_id=group_id)).article

    async def open(self, article_id: str) -> wire.CreateSessionResponse:
        return await self.call("CreateSession", article_id=article_id)

    async def begin(self) -> str:
        """Create a document and return a session on it."""
        return (await self.open((await self.create()).id)).session_id

    async def insert(
        self, session_id: str, *texts: str, path: tuple[int, ...] = (0,), **fields: Any
    ) -> wire.ApplyEditResponse:
        """Insert a paragraph for each text."""
        blocks = [paragraph(text) for text in texts]
        return await self.edit(session_id, "insert_blocks", path=path, blocks=blocks, **fields)

    async def read(self, session_id: str) -> wire.ReadArticleResponse:
        return await self.call("ReadArticle", session_id=session_id)

    async def texts(self, session_id: str) -> list[str]:
        return [block.text for block in (await self.read(session_id)).blocks]

    async def groups(self) -> list[wire.ArticleGroup]:
        return list((await self.call("ListArticles")).groups)


def paragraph(text: str) -> dict[str, Any]:
    return {"type": "paragraph", "children": [{"type": "default", "text": text}]}


@dataclass
class EditorProcess:
    """The article service of one process."""

    server: Server
    channel: grpc.aio.Channel
    stub: ArticleEditorServiceStub
    committer: DocumentCommitter
    cache: DocumentCache
    registry: CollectorRegistry

    def count(self, name: str) -> float:
        return self.registry.get_sample_value(name) or 0.0


@dataclass
class EditorServices:
    """Article services over one database.

    Attributes:
        settings: what every process that is started from then on goes by.
        files: the users' files.
        disk: where the database is said to be.
    """

    engine: AsyncEngine
    clock: ManualClock
    settings: Articles
    users: Users = field(default_factory=Users)
    files: FakeFileStore = field(default_factory=FakeFileStore)
    processes: list[EditorProcess] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    disk: Disk = field(default_factory=Disk)

    @property
    def groups(self) -> GroupRepository:
        return GroupRepository(self.engine, self.clock)

    @property
    def articles(self) -> ArticleRepository:
        return ArticleRepository(self.engine, self.clock, owner_usage=self.owner_usage)

    @property
    def owner_usage(self) -> OwnerUsage:
        return OwnerUsage(self.settings)

    async def start(self) -> EditorProcess:
        registry = CollectorRegistry()
        sessions = SessionRepository(self.engine, self.clock, self.settings)
        log, cache = (
            OperationLog(self.engine, self.clock),
            DocumentCache(self.settings.cache_bytes),
        )
        requests = AnsweredRequests(self.engine, self.clock)
        waiter = ChangeWaiter(self.engine)
        committer = DocumentCommitter(
            self.engine,
            sessions,
            log,
            cache,
            ArticleMetrics(registry),
            self.owner_usage,
            requests,
            waiter.notify,
        )
        servicer = ArticleEditorServicer(
            self.articles,
            sessions,
            committer,
            self.files,
            Callers(self.groups if self.settings.require_grant else None),
            self.groups,
            self.users.names_of,
            ArticleCopier(self.engine, self.articles, log, self.owner_usage, partial(new_id, "")),
            CommentRepository(self.engine, self.clock, requests),
            SuggestionRepository(self.engine, self.clock, requests),
            self.disk.reserve,
            History(committer, log),
            PooledConverter(ConversionPool(Limits(), registry), caller_id),
            waiter,
        )
        server = Server(self.users.identify, max_message_bytes=MAX_MESSAGE)
        server.add(add_ArticleEditorServiceServicer_to_server, servicer, SERVICE_NAME)
        port = server.listen("127.0.0.1:0")
        await server.start()
        channel = open_channel(f"127.0.0.1:{port}", max_message_bytes=MAX_MESSAGE)
        await channel.channel_ready()
        stub = ArticleEditorServiceStub(channel)
        self.processes.append(EditorProcess(server, channel, stub, committer, cache, registry))
        return self.processes[-1]

    async def stop(self) -> None:
        for process in self.processes:
            await process.channel.close()
            await process.server.stop(0)
            await process.committer.stop()

    def client(self, user: str = "ada", process: int = 0) -> Client:
        if user not in self.keys:
            self.keys[user] = self.users.key(user)
        return Client(self.processes[process].stub, self.keys[user])

    def sweeper(self) -> Sweeper:
        return article_sweeper(
            Retention(self.engine, self.clock, self.owner_usage),
            SessionRepository(self.engine, self.clock, self.settings),
            AnsweredRequests(self.engine, self.clock),
            sweeper_lease(self.engine, "articles", 60, self.clock),
            self.settings,
            60,
            ArticleMetrics(CollectorRegistry()),
        )


async def stored_and_replayed(engine: AsyncEngine, article_id: str) -> tuple[bytes, bytes]:
    """Return a document as it is stored, and as replaying its whole log builds it.

    The inverses in the log, from the last to the first, must leave nothing of it.
    """
    opened = await OperationLog(engine, Clock()).load(article_id)
    async with reading(engine) as connection:
        rows = await connection.execute(
            select(operations.c.revision, operations.c.operation, operations.c.inverse)
            .where(operations.c.article_id == article_id)
            .order_by(operations.c.revision)
        )
        log = rows.all()
    assert [row.revision for row in log] == list(range(1, opened.revision + 1))
    document = Document()
    for row in log:
        document = codec.replay(document, row.operation)
    undone = document
    for row in reversed(log):
        undone = codec.replay(undone, row.inverse)
    assert undone == Document()
    return codec.encode_document(opened.document), codec.encode_document(document)


async def snapshot_revision(engine: AsyncEngine, article_id: str) -> int | None:
    query = select(snapshots.c.revision).where(snapshots.c.article_id == article_id)
    async with reading(engine) as connection:
        revision: int | None = await connection.scalar(query)
    return revision


def code_of(raised: pytest.ExceptionInfo[GatewayError]) -> int | None:
    return raised.value.article_code
