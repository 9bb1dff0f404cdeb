"""The composition root: builds the gRPC services of one process from settings.

The service of responses renders those in the background, with code of the facade's dialect.
`services.worker.worker` adds the facade.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from facade.dialects.admin.request_log import render_entry
from facade.dialects.logged_bodies import render_bodies
from facade.dialects.stored_responses import BackgroundRenderer
from gateway.accounts.v1 import (
    accounts_pb2_grpc,
    admin_pb2_grpc,
    limits_pb2_grpc,
    requests_pb2_grpc,
    usage_pb2_grpc,
)
from gateway.articles.v1 import articles_pb2_grpc
from gateway.files.v1 import files_pb2_grpc
from gateway.inference.v1 import inference_pb2_grpc, providers_pb2_grpc
from gateway.memory.v1 import conversations_pb2_grpc, memory_pb2_grpc, responses_pb2_grpc
from services.accounts import servicer as accounts
from services.accounts.admin import assembly as admin
from services.accounts.admin.assembly import Administration, admin_authenticator
from services.accounts.caller_usage import CallerUsage
from services.accounts.change_watch import ChangeWatch
from services.accounts.development import redeem_sign_in_code
from services.accounts.limits import servicer as limits
from services.accounts.limits.leases import LeaseRepository
from services.accounts.limits.notifications import BudgetNotifier
from services.accounts.limits.soft_limits import SoftLimits
from services.accounts.limits.webhook import Webhook
from services.accounts.repository import AccountRepository
from services.accounts.requests import servicer as stored_requests
from services.accounts.requests.assembly import StoredRequests
from services.accounts.usage import servicer as usage
from services.accounts.usage.assembly import UsageRecords
from services.articles import assembly as articles
from services.articles.assembly import ArticleService
from services.common import settings as settings_module
from services.common.clock import Clock
from services.common.grpc.authentication import CachingAuthenticator, Identify
from services.common.grpc.server import Server
from services.common.process.byte_budget import ByteBudget, open_budget
from services.common.process.metrics import Gauge
from services.common.process.registry import ProcessRegistry
from services.common.process.telemetry.spans import Telemetry
from services.common.settings import Settings, SettingsError, Storage
from services.common.storage.database import is_sqlite, open_engine
from services.common.storage.database_watch import DatabaseWatch
from services.common.storage.disk import DiskReserve
from services.common.storage.migrations.runner import migrate
from services.common.storage.secrets import load_secrets
from services.common.storage.sqlite_log import allocate_log
from services.common.storage.sweeping import sweeper_lease
from services.erasures import erase_batches
from services.files import servicer as files
from services.files.assembly import FileService
from services.inference import servicer as inference
from services.inference.allowances.assembly import Allowances
from services.inference.assembly import ANSWERS, Inference, OtherServices, SharedStores
from services.inference.files import FileStoreReader
from services.inference.limits.limiter import Limiter
from services.inference.memory.turn_client import TurnClient
from services.inference.provider_states import servicer as provider_states
from services.inference.provider_states.shared_folder import SharedFolder
from services.inference.store_sweeper import ROUNDS
from services.inference.usage.recorder import Send
from services.inference.usage.usage_client import UsageClient
from services.memory import assembly as memory
from services.memory.assembly import MemoryService
from services.request_log.assembly import open_request_log
from services.request_log.grpc_calls import LoggedInference
from services.request_log.recorder import RequestRecorder
from services.responses import servicer as responses
from services.responses.assembly import ResponseService
from services.responses.conversations import servicer as conversations

log = logging.getLogger(__name__)


class Services:
    """The running gRPC services of one process.

    Attributes:
        channel: in-process channel to the services.
        identify: returns the owner of a key, with a cache.
        budget: limits the bytes that this process holds for requests.
        port: port of the server; 0 on a Unix socket, or without an address.
        request_log: takes the entries of requests; None if requests are not logged.
    """

    def __init__(
        self,
        server: Server,
        channel: grpc.aio.Channel,
        identify: Identify,
        database: AsyncEngine,
        budget: ByteBudget,
        port: int,
        drain_s: float,
    ) -> None:
        self.channel = channel
        self.identify = identify
        self.budget = budget
        self.port = port
        self._server = server
        self._database = database
        self._drain_s = drain_s
        self.request_log: RequestRecorder | None = None
        self._usage: UsageRecords | None = None
        self._stored_requests: StoredRequests | None = None
        self._notifier: BudgetNotifier | None = None
        self._administration: Administration | None = None
        self._files: FileService | None = None
        self._articles: ArticleService | None = None
        self._processes: ProcessRegistry | None = None
        self._memory: MemoryService | None = None
        self._responses: ResponseService | None = None
        self._inference: Inference | None = None
        self._allowances: Allowances | None = None
        self._provider_states: provider_states.ProviderStates | None = None
        self._watching: list[asyncio.Task[None]] = []

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
        identify = CachingAuthenticator(
            AccountRepository(database, clock).identify,
            ttl_s=settings.limits.identify_cache_s,
            monotonic=clock.monotonic,
        )
        identify_admin = admin_authenticator(settings, database, clock)

        # The server. Services call one another over gRPC, like any caller.
        server = Server(
            identify,
            max_message_bytes=settings.limits.max_message_bytes,
            bounds=settings.grpc,
            registry=CollectorRegistry(),
            service_credential=secrets.service_credential,
            identify_admin=identify_admin,
        )
        port = server.listen(address, is_shared=is_shared) if address else 0
        channel = server.channel()
        budget = open_budget(settings.limits)
        services = cls(server, channel, identify, database, budget, port, settings.limits.drain_s)

        # The reserve of free space on the local disk, if rows or blobs are stored there.
        local = _open_reserve(settings.storage)
        unbounded = DiskReserve(settings.storage.data_dir, 0)
        for_rows = local if is_sqlite(settings.storage) else unbounded
        for_blobs = unbounded if settings.storage.blob_url else local

        # Every process reads key owners and limits from the database itself.
        has_webhook = bool(settings.budgets.webhook_url)
        soft_limits = SoftLimits(clock, CollectorRegistry(), notifies=has_webhook)
        server.add(
            limits_pb2_grpc.add_LimitServiceServicer_to_server,
            limits.LimitServicer(LeaseRepository(database, clock, soft_limits)),
            limits.SERVICE_NAME,
        )
        services._notifier = _notifier(settings, database, clock, soft_limits)

        # The services.
        if "accounts" in names:
            server.add(
                accounts_pb2_grpc.add_AccountsServiceServicer_to_server,
                accounts.AccountsServicer(
                    partial(
                        redeem_sign_in_code, AccountRepository(database, clock), settings, clock
                    ),
                    CallerUsage(database, clock).of,
                ),
                accounts.SERVICE_NAME,
            )
            services._usage = UsageRecords.start(settings, database, clock, CollectorRegistry())
            server.add(
                usage_pb2_grpc.add_UsageServiceServicer_to_server,
                services._usage.servicer,
                usage.SERVICE_NAME,
            )
            services._stored_requests = StoredRequests.start(settings, database, clock, for_blobs)
            server.add(
                requests_pb2_grpc.add_RequestLogServiceServicer_to_server,
                services._stored_requests.servicer,
                stored_requests.SERVICE_NAME,
            )
            services._administration = Administration.start(
                settings,
                database,
                clock,
                identify_admin,
                erase_batches(settings, database, clock),
                CollectorRegistry(),
            )
            server.add(
                admin_pb2_grpc.add_AdminServiceServicer_to_server,
                services._administration.servicer,
                admin.SERVICE_NAME,
            )
        if "files" in names:
            services._files = FileService.start(
                settings, database, clock, CollectorRegistry(), for_blobs
            )
            server.add(
                files_pb2_grpc.add_FileStoreServiceServicer_to_server,
                services._files.servicer,
                files.SERVICE_NAME,
            )
        if "articles" in names:
            services._articles = ArticleService.start(
                settings,
                database,
                clock,
                CollectorRegistry(),
                channel,
                secrets.service_credential,
                for_rows,
            )
            server.add(
                articles_pb2_grpc.add_ArticleEditorServiceServicer_to_server,
                services._articles.servicer,
                articles.SERVICE_NAME,
            )
        if "memory" in names:
            # With SQLite all processes are on this machine, so a dead one can be detected.
            if is_sqlite(settings.storage):
                services._processes = ProcessRegistry.register(settings.storage.data_dir)
            services._memory = MemoryService.start(
                settings,
                database,
                secrets,
                clock,
                CollectorRegistry(),
                channel,
                for_rows,
                services._processes,
                budget,
            )
            server.add(
                memory_pb2_grpc.add_MemoryServiceServicer_to_server,
                services._memory.servicer,
                memory.SERVICE_NAME,
            )
            services._responses = ResponseService.start(
                settings,
                database,
                clock,
                CollectorRegistry(),
                channel,
                for_rows,
                services._processes,
                budget,
                partial(BackgroundRenderer, now=clock.now),
            )
            server.add(
                responses_pb2_grpc.add_ResponseServiceServicer_to_server,
                services._responses.servicer,
                responses.SERVICE_NAME,
            )
            server.add(
                conversations_pb2_grpc.add_ConversationServiceServicer_to_server,
                services._responses.conversations,
                conversations.SERVICE_NAME,
            )
        if "inference" in names:
            every_s = ROUNDS * settings.limits.sweep_every_s
            send_usage: Send = UsageClient(channel, secrets.service_credential).send
            if settings.request_log.enabled:
                services.request_log = open_request_log(
                    settings,
                    clock,
                    CollectorRegistry(),
                    channel,
                    secrets.service_credential,
                    render_bodies,
                    render_entry,
                    telemetry,
                )
                send_usage = services.request_log.observing(send_usage)
            services._allowances = Allowances(
                channel, settings.limits, secrets, clock, CollectorRegistry()
            )
            services._inference = await Inference.start(
                settings,
                secrets,
                clock,
                CollectorRegistry(),
                OtherServices(
                    FileStoreReader(channel),
                    TurnClient(channel),
                    send_usage,
                ),
                SharedStores(
                    sweeper_lease(database, "conversions", every_s, clock),
                    sweeper_lease(database, ANSWERS, every_s, clock),
                    for_blobs,
                ),
                telemetry=telemetry,
                budget=budget,
                admission=services._allowances.admission,
            )
            limiter = Limiter(
                services._allowances.admission,
                services._inference.cost_of,
                services._inference.demand_of,
            )
            servicer: inference_pb2_grpc.InferenceServiceServicer = inference.InferenceServicer(
                services._inference.engine,
                limiter,
                services._inference.cache,
            )
            if services.request_log is not None:
                servicer = LoggedInference(servicer, services.request_log, clock)
            server.add(
                inference_pb2_grpc.add_InferenceServiceServicer_to_server,
                servicer,
                inference.SERVICE_NAME,
            )
            services._provider_states = provider_states.ProviderStates(
                services._inference.engine, SharedFolder.enter(settings.storage.data_dir), clock
            )
            server.add(
                providers_pb2_grpc.add_ProviderAdminServiceServicer_to_server,
                services._provider_states,
                provider_states.SERVICE_NAME,
            )

        await server.start()
        if services.request_log is not None:
            services.request_log.start()
        if services._notifier is not None:
            services._notifier.start()
        storage = settings.storage
        watch = DatabaseWatch(
            database,
            0 if is_sqlite(storage) else storage.database_connections,
            CollectorRegistry(),
            services._report_database,
        )
        changes = ChangeWatch(database, clock, identify, identify_admin)
        services._watching = [
            asyncio.create_task(local.watch()),
            asyncio.create_task(watch.run()),
            asyncio.create_task(changes.run()),
        ]
        return services

    def reload(self) -> None:
        """Reload the settings; if they are invalid, log an error and keep the current ones."""
        try:
            settings = settings_module.load()
            # Administration first: it may still reject the settings.
            for service in (self._administration, self._inference, self._memory):
                if service is not None:
                    service.reload(settings)
        except SettingsError as error:
            log.error("settings not reloaded", extra={"error": str(error)})
            return
        log.info("settings reloaded")

    async def _report_database(self, answers: bool) -> None:
        """Fail readiness while the database does not answer."""
        await self._server.report_health(is_serving=answers)

    async def fail_readiness(self) -> None:
        """Report to health checks that the process stops; calls continue to be served."""
        await self._server.fail_readiness()

    async def stop_listening(self) -> None:
        """Reject new calls of other processes, and drain running ones for `limits.drain_s`.

        Calls of this process continue to be served. Background responses have the same time.
        """
        await asyncio.gather(
            self._server.stop_listening(self._drain_s), self._drain_responses(self._drain_s)
        )

    async def stop(self, cancelling: asyncio.Event | None = None) -> None:
        """Reject new calls, drain running ones, and close.

        Running calls are cancelled after `limits.drain_s`, or as soon as `cancelling` is set.
        """
        cancellation = asyncio.create_task(self._drain_when_set(cancelling or asyncio.Event()))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._drain_s
        # First what uses limits: calls of other processes, and answers whose callers have left.
        await self._drain_limited(self._drain_s)
        if self._allowances is not None:
            await self._allowances.stop()
        if self._inference is not None:
            # Before the accounts service stops; later usage stays in the journal.
            await self._inference.record_usage()
        if self.request_log is not None:
            await self.request_log.settle()
        await self._drain(max(0, deadline - loop.time()))
        cancellation.cancel()
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        for service in (
            self._provider_states,
            self._inference,
            self._files,
            self._articles,
            self._memory,
            self._responses,
            self._administration,
            self.request_log,
            self._stored_requests,
            self._usage,
            self._notifier,
        ):
            if service is not None:
                await service.stop()
        if self._processes is not None:
            self._processes.unregister()
        await self.channel.close()
        await self._database.dispose()

    async def _drain_limited(self, within_s: float) -> None:
        draining = [self._server.stop_listening(within_s), self._drain_responses(within_s)]
        if self._inference is not None:
            draining.append(self._inference.drain(within_s))
        await asyncio.gather(*draining)

    async def _drain(self, within_s: float) -> None:
        draining = [self._server.stop(within_s), self._drain_responses(within_s)]
        if self._inference is not None:
            # Runs whose callers have left no longer belong to a call.
            draining.append(self._inference.drain(within_s))
        await asyncio.gather(*draining)

    async def _drain_responses(self, within_s: float) -> None:
        if self._responses is not None:
            await self._responses.drain(within_s)

    async def _drain_when_set(self, cancelling: asyncio.Event) -> None:
        await cancelling.wait()
        await self._drain(0)


def _notifier(
    settings: Settings, database: AsyncEngine, clock: Clock, soft_limits: SoftLimits
) -> BudgetNotifier | None:
    """Return what delivers notifications about budgets, or None without a webhook."""
    if not settings.budgets.webhook_url:
        return None
    webhook, registry = Webhook(settings, clock), CollectorRegistry()
    return BudgetNotifier(database, clock, webhook, soft_limits.has_new, registry)


def _open_reserve(storage: Storage) -> DiskReserve:
    low = Gauge(
        "gateway_storage_low",
        "Whether less disk space is free than storage.min_free_bytes: 1 or 0.",
        multiprocess_mode="livemax",
        registry=CollectorRegistry(),
    )
    return DiskReserve(storage.data_dir, storage.min_free_bytes, show=low.set)
