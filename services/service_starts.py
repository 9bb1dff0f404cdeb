"""Start each service of a process, and add it to the server.

The service of responses renders those in the background, with code of the facade's dialect.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from facade.dialects.admin.request_log import render_entry
from facade.dialects.anthropic import batches as message_batches
from facade.dialects.logged_bodies import render_bodies
from facade.dialects.openai import batches as openai_batches
from facade.dialects.stored_responses import BackgroundRenderer
from gateway.accounts.v1 import (
    accounts_pb2_grpc,
    admin_pb2_grpc,
    invitations_pb2_grpc,
    limits_pb2_grpc,
    sessions_pb2_grpc,
    stored_providers_pb2_grpc,
    usage_pb2_grpc,
)
from gateway.articles.v1 import articles_pb2_grpc
from gateway.batches.v1 import batches_pb2_grpc
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, DIALECT_OPENAI
from gateway.files.v1 import files_pb2_grpc
from gateway.inference.v1 import inference_pb2_grpc, providers_pb2_grpc
from gateway.memory.v1 import (
    chats_pb2_grpc,
    conversations_pb2_grpc,
    memory_pb2_grpc,
    responses_pb2_grpc,
    vector_stores_pb2_grpc,
)
from gateway.requests.v1 import requests_pb2_grpc
from services.accounts import servicer as accounts
from services.accounts.admin import assembly as admin
from services.accounts.admin.assembly import Administration
from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.caller_usage import CallerUsage
from services.accounts.invitations import servicer as invitations
from services.accounts.limits import servicer as limits
from services.accounts.limits.assembly import BudgetNotifications
from services.accounts.limits.leases import LeaseRepository
from services.accounts.limits.repository import LimitRepository
from services.accounts.providers import servicer as stored_providers
from services.accounts.providers.repository import StoredProviderRepository
from services.accounts.repository import AccountRepository
from services.accounts.requests import servicer as stored_requests
from services.accounts.requests.assembly import StoredRequests
from services.accounts.sign_in import servicer as sessions
from services.accounts.sign_in.servicer import SessionServicer
from services.accounts.usage import servicer as usage
from services.accounts.usage.assembly import UsageRecords
from services.articles import assembly as articles
from services.articles.assembly import ArticleService
from services.batches import servicer as batches
from services.batches.assembly import BatchService
from services.batches.execution import BatchFormats
from services.batches.provider_calls import NO_PROVIDERS
from services.common.client_address import TrustedProxies
from services.common.clock import Clock
from services.common.grpc.delegated_keys import DelegatedKeys
from services.common.grpc.server import Server
from services.common.process.byte_budget import ByteBudget
from services.common.process.registry import ProcessRegistry
from services.common.process.telemetry.spans import Telemetry
from services.common.settings import Settings
from services.common.storage.database import is_sqlite
from services.common.storage.disk import DiskReserve
from services.common.storage.secrets import Secrets
from services.common.storage.sweeping import sweeper_lease
from services.erasures import erase_batches
from services.files import servicer as files
from services.files.assembly import FileService
from services.inference import servicer as inference
from services.inference.allowances.assembly import Allowances
from services.inference.assembly import ANSWERS, Inference, OtherServices, SharedStores
from services.inference.files import FileStoreReader
from services.inference.limits.label_limits import LabelLimits
from services.inference.limits.limiter import Limiter
from services.inference.memory.turn_client import TurnClient
from services.inference.memory.vector_stores import VectorStoreClient
from services.inference.provider_batches import ProviderBatches
from services.inference.provider_states import servicer as provider_states
from services.inference.provider_states.servicer import ProviderStates
from services.inference.provider_states.shared_folder import SharedFolder
from services.inference.store_sweeper import ROUNDS
from services.inference.usage.recorder import Send
from services.inference.usage.usage_client import UsageClient
from services.media.conversion.pool import ConversionPool
from services.memory import assembly as memory
from services.memory.assembly import MemoryService, open_queue
from services.memory.vector_stores import servicer as vector_stores
from services.memory.vector_stores.assembly import VectorStoreService
from services.memory.vector_stores.file_text import FileTexts
from services.memory.vector_stores.removed_files import RemovedFiles
from services.request_log.assembly import open_request_log
from services.request_log.grpc_calls import LoggedInference
from services.request_log.recorder import RequestRecorder
from services.responses import servicer as responses
from services.responses.assembly import ResponseService
from services.responses.chats import servicer as chats
from services.responses.conversations import servicer as conversations


@dataclass(frozen=True, slots=True)
class Shared:
    """The objects that the services of a process share.

    Attributes:
        settings: all settings of the gateway.
        clock: the clock.
        database: the database.
        secrets: the secrets of the deployment.
        keys: makes keys for the gateway's work for callers.
        server: the server of all services.
        channel: in-process channel to them; services call one another over it, like any caller.
        identify_admin: returns the owner of an admin key.
        forget: invalidates the cached owners of keys and sessions of a subject.
        sessions: begins, shows and ends sessions of the console.
        budget: limits the bytes that the process holds for requests.
        new_registry: returns a new registry of metrics.
        for_rows: the reserve of free space for rows.
        for_blobs: the reserve of free space for blobs.
        telemetry: records spans; None without a collector.
        pool: converts media and documents in processes of their own.
        stored_providers: the providers that administrators store.
        read_providers: reads them again, for this process.
    """

    settings: Settings
    clock: Clock
    database: AsyncEngine
    secrets: Secrets
    keys: DelegatedKeys
    server: Server
    channel: grpc.aio.Channel
    identify_admin: AdminAuthenticator
    forget: Callable[[str, str], None]
    sessions: SessionServicer
    budget: ByteBudget
    new_registry: Callable[[], CollectorRegistry]
    for_rows: DiskReserve
    for_blobs: DiskReserve
    telemetry: Telemetry | None
    pool: ConversionPool
    stored_providers: StoredProviderRepository
    read_providers: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Started:
    """The running parts of a process; None for those that do not run."""

    request_log: RequestRecorder | None = None
    usage: UsageRecords | None = None
    stored_requests: StoredRequests | None = None
    budgets: BudgetNotifications | None = None
    administration: Administration | None = None
    files: FileService | None = None
    articles: ArticleService | None = None
    processes: ProcessRegistry | None = None
    memory: MemoryService | None = None
    vector_stores: VectorStoreService | None = None
    responses: ResponseService | None = None
    batches: BatchService | None = None
    inference: Inference | None = None
    allowances: Allowances | None = None
    provider_states: ProviderStates | None = None


def start_limits(shared: Shared, started: Started) -> None:
    """Start the service of limits, which every process has: it reads them from the database."""
    settings, clock, database = shared.settings, shared.clock, shared.database
    started.budgets = BudgetNotifications(settings, database, clock, shared.new_registry)
    leases = LeaseRepository(database, clock, started.budgets.soft_limits)
    shared.server.add(
        limits_pb2_grpc.add_LimitServiceServicer_to_server,
        limits.LimitServicer(leases, LimitRepository(database, clock)),
        limits.SERVICE_NAME,
    )


async def _start_accounts(shared: Shared, started: Started) -> None:
    settings, clock, database = shared.settings, shared.clock, shared.database
    shared.server.add(
        accounts_pb2_grpc.add_AccountsServiceServicer_to_server,
        accounts.AccountsServicer(CallerUsage(database, clock).of),
        accounts.SERVICE_NAME,
    )
    shared.server.add(
        sessions_pb2_grpc.add_SessionServiceServicer_to_server,
        shared.sessions,
        sessions.SERVICE_NAME,
    )
    started.usage = UsageRecords.start(settings, database, clock, shared.new_registry())
    shared.server.add(
        usage_pb2_grpc.add_UsageServiceServicer_to_server,
        started.usage.servicer,
        usage.SERVICE_NAME,
    )
    started.stored_requests = StoredRequests.start(settings, database, clock, shared.for_blobs)
    shared.server.add(
        requests_pb2_grpc.add_RequestLogServiceServicer_to_server,
        started.stored_requests.servicer,
        stored_requests.SERVICE_NAME,
    )
    started.administration = Administration.start(
        settings,
        database,
        clock,
        shared.identify_admin,
        erase_batches(settings, database, clock),
        shared.new_registry(),
        shared.forget,
    )
    shared.server.add(
        admin_pb2_grpc.add_AdminServiceServicer_to_server,
        started.administration.servicer,
        admin.SERVICE_NAME,
    )
    shared.server.add(
        invitations_pb2_grpc.add_InvitationServiceServicer_to_server,
        started.administration.invitations,
        invitations.SERVICE_NAME,
    )
    shared.server.add(
        stored_providers_pb2_grpc.add_StoredProviderServiceServicer_to_server,
        stored_providers.StoredProviderServicer(
            shared.stored_providers,
            shared.read_providers,
            TrustedProxies(settings.server.trusted_proxies),
        ),
        stored_providers.SERVICE_NAME,
    )


async def _start_files(shared: Shared, started: Started) -> None:
    started.files = FileService.start(
        shared.settings,
        shared.database,
        shared.clock,
        shared.new_registry(),
        shared.for_blobs,
        RemovedFiles(open_queue(shared.database, shared.clock)),
        shared.pool,
        shared.budget,
    )
    shared.server.add(
        files_pb2_grpc.add_FileStoreServiceServicer_to_server,
        started.files.servicer,
        files.SERVICE_NAME,
    )


async def _start_articles(shared: Shared, started: Started) -> None:
    started.articles = ArticleService.start(
        shared.settings,
        shared.database,
        shared.clock,
        shared.new_registry(),
        shared.channel,
        shared.secrets.service_credential,
        shared.for_rows,
        shared.pool,
        AccountRepository(shared.database, shared.clock).names_of,
    )
    shared.server.add(
        articles_pb2_grpc.add_ArticleEditorServiceServicer_to_server,
        started.articles.servicer,
        articles.SERVICE_NAME,
    )


async def _start_memory(shared: Shared, started: Started) -> None:
    """Start the services of memory, and those of responses, conversations and chats."""
    settings = shared.settings
    # With SQLite all processes are on this machine, so a dead one can be detected.
    if is_sqlite(settings.storage):
        started.processes = ProcessRegistry.register(settings.storage.data_dir)
    started.memory = MemoryService.start(
        settings,
        shared.database,
        shared.secrets,
        shared.clock,
        shared.new_registry(),
        shared.channel,
        shared.for_rows,
        started.processes,
        shared.budget,
    )
    shared.server.add(
        memory_pb2_grpc.add_MemoryServiceServicer_to_server,
        started.memory.servicer,
        memory.SERVICE_NAME,
    )
    started.vector_stores = VectorStoreService.start(
        settings,
        shared.database,
        shared.clock,
        shared.new_registry(),
        FileTexts(
            shared.channel,
            shared.keys.to_store,
            shared.pool,
            shared.budget,
            settings.vector_stores.max_file_bytes,
            settings.vector_stores.max_pages,
        ),
        started.memory.tools,
        shared.for_rows,
        started.processes,
    )
    shared.server.add(
        vector_stores_pb2_grpc.add_VectorStoreServiceServicer_to_server,
        started.vector_stores.servicer,
        vector_stores.SERVICE_NAME,
    )
    started.responses = ResponseService.start(
        settings,
        shared.database,
        shared.clock,
        shared.new_registry(),
        shared.channel,
        shared.for_rows,
        started.processes,
        shared.budget,
        partial(BackgroundRenderer, now=shared.clock.now),
    )
    shared.server.add(
        responses_pb2_grpc.add_ResponseServiceServicer_to_server,
        started.responses.servicer,
        responses.SERVICE_NAME,
    )
    shared.server.add(
        conversations_pb2_grpc.add_ConversationServiceServicer_to_server,
        started.responses.conversations,
        conversations.SERVICE_NAME,
    )
    shared.server.add(
        chats_pb2_grpc.add_ChatCompletionServiceServicer_to_server,
        started.responses.chats,
        chats.SERVICE_NAME,
    )


async def _start_inference(shared: Shared, started: Started) -> None:
    """Start the services of inference and of the states of providers, and the request log."""
    settings, clock, channel = shared.settings, shared.clock, shared.channel
    credential = shared.secrets.service_credential
    send_usage: Send = UsageClient(channel, credential).send
    if settings.request_log.enabled:
        started.request_log = open_request_log(
            settings,
            clock,
            shared.new_registry(),
            channel,
            credential,
            render_bodies,
            render_entry,
            shared.telemetry,
        )
        send_usage = started.request_log.observing(send_usage)
    started.allowances = Allowances(
        channel, settings.limits, shared.secrets, clock, shared.new_registry()
    )
    every_s = ROUNDS * settings.limits.sweep_every_s
    started.inference = await Inference.start(
        settings,
        shared.secrets,
        clock,
        shared.new_registry(),
        OtherServices(
            FileStoreReader(channel), TurnClient(channel), send_usage, VectorStoreClient(channel)
        ),
        SharedStores(
            sweeper_lease(shared.database, "conversions", every_s, clock),
            sweeper_lease(shared.database, ANSWERS, every_s, clock),
            shared.for_blobs,
        ),
        telemetry=shared.telemetry,
        budget=shared.budget,
        admission=started.allowances.admission,
        pool=shared.pool,
        stored=await shared.stored_providers.usable(),
    )
    engine = started.inference.engine
    limiter = Limiter(
        started.allowances.admission, started.inference.cost_of, started.inference.demand_of
    )
    label_limits = None
    if (labels := started.inference.labels) is not None:
        label_limits = LabelLimits(labels, started.allowances.client, clock.monotonic)
    servicer: inference_pb2_grpc.InferenceServiceServicer = inference.InferenceServicer(
        engine, limiter, started.inference.cache, label_limits
    )
    if started.request_log is not None:
        servicer = LoggedInference(servicer, started.request_log, settings.usage, clock)
    shared.server.add(
        inference_pb2_grpc.add_InferenceServiceServicer_to_server,
        servicer,
        inference.SERVICE_NAME,
    )
    folder = SharedFolder.enter(settings.storage.data_dir)
    started.provider_states = ProviderStates(
        engine, folder, clock, started.inference.provider_tests(clock)
    )
    shared.server.add(
        providers_pb2_grpc.add_ProviderAdminServiceServicer_to_server,
        started.provider_states,
        provider_states.SERVICE_NAME,
    )


async def _start_batches(shared: Shared, started: Started) -> None:
    inference = started.inference
    started.batches = BatchService.start(
        shared.settings,
        shared.database,
        shared.clock,
        shared.new_registry(),
        shared.channel,
        shared.keys,
        shared.for_rows,
        started.processes,
        shared.budget,
        BatchFormats(
            {
                DIALECT_OPENAI: openai_batches.ENDPOINTS,
                DIALECT_ANTHROPIC: [message_batches.ENDPOINT],
            },
            openai_batches.parse_line,
            openai_batches.render_line,
        ),
        NO_PROVIDERS if inference is None else ProviderBatches(lambda: inference.engine.routes),
    )
    shared.server.add(
        batches_pb2_grpc.add_BatchServiceServicer_to_server,
        started.batches.servicer,
        batches.SERVICE_NAME,
    )


# By the names in `services.SERVICES`, in the order in which they start.
STARTS: Mapping[str, Callable[[Shared, Started], Awaitable[None]]] = {
    "accounts": _start_accounts,
    "files": _start_files,
    "articles": _start_articles,
    "memory": _start_memory,
    "inference": _start_inference,
    "batches": _start_batches,
}
