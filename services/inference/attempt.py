"""One attempt: a call of a provider, and the filters of its answer."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Dialect, Usage
from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError, unsupported
from services.common.grpc.dialect_headers import of_answer
from services.common.messages.deferred_call import DeferredCall
from services.common.messages.passthrough_answer import AnswerRoute, PassthroughAnswer, TokenCounts
from services.inference.answer_facts import AnswerFacts
from services.inference.pricing.iterations import with_compactions
from services.inference.providers.base import Call
from services.inference.request.thinking import CLAUDES, Signer
from services.inference.stream.batches import Batches
from services.inference.stream.filters import Batch, StreamFilter
from services.inference.stream.property_names import PropertyNameFilter
from services.inference.stream.sign_thinking import ThinkingSigner


class Answering(Protocol):
    """The part of a `Provider` that attempts use."""

    dialect: Dialect.ValueType
    checks_signatures: bool

    def whole(self, call: Call) -> Awaitable[Sequence[Event] | PassthroughAnswer]:
        """Return all events of a whole answer; see `Provider`."""
        ...

    def stream(self, call: Call) -> Batches:
        """Yield the events of a streamed answer; see `Provider`."""
        ...


class Attempt:
    """One call of one provider for a request.

    Args:
        call: the arguments of the call.
        provider: what to call: a provider, or what makes answers of its vectors.
        filters: applied to the events of the answer, in order.
        left_out: number of remembered turns left out of the request.
        adapted: parts that were converted for the model; see `RouteInfo.adapted`.
        signer: signs the thinking, before the filters, unless the provider verifies signatures and
            the caller's dialect has a place for them; None if nothing is signed.

    Attributes:
        call: see the argument.
        provider: see the argument.
        facts: collects what a span says of the answer; None without a collector.
        usage: the latest usage that the provider has reported, with all that it bills, or None.
        is_done: whether the rest of the provider's answer is not needed.
        stream: whether to stream the answer.
    """

    __slots__ = (
        *("_adapted", "_filters", "_has_begun", "_left_out", "_signer"),
        *("call", "facts", "is_done", "provider", "stream", "usage"),
    )

    def __init__(
        self,
        call: Call,
        provider: Answering,
        filters: Sequence[StreamFilter] = (),
        left_out: int = 0,
        adapted: Sequence[str] = (),
        signer: Signer | None = None,
    ) -> None:
        self.call = call
        self.provider = provider
        self._filters = filters
        self._left_out = left_out
        self._adapted = adapted
        self._signer = signer
        self._has_begun = False
        self.facts: AnswerFacts | None = None
        self.usage: Usage | TokenCounts | None = None
        self.is_done = False
        self.stream = call.stream

    def defer(self, deferred: DeferredCall) -> None:
        """Send the call by a batch service in place of the HTTP request.

        Raises:
            GatewayError: unsupported, the answer has to be streamed.
        """
        if self.stream:
            raise unsupported("model", "model: no batch service runs this request")
        self.call.deferred = deferred

    def apply_filters(self, batch: Batch) -> Batch:
        """Apply the filters to a batch; return the resulting events, possibly none."""
        if not self._has_begun:
            # Filters that depend on what was sent, and that of the gateway's signatures, are added
            # to the first batch: most whole answers have no events.
            self._has_begun = True
            if names := self.call.property_names:
                self._filters = (PropertyNameFilter(names), *self._filters)
            # Chats need no signature, and have the provider's own in fields of their own.
            request, provider = self.call.request, self.provider
            wraps = request.wraps_signatures and provider.dialect != request.dialect
            is_signed = provider.checks_signatures and not wraps
            if self._signer is not None and not (is_signed or request.requires_single_text):
                prefix = CLAUDES if provider.checks_signatures else ""
                signing = ThinkingSigner(self._signer, self.call.target.upstream, prefix)
                self._filters = (signing, *self._filters)
        for event in batch:
            if event.HasField("usage"):
                usage = event.usage
                lists_iterations = usage.extra.dialect == DIALECT_ANTHROPIC
                self.usage = with_compactions(usage) if lists_iterations else usage
        if self.facts is not None:
            self.facts.add_events(batch)
        for one in self._filters:
            batch = one.feed(batch)
            if one.is_done:
                self.is_done = True
        return batch

    def report_whole(self, answer: PassthroughAnswer) -> None:
        """Take the usage, and what a span says, from an answer that is passed through."""
        self.usage = answer.usage
        if self.facts is not None:
            self.facts.add_whole(answer)

    def add_head(self, error: UpstreamError) -> None:
        """Add the response headers and request id that a caller may see to an error."""
        self.call.add_head(error, self.provider.dialect)

    def route(self, step_id: str, attempts: int) -> AnswerRoute:
        """Return the route: the model and provider, and what was dropped or converted."""
        call = self.call
        target = call.target
        headers, request_id = of_answer(
            self.provider.dialect, call.answer_headers, call.request.dialect
        )
        route = AnswerRoute(target.name, target.provider, step_id, attempts, headers, request_id)
        if call.dropped:
            route.dropped = call.dropped
        if self._left_out:
            route.memory_truncated = self._left_out
        if self._adapted or call.adapted:
            route.adapted = [*self._adapted, *call.adapted]
        if target.is_deployment:
            route.deployment = f"{target.provider}/{target.upstream}"
        return route
