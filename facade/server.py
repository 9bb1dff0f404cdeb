"""The HTTP server: its application, its sockets and its channel to the services."""

import asyncio
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import grpc
from prometheus_client import CollectorRegistry

from facade.app import create_dispatcher, create_operations_dispatcher, plain_endpoints
from facade.context import Context
from facade.cors import Cors
from facade.dispatch import Serve
from facade.http.connection import HttpConnection
from facade.http.connections import Connections
from facade.http.parser import UnfinishedHeads
from facade.http.plain import PlainEndpoint
from facade.http.responses import Respond
from facade.inference_stub import inference_stub
from facade.internal_requests import InternalRequests
from facade.open_sockets import OpenSockets
from facade.parsing import ParserPool
from facade.process_state.certificate_metrics import CertificateMetrics
from facade.process_state.loop_delay import LoopDelay
from facade.process_state.process_metrics import ProcessMetrics
from facade.reports import AccessLog, FacadeMetrics
from facade.request_context import RequestsInProgress, request_context
from facade.request_log import LoggedRequests, RecordingParserPool, RequestLog
from facade.tls import load_certificate, server_context
from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc, admin_pb2_grpc, usage_pb2_grpc
from gateway.files.v1 import files_pb2_grpc
from gateway.inference.v1 import providers_pb2_grpc
from gateway.memory.v1 import memory_pb2_grpc, responses_pb2_grpc
from services.common.clock import Clock
from services.common.errors import from_rpc_error
from services.common.grpc.authentication import (
    CachingAuthenticator,
    Caller,
    Identify,
    call_metadata,
)
from services.common.process import logs, metrics
from services.common.process.byte_budget import ByteBudget, open_budget
from services.common.process.telemetry.spans import Telemetry
from services.common.settings import Settings

if TYPE_CHECKING:
    from ssl import SSLContext

log = logging.getLogger(__name__)

_BACKLOG = 2048
# Seconds that responses have to end after the drain, and then to be cancelled.
_CLOSE_S = 0.1
# Seconds that a facade in a process of its own caches the owner of a key: unlike the services, it
# is not notified of changes.
_IDENTIFY_CACHE_S = 3.0
# Kernel send buffer per connection, in bytes.
_UNSENT = 32 << 10


class Facade:
    """One running facade.

    Attributes:
        port: the port it listens on.
        metrics_port: the port of the operators' listener.
        internal_requests: makes requests that the gateway has for itself.
    """

    def __init__(
        self,
        public: "Listener",
        operations: "Listener",
        context: Context,
        port: int,
        metrics_port: int,
        tls: "SSLContext | None",
        registry: CollectorRegistry,
        internal_requests: InternalRequests,
    ) -> None:
        self._public = public
        self._operations = operations
        self._context = context
        loop = asyncio.get_running_loop()
        self._loop_delay = LoopDelay(loop, context.metrics)
        self._process_metrics = ProcessMetrics(loop, registry)
        self._certificates = CertificateMetrics(context.settings, registry)
        self._tls = tls
        self.port = port
        self.internal_requests = internal_requests
        self.metrics_port = metrics_port

    @classmethod
    async def start(
        cls,
        channel: grpc.aio.Channel,
        host: str,
        port: int,
        settings: Settings,
        clock: Clock,
        *,
        metrics_port: int = 0,
        identify: Identify | None = None,
        budget: ByteBudget | None = None,
        telemetry: Telemetry | None = None,
        request_log: RequestLog | None = None,
        replaces: str = "",
    ) -> Self:
        """Listen on `host:port` and on `server.metrics_host:metrics_port`.

        Facades may share both ports; 0 selects a free port. `channel` connects to the services.
        `identify` returns the owner of a key; by default the services are called. `budget` limits
        the bytes that are held for requests, together with those of services in this process; by
        default the facade has its own. `telemetry` records spans; it is None without a collector.
        `request_log` takes the entries of requests; it is None if they are not logged.
        `replaces` is why the worker ended that this one replaces, "" if there was none.

        Raises:
            OSError: a file of `server.tls_…` cannot be read, or holds no certificate or key.
        """
        tls = server_context(settings.server)
        registry = CollectorRegistry()
        counted = FacadeMetrics(registry)
        if replaces:
            counted.replaced_workers.labels(replaces).inc()
        later = asyncio.get_running_loop().call_later
        access_log = AccessLog(settings.server.access_log_per_s, clock.monotonic, later)
        limits = settings.limits
        requests = RequestsInProgress(limits.max_parallel_requests_per_user)
        counted.in_progress.follow(requests.__len__)
        has_bodies = request_log is not None and request_log.has_bodies
        parsers = RecordingParserPool if has_bodies else ParserPool
        context = Context(
            settings=settings,
            channel=channel,
            inference=inference_stub(channel),
            files=files_pb2_grpc.FileStoreServiceStub(channel),
            memory=memory_pb2_grpc.MemoryServiceStub(channel),
            responses=responses_pb2_grpc.ResponseServiceStub(channel),
            accounts=accounts_pb2_grpc.AccountsServiceStub(channel),
            admin=admin_pb2_grpc.AdminServiceStub(channel),
            usage=usage_pb2_grpc.UsageServiceStub(channel),
            providers=providers_pb2_grpc.ProviderAdminServiceStub(channel),
            identify=identify or _identify(channel, settings, clock),
            parser=parsers(limits.max_parallel_parses, limits.max_body_values),
            budget=budget or open_budget(limits),
            requests=requests,
            access_log=access_log,
            metrics=counted,
            registry=metrics.shown(registry),
            clock=clock,
            cors=Cors(origins) if (origins := settings.server.cors_origins) else None,
            telemetry=telemetry,
            has_response_cache=settings.response_cache.enabled,
            labels=settings.usage if settings.usage.has_labels else None,
            sockets=OpenSockets(limits.max_parallel_requests_per_user, counted),
        )
        serve: Serve = request_context
        if request_log is not None:
            serve = LoggedRequests(request_log).serve
        plain = plain_endpoints(serve) if settings.server.plain_requests else {}
        bound = _bound_socket(host, port)
        metrics_bound = _bound_socket(settings.server.metrics_host, metrics_port)
        respond = create_operations_dispatcher().respond
        return cls(
            await Listener.start(bound, create_dispatcher(serve).respond, context, plain, tls),
            await Listener.start(metrics_bound, respond, context, {}, None),
            context,
            bound.getsockname()[1],
            metrics_bound.getsockname()[1],
            tls,
            registry,
            InternalRequests(context, serve),
        )

    def reload_certificate(self) -> None:
        """Reload the certificate for new connections; on an error keep the current one."""
        if self._tls is not None:
            try:
                load_certificate(self._tls, self._context.settings.server)
            except OSError as error:
                log.error("certificate not reloaded", extra={"error": str(error)})
        self._certificates.read()

    async def give_notice(self, hurry: asyncio.Event) -> None:
        """Fail readiness, and serve for `server.drain_notice_s` more, or until `hurry` is set.

        Load balancers notice that this process stops before it closes a connection: requests that
        they send meanwhile are served, each with `connection: close`. A process that had no
        connection for as long does not wait: whoever would notice in time has asked in that time.
        """
        self._context.requests.is_draining = True
        notice_s = self._context.settings.server.drain_notice_s
        if self._public.connections.were_open_within(notice_s):
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), notice_s)

    async def stop(self) -> None:
        """Stop listening, let requests in progress finish (`limits.drain_s`), and close."""
        self._public.stop_listening()
        self._operations.stop_listening()
        drain_s = self._context.settings.limits.drain_s
        await self._context.requests.finish(drain_s, self._public.connections)
        await self._public.connections.close(_CLOSE_S)
        await self._operations.connections.close(_CLOSE_S)
        await self._context.parser.close()
        self._loop_delay.stop()
        self._process_metrics.stop()
        self._context.access_log.write()


def _identify(channel: grpc.aio.Channel, settings: Settings, clock: Clock) -> Identify:
    accounts = accounts_pb2_grpc.AccountsServiceStub(channel)

    async def ask(key: str) -> Caller:
        try:
            owner = await accounts.Identify(
                accounts_pb2.IdentifyRequest(),
                metadata=call_metadata(key, logs.request_id.get()),
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        return Caller(owner.user_id, owner.team_id, owner.plan, owner.key_id, tuple(owner.limits))

    ttl_s = min(settings.limits.identify_cache_s, _IDENTIFY_CACHE_S)
    return CachingAuthenticator(ask, ttl_s=ttl_s, monotonic=clock.monotonic)


class Listener:
    """A bound socket and its connections.

    Attributes:
        connections: all connections.
    """

    def __init__(self, server: asyncio.Server, connections: Connections) -> None:
        self._server = server
        self.connections = connections

    @classmethod
    async def start(
        cls,
        bound: socket.socket,
        respond: Respond,
        context: Context,
        plain: Mapping[bytes, PlainEndpoint],
        tls: "SSLContext | None",
    ) -> Self:
        """Serve requests on a bound socket: plain ones by `plain`, others by `respond`."""
        connections = Connections(context.settings.limits, context.metrics)
        heads = UnfinishedHeads()
        server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(connections, heads, context, respond, plain),
            sock=bound,
            backlog=_BACKLOG,
            ssl=tls,
            # The handshake precedes the first head, and has the same time limit.
            ssl_handshake_timeout=context.settings.limits.head_timeout_s if tls else None,
        )
        return cls(server, connections)

    def stop_listening(self) -> None:
        """Accept no more connections; those that are open go on."""
        self._server.close()


def _bound_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        # Connections inherit it. Otherwise the kernel buffers megabytes for a client that reads
        # nothing, and the answer is generated that far ahead of its reader.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
    bound.bind((host, port))
    bound.setblocking(False)
    return bound
