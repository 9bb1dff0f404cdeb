"""Builds the file store from settings."""

from typing import Self

from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.grpc.authentication import caller_id
from services.common.process.byte_budget import ByteBudget
from services.common.settings import Settings
from services.common.storage.byte_store import open_store
from services.common.storage.disk import DiskReserve
from services.common.storage.removed_files import RemoveFiles
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.files.blobs import open_blobs
from services.files.creation import FileCreator
from services.files.file_pages import FilePages
from services.files.metrics import FileMetrics
from services.files.repository import FileRepository
from services.files.servicer import FileStoreServicer
from services.files.store import FileStore
from services.files.sweeper import file_sweeper
from services.files.upload_repository import UploadRepository
from services.files.uploads import Uploads
from services.media.conversion.cache import CONVERSIONS, Cache
from services.media.conversion.pool import ConversionPool, PooledConverter


class FileService:
    """The file store of one process, with its sweeper running.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(self, servicer: FileStoreServicer, sweeper: Sweeper) -> None:
        self.servicer = servicer
        self._sweeper = sweeper
        sweeper.start()

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        counters: CollectorRegistry,
        reserve: DiskReserve,
        on_removed: RemoveFiles,
        pool: ConversionPool,
        budget: ByteBudget,
    ) -> Self:
        """Build and start the service over a migrated database.

        Args:
            settings: all settings of the gateway.
            database: the database.
            clock: the clock.
            counters: registry for the metrics.
            reserve: the free disk space that uploads require.
            on_removed: removes what other services have of removed files.
            pool: converts documents in processes of their own.
            budget: limits the bytes that the process holds.

        Raises:
            SettingsError: `storage` names no usable place for the bytes.
        """
        limits = settings.limits
        blobs = open_blobs(settings.storage)
        metrics = FileMetrics(counters)
        repository = FileRepository(database, clock, on_removed)
        creator = FileCreator(repository, blobs, limits, clock, metrics, reserve)
        in_parts = UploadRepository(database, clock)
        uploads = Uploads(in_parts, repository, blobs, limits, clock, metrics, reserve)
        lease = sweeper_lease(database, "files", limits.sweep_every_s, clock)
        store = FileStore(repository, blobs)
        conversions = open_store(settings.storage, reserve, CONVERSIONS)
        pages = FilePages(
            store,
            repository,
            Cache(conversions, metrics.page_lookups),
            PooledConverter(pool, caller_id),
            budget,
            limits.max_shown_pages,
        )
        return cls(
            FileStoreServicer(repository, store, creator, uploads, pages, limits.storage, metrics),
            file_sweeper(repository, in_parts, blobs, lease, limits, clock, metrics),
        )

    async def stop(self) -> None:
        """Stop the sweeper."""
        await self._sweeper.stop()
