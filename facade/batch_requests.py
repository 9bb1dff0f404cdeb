"""The requests of batches: each is made as if its caller had sent it."""

from collections.abc import Mapping
from typing import Final, Protocol

from facade.dialects.openai.batches import ENDPOINTS
from facade.internal_requests import InternalResponse, Post, RenderRequest
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Dialect
from services.common.labels import TAGS_KEY, write_tags
from services.common.messages.deferred_call import DeferredCall, RenderedCall

_MESSAGES: Final = "/beta/v1/messages"
# The tag of the requests of a batch, with its id; it is recorded if `usage.tags` has it.
_TAG: Final = "batch"


class BatchedRequest(Protocol):
    """A request of a batch, as the service of batches describes it."""

    @property
    def batch_id(self) -> str:
        """Its batch."""

    @property
    def dialect(self) -> Dialect.ValueType:
        """Its dialect."""

    @property
    def endpoint(self) -> str:
        """Its endpoint: a path of the dialect."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the dialect."""

    @property
    def key(self) -> str:
        """The key that stands for its caller's."""

    @property
    def body(self) -> bytes:
        """Its JSON body."""

    @property
    def deferred(self) -> DeferredCall | None:
        """The answer of its provider, if a batch service has it."""


async def execute_batch_request(post: Post, call: BatchedRequest) -> InternalResponse:
    """Execute a request of a batch, and return its response, whatever its status."""
    headers: Mapping[str, str] = {**call.headers, TAGS_KEY: write_tags({_TAG: call.batch_id})}
    return await post(_path(call), call.key, headers, call.body, call.deferred)


async def render_batch_request(render: RenderRequest, call: BatchedRequest) -> RenderedCall | None:
    """Return what the provider of a request is to be sent; None if the gateway has to run it.

    Raises:
        GatewayError: rate_limited, a limit of the caller does not admit it now.
    """
    headers: Mapping[str, str] = {**call.headers, TAGS_KEY: write_tags({_TAG: call.batch_id})}
    return await render(_path(call), call.key, headers, call.body)


def _path(call: BatchedRequest) -> str:
    return _MESSAGES if call.dialect == DIALECT_ANTHROPIC else ENDPOINTS[call.endpoint]
