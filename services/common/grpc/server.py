"""The gRPC server of a process: authentication, health, reflection and limits."""

import asyncio
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry

from services.common.grpc.authentication import (
    Identify,
    IdentifyAdmin,
    ServiceAuthenticator,
    reject_admin,
)
from services.common.grpc.channels import is_private, size_options, tcp_server_options
from services.common.grpc.inprocess.call import InProcessServer
from services.common.grpc.inprocess.channel import InProcessChannel
from services.common.grpc.interceptors import CallInterceptor
from services.common.grpc.read_limiter import RequestReadLimiter
from services.common.grpc.tls import server_credentials
from services.common.process.metrics import Counter
from services.common.settings import Grpc


class Server:
    """A gRPC server with health checks, reflection, authentication and error conversion.

    The services can be called over gRPC at an address, and from this process over `channel`.
    Services are added with the functions that protoc generates::

        server = Server(identify, max_message_bytes=80 << 20)
        server.add(add_InferenceServiceServicer_to_server, servicer, "gateway.inference.v1…")
        port = server.listen("127.0.0.1:0")
        await server.start()

    Args:
        identify: returns the owner of an API key.
        max_message_bytes: maximum size of a message in bytes.
        bounds: further limits of a TCP port; by default those of `Grpc`.
        registry: registry for the counter of reached limits; by default it is not exported.
        service_credential: authenticates the gateway's own calls; None rejects all of them.
        identify_admin: authenticates admin keys; by default all are rejected.
    """

    def __init__(
        self,
        identify: Identify,
        *,
        max_message_bytes: int,
        bounds: Grpc | None = None,
        registry: CollectorRegistry | None = None,
        service_credential: bytes | None = None,
        identify_admin: IdentifyAdmin = reject_admin,
    ) -> None:
        limits_reached = Counter(
            "gateway_limits_reached",
            "Calls that reached a limit, by the name of its setting.",
            ("limit",),
            registry=registry or CollectorRegistry(),
        )

        def count_limit(limit: str) -> None:
            limits_reached.labels(limit).inc()

        service_authenticator = ServiceAuthenticator(service_credential)
        self._interceptor = CallInterceptor(
            identify, service_authenticator, count_limit, identify_admin
        )
        # An interceptor of its own: it caches wrapped handlers, which differ between the servers.
        inside = CallInterceptor(identify, service_authenticator, count_limit, identify_admin)
        self._inside = InProcessServer([inside], max_message_bytes=max_message_bytes)
        self._max_message = max_message_bytes
        self._bounds = bounds or Grpc()
        self._server: grpc.aio.Server | None = None
        self._read_limiter: RequestReadLimiter | None = None
        self._servicers: list[tuple[Any, object]] = []
        self._names: list[str] = []
        self._health = health.aio.HealthServicer()

    def add(self, register: Any, servicer: object, name: str) -> None:
        """Register `servicer` under the full service name `name`."""
        self._servicers.append((register, servicer))
        self._names.append(name)

    def channel(self) -> grpc.aio.Channel:
        """Return a channel for callers in this process."""
        return InProcessChannel(self._inside)

    def listen(self, address: str, *, is_shared: bool = False) -> int:
        """Listen on `host:port` (port 0: any free port) or `unix:/path`; return the port, or 0.

        A Unix socket is for programs of the same user: only the message size is limited. If a port
        `is_shared`, other processes may listen on it too.

        Raises:
            OSError: a certificate file cannot be read.
            RuntimeError: the address is not available.
        """
        if is_private(address):
            self._server = grpc.aio.server(
                interceptors=[self._interceptor], options=size_options(self._max_message)
            )
            self._server.add_insecure_port(address)
            return 0
        credentials = server_credentials(self._bounds)
        self._read_limiter = RequestReadLimiter(self._bounds)
        self._server = grpc.aio.server(
            interceptors=[self._interceptor, self._read_limiter],
            options=[
                *tcp_server_options(self._max_message, self._bounds),
                ("grpc.so_reuseport", int(is_shared)),
            ],
        )
        if credentials is None:
            return self._server.add_insecure_port(address)
        return self._server.add_secure_port(address, credentials)

    async def start(self) -> None:
        """Start serving, including the address of `listen`, and set the health status."""
        self._servicers.append((health_pb2_grpc.add_HealthServicer_to_server, self._health))
        for register, servicer in self._servicers:
            register(servicer, self._inside)
        await self.report_health(is_serving=True)
        self._inside.start()
        if self._server is not None:
            for register, servicer in self._servicers:
                register(servicer, self._server)
            names = [*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME]
            reflection.enable_server_reflection(names, self._server)
            await self._server.start()

    async def report_health(self, *, is_serving: bool) -> None:
        """Report to health checks whether the services can serve requests."""
        status = health_pb2.HealthCheckResponse
        for name in ("", *self._names):
            await self._health.set(name, status.SERVING if is_serving else status.NOT_SERVING)

    async def fail_readiness(self) -> None:
        """Report to health checks, from now on, that no service serves."""
        await self._health.enter_graceful_shutdown()

    async def stop_listening(self, grace_s: float) -> None:
        """Reject new calls of other processes, and cancel running ones after `grace_s` seconds.

        Calls of this process continue to be served.
        """
        await self.fail_readiness()
        if self._read_limiter is not None:
            self._read_limiter.stop()
        if self._server is not None:
            await self._server.stop(grace_s)

    async def stop(self, grace_s: float) -> None:
        """Reject new calls at once, and cancel running ones after `grace_s` seconds."""
        await asyncio.gather(self.stop_listening(grace_s), self._inside.stop(grace_s))
