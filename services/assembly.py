"""The composition root: builds the gRPC services of one process from settings.

`services.worker.worker` adds the facade.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.assembly import admin_authenticator
from services.accounts.change_watch import ChangeWatch
from services.accounts.delegated import identify_with
from services.accounts.limits.webhook import signing_key
from services.accounts.providers.repository import StoredProviderRepository
from services.accounts.repository import AccountRepository
from services.accounts.sign_in.administrators import Administrators
from services.accounts.sign_in.assembly import SignIns
from services.batches.execution import Execute, Render
from services.common import settings as settings_module
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import CachingAuthenticator, Identify
from services.common.grpc.delegated_keys import DelegatedKeys
from services.common.grpc.server import Server
from services.common.process.byte_budget import ByteBudget, open_budget
from services.common.process.metrics import Gauge
from services.common.process.telemetry.spans import Telemetry
from services.common.settings import Settings, SettingsError, Storage
from services.common.storage.database import is_sqlite, open_engine
from services.common.storage.database_watch import DatabaseWatch
from services.common.storage.disk import DiskReserve
from services.common.storage.migrations.runner import migrate
from services.common.storage.secrets import load_secrets
from services.common.storage.sqlite_log import allocate_log
from services.media.conversion.pool import ConversionPool
from services.request_log.recorder import RequestRecorder
from services.service_starts import STARTS, Shared, Started, start_limits

log = logging.getLogger(__name__)


class Services:
    """The running gRPC services of one process.

    Attributes:
        channel: in-process channel to the services.
        identify: returns the owner of a key, with a cache.
        budget: limits the bytes that this process holds for requests.
        port: port of the server; 0 on a Unix socket, or without an address.
    """

    def __init__(
        self,
        server: Server,
        channel: grpc.aio.Channel,
        identify: Identify,
        database: AsyncEngine,
        budget: ByteBudget,
        pool: ConversionPool,
        port: int,
        drain_s: float,
    ) -> None:
        self.channel = channel
        self.identify = identify
        self.budget = budget
        self.port = port
        self._server = server
        self._database = database
        self._pool = pool
        self._drain_s = drain_s
        self._sign_ins: SignIns | None = None
        self._started = Started()
        self._stored_providers: StoredProviderRepository | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._reading: asyncio.Task[None] | None = None
        self._reading_providers = asyncio.Lock()

    @property
    def request_log(self) -> RequestRecorder | None:
        """The recorder of requests; None if they are not logged."""
        return self._started.request_log

    @classmethod
    async def start(
        cls,
        names: Sequence[str],
        address: str,
        settings: Settings,
        clock: Clock,
        *,
        is_shared: bool = False,
        telemetry: Telemetry | None = None,
    ) -> Self:
        """Build the services called `names` and serve them.

        Args:
            names: some of `services.SERVICES`.
            address: address for calls of other processes; "" for calls over `channel` only.
            settings: all settings of the gateway.
            clock: the clock.
            is_shared: whether other processes may listen on the same port.
            telemetry: records spans; None without a collector.
        """
        # The database, and the objects that all services share.
        database = open_engine(settings.storage)
        await migrate(database)
        secrets = await load_secrets(database, clock)
        if is_sqlite(settings.storage):
            allocate_log(settings.storage.data_dir)
        keys = DelegatedKeys(secrets.service_credential, clock)
        sign_ins = SignIns(settings, database, clock, secrets.service_credential)
        identify = CachingAuthenticator(
            identify_with(AccountRepository(database, clock), keys, sign_ins.identify),
            ttl_s=settings.limits.identify_cache_s,
            monotonic=clock.monotonic,
        )
        identify_admin = admin_authenticator(settings, database, clock)
        stored_providers = StoredProviderRepository(database, clock, settings)

        # The server. Services call one another over gRPC, like any caller.
        server = Server(
            identify,
            max_message_bytes=settings.limits.max_message_bytes,
            bounds=settings.grpc,
            registry=CollectorRegistry(),
            service_credential=secrets.service_credential,
            identify_admin=Administrators(identify_admin, identify),
        )
        port = server.listen(address, is_shared=is_shared) if address else 0
        channel = server.channel()
        budget = open_budget(settings.limits)
        pool = ConversionPool(settings.limits, CollectorRegistry())
        drain_s = settings.limits.drain_s
        services = cls(server, channel, identify, database, budget, pool, port, drain_s)

        # The reserve of free space on the local disk, if rows or blobs are stored there.
        local = _open_reserve(settings.storage)
        unbounded = DiskReserve(settings.storage.data_dir, 0)
        for_rows = local if is_sqlite(settings.storage) else unbounded
        for_blobs = unbounded if settings.storage.blob_url else local

        # The services.
        shared = Shared(
            settings,
            clock,
            database,
            secrets,
            keys,
            server,
            channel,
            identify_admin,
            identify.forget,
            sign_ins.servicer(identify_admin, identify),
            budget,
            CollectorRegistry,
            for_rows,
            for_blobs,
            telemetry,
            services._pool,
            stored_providers,
            services._read_providers,
        )
        services._sign_ins = sign_ins
        services._stored_providers = stored_providers
        started = services._started
        start_limits(shared, started)
        for name, start in STARTS.items():
            if name in names:
                await start(shared, started)

        await server.start()
        if started.request_log is not None:
            started.request_log.start()
        if started.budgets is not None:
            started.budgets.start()
        storage = settings.storage
        watch = DatabaseWatch(
            database,
            0 if is_sqlite(storage) else storage.database_connections,
            CollectorRegistry(),
            services._report_database,
        )
        changes = ChangeWatch(
            database,
            clock,
            identify,
            identify_admin,
            lambda: stored_providers.can_store,
            services._read_providers,
        )
        services._watching = [
            asyncio.create_task(local.watch()),
            asyncio.create_task(watch.run()),
            asyncio.create_task(changes.run()),
        ]
        return services

    def run_batches(self, execute: Execute, render: Render) -> None:
        """Begin to run the requests of batches; see `BatchService.run`."""
        if self._started.batches is not None:
            self._started.batches.run(execute, render)

    def reload(self) -> None:
        """Reload the settings; if they are invalid, log an error and keep the current ones."""
        try:
            settings = settings_module.load()
            started = self._started
            # The first ones may still reject the settings.
            signing_key(settings.budgets)
            if self._stored_providers is not None:
                self._stored_providers.configure(settings)
            for service in (
                *(started.administration, started.budgets),
                *(started.inference, started.memory),
            ):
                if service is not None:
                    service.reload(settings)
        except SettingsError as error:
            log.error("settings not reloaded", extra={"error": str(error)})
            return
        log.info("settings reloaded")
        self._reading = asyncio.create_task(self._read_again())

    async def _read_again(self) -> None:
        """Read the stored providers by the reloaded settings."""
        try:
            await self._read_providers()
        except GatewayError as error:
            log.error("stored providers could not be read", extra={"error": error.message})

    async def _read_providers(self) -> None:
        """Read the stored providers, and apply them to this process.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        if self._started.inference is None or self._stored_providers is None:
            return
        # One after the other: an earlier reading must not replace a later one.
        async with self._reading_providers:
            self._started.inference.set_stored(await self._stored_providers.usable())

    async def _report_database(self, answers: bool) -> None:
        """Fail readiness while the database does not answer."""
        await self._server.report_health(is_serving=answers)

    async def fail_readiness(self) -> None:
        """Report to health checks that the process stops; calls continue to be served."""
        await self._server.fail_readiness()

    async def stop_listening(self) -> None:
        """Reject new calls of other processes, and drain running ones for `limits.drain_s`.

        Calls of this process continue to be served. Background responses have the same time. Calls
        that wait for a document to change are answered.
        """
        if self._started.articles is not None:
            self._started.articles.end_waiting()
        await asyncio.gather(
            self._server.stop_listening(self._drain_s), self._drain_responses(self._drain_s)
        )

    async def stop(self, cancelling: asyncio.Event | None = None) -> None:
        """Reject new calls, drain running ones, and close.

        Running calls are cancelled after `limits.drain_s`, or as soon as `cancelling` is set.
        """
        started = self._started
        cancellation = asyncio.create_task(self._drain_when_set(cancelling or asyncio.Event()))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._drain_s
        # First what uses limits: calls of other processes, and answers whose callers have left.
        await self._drain_limited(self._drain_s)
        if started.allowances is not None:
            await started.allowances.stop()
        if started.inference is not None:
            # Before the accounts service stops; later usage stays in the journal.
            await started.inference.record_usage()
        if started.request_log is not None:
            await started.request_log.settle()
        await self._drain(max(0, deadline - loop.time()))
        cancellation.cancel()
        background = [*self._watching, *([] if self._reading is None else [self._reading])]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        for service in (
            started.batches,
            started.provider_states,
            started.inference,
            started.files,
            started.articles,
            started.vector_stores,
            started.memory,
            started.responses,
            started.administration,
            started.request_log,
            started.stored_requests,
            started.usage,
            started.budgets,
        ):
            if service is not None:
                await service.stop()
        if self._sign_ins is not None:
            await self._sign_ins.close()
        await self._pool.close()
        if started.processes is not None:
            started.processes.unregister()
        await self.channel.close()
        await self._database.dispose()

    async def _drain_limited(self, within_s: float) -> None:
        draining = [self._server.stop_listening(within_s), self._drain_responses(within_s)]
        if self._started.inference is not None:
            draining.append(self._started.inference.drain(within_s))
        await asyncio.gather(*draining)

    async def _drain(self, within_s: float) -> None:
        draining = [self._server.stop(within_s), self._drain_responses(within_s)]
        if self._started.inference is not None:
            # Runs whose callers have left no longer belong to a call.
            draining.append(self._started.inference.drain(within_s))
        await asyncio.gather(*draining)

    async def _drain_responses(self, within_s: float) -> None:
        """Wait for background responses, and for the requests of batches that have begun."""
        started = self._started
        await asyncio.gather(
            *([] if started.responses is None else [started.responses.drain(within_s)]),
            *([] if started.batches is None else [started.batches.drain(within_s)]),
        )

    async def _drain_when_set(self, cancelling: asyncio.Event) -> None:
        await cancelling.wait()
        await self._drain(0)


def _open_reserve(storage: Storage) -> DiskReserve:
    low = Gauge(
        "gateway_storage_low",
        "Whether less disk space is free than storage.min_free_bytes: 1 or 0.",
        multiprocess_mode="livemax",
        registry=CollectorRegistry(),
    )
    return DiskReserve(storage.data_dir, storage.min_free_bytes, show=low.set)
