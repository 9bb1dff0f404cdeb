"""Builds the services of one process: the one place that knows all of them."""

from collections.abc import Sequence
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2_grpc
from gateway.articles.v1 import articles_pb2_grpc
from gateway.files.v1 import files_pb2_grpc
from gateway.inference.v1 import inference_pb2_grpc
from services.accounts import servicer as accounts
from services.accounts.repository import AccountRepository
from services.articles import servicer as articles
from services.articles.assembly import Articles
from services.common.authentication import CachedIdentify
from services.common.channels import open_channel
from services.common.database import migrate, open_engine
from services.common.ids import Source
from services.common.secrets import load_secrets
from services.common.server import Server
from services.common.settings import Settings
from services.files import servicer as files
from services.files.assembly import Files
from services.inference import servicer as inference
from services.inference.assembly import Inference
from services.inference.files import FileStore


class Services:
    """The services of one process, serving.

    Attributes:
        port: the port they listen on; 0 on a Unix socket.
    """

    def __init__(
        self,
        server: Server,
        channel: grpc.aio.Channel,
        database: AsyncEngine,
        filing: Files | None,
        inferring: Inference | None,
        editing: Articles | None,
        port: int,
        drain_s: float,
    ) -> None:
        self._server = server
        self._channel = channel
        self._database = database
        self._filing = filing
        self._inferring = inferring
        self._editing = editing
        self._drain_s = drain_s
        self.port = port

    @classmethod
    async def start(
        cls, names: Sequence[str], address: str, settings: Settings, source: Source
    ) -> Self:
        """Serve those of `names` (accounts, articles, files, inference) on `address`."""
        database = open_engine(settings.storage)
        await migrate(database)
        identify = CachedIdentify(
            AccountRepository(database, source).identify,
            ttl_s=settings.limits.identify_cache_s,
            monotonic=source.monotonic,
        )
        max_message = settings.limits.max_message
        server = Server(identify, max_message=max_message)
        port = server.listen(address)
        # Services call one another over gRPC too, as everybody does.
        channel = open_channel(_reachable(address, port), max_message=max_message)
        filing = inferring = editing = None
        if "accounts" in names:
            server.add(
                accounts_pb2_grpc.add_AccountsServiceServicer_to_server,
                accounts.AccountsServicer(),
                accounts.SERVICE_NAME,
            )
        if "files" in names:
            filing = Files.start(settings, database, source, CollectorRegistry())
            server.add(
                files_pb2_grpc.add_FileStoreServiceServicer_to_server,
                filing.servicer,
                files.SERVICE_NAME,
            )
        if "articles" in names:
            editing = Articles.start(settings, database, source, CollectorRegistry(), channel)
            server.add(
                articles_pb2_grpc.add_ArticleEditorServiceServicer_to_server,
                editing.servicer,
                articles.SERVICE_NAME,
            )
        if "inference" in names:
            inferring = await Inference.start(
                settings,
                await load_secrets(database, source),
                source,
                CollectorRegistry(),
                FileStore(channel),
            )
            server.add(
                inference_pb2_grpc.add_InferenceServiceServicer_to_server,
                inference.InferenceServicer(inferring.engine),
                inference.SERVICE_NAME,
            )
        await server.start()
        drain_s = settings.limits.drain_s
        return cls(server, channel, database, filing, inferring, editing, port, drain_s)

    def reload(self) -> None:
        """Read the settings again."""
        if self._inferring is not None:
            self._inferring.reload()

    async def stop(self) -> None:
        """Take no more calls, let those in hand end, close."""
        await self._server.stop(self._drain_s)
        if self._inferring is not None:
            await self._inferring.stop()
        if self._filing is not None:
            await self._filing.stop()
        if self._editing is not None:
            await self._editing.stop()
        await self._channel.close()
        await self._database.dispose()


def _reachable(address: str, port: int) -> str:
    """Give the address at which this process reaches what listens on `address`."""
    if address.startswith("unix:"):
        return address
    host = address.rpartition(":")[0]
    return f"{_LOOPBACK.get(host, host)}:{port}"


_LOOPBACK = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
