"""The dependencies that all handlers of a facade share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import grpc
from prometheus_client import CollectorRegistry

from facade.cors import Cors
from facade.parsing import ParserPool
from facade.reports import AccessLog, FacadeMetrics
from gateway.accounts.v1 import (
    accounts_pb2_grpc,
    admin_pb2_grpc,
    invitations_pb2_grpc,
    sessions_pb2_grpc,
    stored_providers_pb2_grpc,
    usage_pb2_grpc,
)
from gateway.articles.v1 import articles_pb2_grpc
from gateway.batches.v1 import batches_pb2_grpc
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
from services.common.clock import Clock
from services.common.grpc.authentication import Identify
from services.common.process.byte_budget import ByteBudget
from services.common.process.telemetry.spans import Telemetry
from services.common.process.timer_wheel import TimerWheel
from services.common.settings import Settings, Usage

if TYPE_CHECKING:
    from facade.open_sockets import OpenSockets
    from facade.request_context import RequestsInProgress


@dataclass(frozen=True)
class Context:
    """The dependencies of a facade's handlers.

    Attributes:
        settings: the settings of the gateway.
        channel: gRPC channel to the services.
        inference: the stub of the InferenceService on it.
        files: the stub of the FileStoreService on it.
        memory: the stub of the MemoryService on it.
        responses: the stub of the ResponseService on it.
        accounts: the stub of the AccountsService on it.
        admin: the stub of the AdminService on it.
        usage: the stub of the UsageService on it.
        providers: the stub of the ProviderAdminService on it.
        identify: looks up API keys through AccountsService, with a cache.
        parser: parses bodies of chat completions, messages, responses and embeddings.
        budget: limits the bytes that are held for requests, together with the services' if they
            run in this process.
        requests: the requests in progress.
        access_log: the access log of this process.
        metrics: the metrics of this process.
        registry: the metrics exported by /metrics.
        clock: the clock.
        cors: CORS headers; None if no origin is allowed.
        telemetry: records spans and measurements; None without a collector.
        has_response_cache: whether answers are cached, so that `cache-control` of requests has an
            effect.
        labels: which labels of requests are read; None if the settings enable none.
        sockets: the open WebSockets.
        timers: timers of its event loop.
    """

    settings: Settings
    channel: grpc.aio.Channel
    inference: inference_pb2_grpc.InferenceServiceAsyncStub
    files: files_pb2_grpc.FileStoreServiceAsyncStub
    memory: memory_pb2_grpc.MemoryServiceAsyncStub
    responses: responses_pb2_grpc.ResponseServiceAsyncStub
    accounts: accounts_pb2_grpc.AccountsServiceAsyncStub
    admin: admin_pb2_grpc.AdminServiceAsyncStub
    usage: usage_pb2_grpc.UsageServiceAsyncStub
    providers: providers_pb2_grpc.ProviderAdminServiceAsyncStub
    identify: Identify
    parser: ParserPool
    budget: ByteBudget
    requests: RequestsInProgress
    access_log: AccessLog
    metrics: FacadeMetrics
    registry: CollectorRegistry
    clock: Clock
    cors: Cors | None
    telemetry: Telemetry | None
    has_response_cache: bool = False
    labels: Usage | None = None
    sockets: OpenSockets = field(kw_only=True)
    timers: TimerWheel = field(default_factory=TimerWheel)

    @cached_property
    def conversations(self) -> conversations_pb2_grpc.ConversationServiceAsyncStub:
        """The stub of the ConversationService on the channel."""
        return conversations_pb2_grpc.ConversationServiceStub(self.channel)

    @cached_property
    def chats(self) -> chats_pb2_grpc.ChatCompletionServiceAsyncStub:
        """The stub of the ChatCompletionService on the channel."""
        return chats_pb2_grpc.ChatCompletionServiceStub(self.channel)

    @cached_property
    def vector_stores(self) -> vector_stores_pb2_grpc.VectorStoreServiceAsyncStub:
        """The stub of the VectorStoreService on the channel."""
        return vector_stores_pb2_grpc.VectorStoreServiceStub(self.channel)

    @cached_property
    def batches(self) -> batches_pb2_grpc.BatchServiceAsyncStub:
        """The stub of the BatchService on the channel."""
        return batches_pb2_grpc.BatchServiceStub(self.channel)

    @cached_property
    def sessions(self) -> sessions_pb2_grpc.SessionServiceAsyncStub:
        """The stub of the SessionService on the channel."""
        return sessions_pb2_grpc.SessionServiceStub(self.channel)

    @cached_property
    def invitations(self) -> invitations_pb2_grpc.InvitationServiceAsyncStub:
        """The stub of the InvitationService on the channel."""
        return invitations_pb2_grpc.InvitationServiceStub(self.channel)

    @cached_property
    def stored_providers(self) -> stored_providers_pb2_grpc.StoredProviderServiceAsyncStub:
        """The stub of the StoredProviderService on the channel."""
        return stored_providers_pb2_grpc.StoredProviderServiceStub(self.channel)

    @cached_property
    def request_log(self) -> requests_pb2_grpc.RequestLogServiceAsyncStub:
        """The stub of the RequestLogService on the channel."""
        return requests_pb2_grpc.RequestLogServiceStub(self.channel)

    @cached_property
    def articles(self) -> articles_pb2_grpc.ArticleEditorServiceAsyncStub:
        """The stub of the ArticleEditorService on the channel."""
        return articles_pb2_grpc.ArticleEditorServiceStub(self.channel)
