"""Builds the services of one process: the one place that knows all of them."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2_grpc
from gateway.articles.v1 import articles_pb2_grpc
from gateway.files.v1 import files_pb2_grpc
from gateway.inference.v1 import inference_pb2_grpc
from gateway.memory.v1 import memory_pb2_grpc
from services.accounts import servicer as accounts
from services.accounts.repository import AccountRepository
from services.articles import servicer as articles
from services.articles.assembly import Articles
from services.common import settings as settings_module
from services.common.authentication import CachedIdentify, Identify
from services.common.database import is_sqlite, migrate, open_engine
from services.common.disk import DiskReserve
from services.common.ids import Source
from services.common.metrics import Gauge
from services.common.secrets import load_secrets
from services.common.server import Server
from services.common.settings import Settings, SettingsError, Storage
from services.common.sweeping import sweeper_lease
from services.files import servicer as files
from services.files.assembly import Files
from services.inference import servicer as inference
from services.inference.adaptation.sweeper import ROUNDS
from services.inference.assembly import Inference
from services.inference.files import FileStore
from services.inference.memory.turn_client import TurnClient
from services.memory import servicer as memory
from services.memory.assembly import MemoryService

log = logging.getLogger(__name__)


class Services:
    """The services of one process, serving.

    Attributes:
        channel: carries the calls of this process to them.
        identify: finds the owner of a key, and remembers it for a while.
        port: the port they listen on; 0 on a Unix socket, or without an address.
    """

    def __init__(
        self,
        server: Server,
        channel: grpc.aio.Channel,
        identify: Identify,
        database: AsyncEngine,
        filing: Files | None,
        inferring: Inference | None,
        editing: Articles | None,
        remembering: MemoryService | None,
        port: int,
        drain_s: float,
        watching: asyncio.Task[None],
    ) -> None:
        self._watching = watching
        self._server = server
        self.channel = channel
        self.identify = identify
        self._database = database
        self._filing = filing
        self._inferring = inferring
        self._editing = editing
        self._remembering = remembering
        self._drain_s = drain_s
        self.port = port

    @classmethod
    async def start(
        cls,
        names: Sequence[str],
        address: str,
        settings: Settings,
        source: Source,
        *,
        is_shared: bool = False,
    ) -> Self:
        """Serve those of `names` (accounts, articles, files, inference, memory).

        They can be called at `address`, where there is one, and over `channel`; other processes
        may listen on a port that `is_shared`.
        """
        database = open_engine(settings.storage)
        await migrate(database)
        secrets = await load_secrets(database, source)
        identify = CachedIdentify(
            AccountRepository(database, source).identify,
            ttl_s=settings.limits.identify_cache_s,
            monotonic=source.monotonic,
        )
        max_message = settings.limits.max_message
        server = Server(
            identify,
            max_message=max_message,
            bounds=settings.grpc,
            registry=CollectorRegistry(),
            service_credential=secrets.service_credential,
        )
        port = server.listen(address, is_shared=is_shared) if address else 0
        reserve = _open_reserve(settings.storage)
        elsewhere = DiskReserve(settings.storage.data_dir, 0)
        for_rows = reserve if is_sqlite(settings.storage) else elsewhere
        for_blobs = elsewhere if settings.storage.blob_url else reserve
        # Services call one another over gRPC too, as everybody does.
        channel = server.channel()
        filing = inferring = editing = remembering = None
        if "accounts" in names:
            server.add(
                accounts_pb2_grpc.add_AccountsServiceServicer_to_server,
                accounts.AccountsServicer(),
                accounts.SERVICE_NAME,
            )
        if "files" in names:
            filing = Files.start(settings, database, source, CollectorRegistry(), for_blobs)
            server.add(
                files_pb2_grpc.add_FileStoreServiceServicer_to_server,
                filing.servicer,
                files.SERVICE_NAME,
            )
        if "articles" in names:
            editing = Articles.start(
                settings, database, source, CollectorRegistry(), channel, for_rows
            )
            server.add(
                articles_pb2_grpc.add_ArticleEditorServiceServicer_to_server,
                editing.servicer,
                articles.SERVICE_NAME,
            )
        if "memory" in names:
            remembering = MemoryService.start(
                settings, database, secrets, source, CollectorRegistry(), channel, for_rows
            )
            server.add(
                memory_pb2_grpc.add_MemoryServiceServicer_to_server,
                remembering.servicer,
                memory.SERVICE_NAME,
            )
        if "inference" in names:
            inferring = await Inference.start(
                settings,
                secrets,
                source,
                CollectorRegistry(),
                FileStore(channel),
                TurnClient(channel),
                sweeper_lease(
                    database, "conversions", ROUNDS * settings.limits.sweep_every_s, source
                ),
                for_blobs,
            )
            server.add(
                inference_pb2_grpc.add_InferenceServiceServicer_to_server,
                inference.InferenceServicer(inferring.engine),
                inference.SERVICE_NAME,
            )
        await server.start()
        drain_s = settings.limits.drain_s
        return cls(
            server,
            channel,
            identify,
            database,
            filing,
            inferring,
            editing,
            remembering,
            port,
            drain_s,
            asyncio.create_task(reserve.watch()),
        )

    def reload(self) -> None:
        """Read the settings again; wrong ones are logged, and those in force stay."""
        try:
            settings = settings_module.load()
        except SettingsError as error:
            log.error("settings not reloaded", extra={"error": str(error)})
            return
        for one in (self._inferring, self._remembering):
            if one is not None:
                one.reload(settings)
        log.info("settings reloaded")

    async def stop_listening(self) -> None:
        """Take no more calls from elsewhere, and let those in hand end within `limits.drain_s`.

        The callers of this process go on.
        """
        await self._server.stop_listening(self._drain_s)

    async def stop(self, hurrying: asyncio.Event | None = None) -> None:
        """Take no more calls, let those in hand end, close.

        Those in hand have `limits.drain_s`, and no more time once `hurrying` is set.
        """
        hurry = asyncio.create_task(self._hurry(hurrying or asyncio.Event()))
        await self._drain(self._drain_s)
        hurry.cancel()
        self._watching.cancel()
        for one in (self._inferring, self._filing, self._editing, self._remembering):
            if one is not None:
                await one.stop()
        await self.channel.close()
        await self._database.dispose()

    async def _drain(self, within_s: float) -> None:
        draining = [self._server.stop(within_s)]
        if self._inferring is not None:
            # An answer whose caller has left is no call any more.
            draining.append(self._inferring.settle(within_s))
        await asyncio.gather(*draining)

    async def _hurry(self, hurrying: asyncio.Event) -> None:
        await hurrying.wait()
        await self._drain(0)


def _open_reserve(storage: Storage) -> DiskReserve:
    low = Gauge(
        "gateway_storage_low",
        "Whether there is less free space than storage.min_free_bytes: 1, or 0.",
        multiprocess_mode="livemax",
        registry=CollectorRegistry(),
    )
    return DiskReserve(storage.data_dir, storage.min_free_bytes, show=low.set)
