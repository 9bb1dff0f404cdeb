"""How a process offers gRPC services."""

from collections.abc import Sequence
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
from prometheus_client import CollectorRegistry, Counter

from gateway.link.v1 import link_pb2, link_pb2_grpc
from services.common.authentication import Identify, ServiceDoor
from services.common.channels import size_options
from services.common.interceptors import CallInterceptor
from services.common.link.server import LinkServer

_LINK = link_pb2.DESCRIPTOR.services_by_name["Link"].full_name


class Server:
    """A gRPC server with health, reflection, identification and error translation.

    Every service can be called by plain gRPC calls, and over links. Services are added by
    the functions that protoc generates::

        server = Server(identify, max_message=80 << 20)
        server.add(add_InferenceServiceServicer_to_server, servicer, "gateway.inference.v1…")
        port = server.listen("127.0.0.1:0")
        await server.start()

    Args:
        identify: finds the owner of a key.
        max_message: bytes of a message.
        registry: where the limits that calls reach are counted; by default nobody reads them.
        service_credential: opens the calls that the gateway makes by itself; without it
            nobody can make them.
    """

    def __init__(
        self,
        identify: Identify,
        *,
        max_message: int,
        registry: CollectorRegistry | None = None,
        service_credential: bytes | None = None,
    ) -> None:
        limits_reached = Counter(
            "gateway_limits_reached",
            "Calls that reached a limit, by the name of its setting.",
            ("limit",),
            registry=registry or CollectorRegistry(),
        )

        def count_limit(limit: str) -> None:
            limits_reached.labels(limit).inc()

        door = ServiceDoor(service_credential)
        interceptors = [CallInterceptor(identify, door, count_limit)]
        self._server = grpc.aio.server(
            interceptors=interceptors,
            options=[*size_options(max_message), ("grpc.so_reuseport", 0)],
        )
        self._links = LinkServer(interceptors, max_message=max_message)
        self._names: list[str] = []
        self._health = health.aio.HealthServicer()

    def add(self, register: Any, servicer: object, name: str) -> None:
        """Offer `servicer` under the full service name `name`."""
        self._register(register, servicer)
        self._names.append(name)

    def listen(self, address: str) -> int:
        """Listen on `host:port` (port 0: any free one) or `unix:/path`; give the port."""
        return self._server.add_insecure_port(address)

    async def start(self) -> None:
        """Begin to serve, and say so through health."""
        self._register(health_pb2_grpc.add_HealthServicer_to_server, self._health)
        names: Sequence[str] = [*self._names, _LINK, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflecting = reflection.aio.ReflectionServicer(names)
        self._register(reflection_pb2_grpc.add_ServerReflectionServicer_to_server, reflecting)
        link_pb2_grpc.add_LinkServicer_to_server(self._links, self._server)
        for name in ("", *self._names):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls at once, give those in flight `grace_s` seconds, then cut them."""
        await self._health.enter_graceful_shutdown()
        self._links.go_away()
        await self._server.stop(grace_s)

    async def wait(self) -> None:
        """Wait until the server has stopped."""
        await self._server.wait_for_termination()

    def _register(self, register: Any, servicer: object) -> None:
        register(servicer, self._server)
        register(servicer, self._links)
