"""Interfaces of the runner: to execute a request, and to read and write the lines of files."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.batches.v1.batches_pb2 import BatchError, BatchItem, BatchResult
from gateway.conversation.v1.conversation_pb2 import Dialect
from services.common.messages.deferred_call import DeferredCall, RenderedCall


@dataclass(frozen=True, slots=True)
class BatchCall:
    """A request to execute as if its caller had sent it.

    Attributes:
        batch_id: its batch.
        dialect: its dialect.
        endpoint: its endpoint.
        headers: headers of the dialect.
        key: the key of its calls.
        body: its JSON body.
        deferred: the answer of its provider, if a batch service has it.
    """

    batch_id: str
    dialect: Dialect.ValueType
    endpoint: str
    headers: Mapping[str, str]
    key: str
    body: bytes
    deferred: DeferredCall | None = None


class Execution(Protocol):
    """The response to a request."""

    @property
    def status(self) -> int:
        """Its HTTP status."""

    @property
    def body(self) -> bytes:
        """Its JSON body."""

    @property
    def request_id(self) -> str:
        """The id of the request."""

    @property
    def retry_after_s(self) -> float | None:
        """The seconds after which a retry makes sense; None if the response names none."""

    @property
    def tokens(self) -> tuple[int, int, int]:
        """Input, output and cached tokens."""


# Executes a request, and returns its response, whatever its status.
Execute = Callable[[BatchCall], Awaitable[Execution]]
# Returns what the provider of a request is to be sent; None if the gateway has to run it. Raises
# `rate_limited` if a limit of its caller does not admit it now.
Render = Callable[[BatchCall], Awaitable[RenderedCall | None]]


@dataclass(frozen=True, slots=True)
class BatchFormats:
    """The endpoints of batches, and the lines of files in the dialect that has such files.

    Attributes:
        endpoints: the endpoints of each dialect.
        parse: parses a line of an input file, of a number from 1, for an endpoint.
        render: returns the line of a result, with its line feed.
    """

    endpoints: Mapping[Dialect.ValueType, Collection[str]]
    parse: Callable[[bytes, int, str], BatchItem | BatchError]
    render: Callable[[BatchResult], bytes]
