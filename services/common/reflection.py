"""gRPC server reflection that is imported by the first call."""

from collections.abc import Sequence
from typing import Any

import grpc

from services.common.lazy_service import LazyService

# `reflection.SERVICE_NAME` of grpc_reflection, and the path of the service's only method.
SERVICE_NAME = "grpc.reflection.v1alpha.ServerReflection"
_METHOD = f"/{SERVICE_NAME}/ServerReflectionInfo"


class LazyReflection(grpc.GenericRpcHandler):
    """Handler of reflection calls, which few servers ever receive; the library takes 1 MB.

    Args:
        names: full names of the services.
        lazy: services whose descriptors may not have been imported yet.
    """

    def __init__(self, names: Sequence[str], lazy: Sequence[LazyService] = ()) -> None:
        self._names = names
        self._lazy = lazy
        self._handler: grpc.RpcMethodHandler[Any, Any] | None = None

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Return the handler of the reflection method, or None for any other method."""
        if handler_call_details.method != _METHOD:
            return None
        if self._handler is None:
            from grpc_reflection.v1alpha import reflection, reflection_pb2

            for service in self._lazy:
                service.handlers()
            servicer = reflection.aio.ReflectionServicer(self._names)
            self._handler = grpc.stream_stream_rpc_method_handler(
                servicer.ServerReflectionInfo,
                request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
                response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
            )
        return self._handler
