"""How a process offers gRPC services."""

from collections.abc import Sequence
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.common.authentication import Identify
from services.common.channels import size_options
from services.common.interceptors import CallInterceptor


class Server:
    """A gRPC server with health, reflection, identification and error translation.

    Services are added by the functions that protoc generates::

        server = Server(identify, max_message=80 << 20)
        server.add(add_InferenceServiceServicer_to_server, servicer, "gateway.inference.v1…")
        port = server.listen("127.0.0.1:0")
        await server.start()
    """

    def __init__(self, identify: Identify, *, max_message: int) -> None:
        self._server = grpc.aio.server(
            interceptors=[CallInterceptor(identify)],
            options=[*size_options(max_message), ("grpc.so_reuseport", 0)],
        )
        self._names: list[str] = []
        self._health = health.aio.HealthServicer()

    def add(self, register: Any, servicer: object, name: str) -> None:
        """Offer `servicer` under the full service name `name`."""
        register(servicer, self._server)
        self._names.append(name)

    def listen(self, address: str) -> int:
        """Listen on `host:port` (port 0: any free one) or `unix:/path`; give the port."""
        return self._server.add_insecure_port(address)

    async def start(self) -> None:
        """Begin to serve, and say so through health."""
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names: Sequence[str] = [*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self._server)
        for name in ("", *self._names):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls at once, give those in flight `grace_s` seconds, then cut them."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)

    async def wait(self) -> None:
        """Wait until the server has stopped."""
        await self._server.wait_for_termination()
