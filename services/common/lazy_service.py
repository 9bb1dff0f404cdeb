"""Services whose servicers are created by the first call."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import grpc

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]


class LazyService(grpc.GenericRpcHandler):
    """Handlers of a rarely used service, whose servicer is created by the first call.

    Args:
        name: full name of the service.
        register: creates the servicer, and adds it to a server.
    """

    def __init__(self, name: str, register: Callable[[Any], None]) -> None:
        self._path = f"/{name}/"
        self._register = register
        self._handlers: Mapping[str, Handler] | None = None

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        """Return the handler of a method of the service, or None for any other method."""
        path, _, name = handler_call_details.method.rpartition("/")
        if f"{path}/" != self._path:
            return None
        return self.handlers().get(name)

    def handlers(self) -> "Mapping[str, Handler]":
        """Return the handlers of the methods by name; creates the servicer if necessary."""
        if self._handlers is None:
            self._register(self)
            assert self._handlers is not None, "the function of protoc's passes them on"
        return self._handlers

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Ignore the handlers, which are also passed to `add_registered_method_handlers`."""

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: "Mapping[str, Handler]"
    ) -> None:
        """Store the handlers of the service."""
        self._handlers = method_handlers
