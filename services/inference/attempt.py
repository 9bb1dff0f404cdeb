"""One attempt: a call of a provider, and the filters of its answer."""

from collections.abc import Awaitable, Mapping, Sequence

from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.errors import UpstreamError
from services.common.messages.passthrough_answer import AnswerRoute, PassthroughAnswer, TokenCounts
from services.inference.providers.base import Call, Provider
from services.inference.stream.batches import Batches
from services.inference.stream.filters import Batch, StreamFilter
from services.inference.stream.patience import Patience
from services.inference.stream.property_names import PropertyNameFilter
from services.inference.stream.sign_thinking import ThinkingSigner
from services.inference.thinking import Signer


class Attempt:
    """One call of one provider for a request.

    Args:
        call: the arguments of the call.
        provider: the provider to call.
        filters: applied to the events of the answer, in order.
        left_out: number of remembered turns left out of the request.
        adapted: parts that were converted for the model; see `RouteInfo.adapted`.
        signer: signs the thinking, before the filters; None if the provider signs it.

    Attributes:
        usage: the latest usage that the provider has reported, or None.
        is_done: whether the rest of the provider's answer is not needed.
        stream: whether to call `batches` and not `whole`.
    """

    __slots__ = (
        *("_adapted", "_call", "_filters", "_has_begun", "_left_out", "_provider", "_signer"),
        *("is_done", "stream", "usage"),
    )

    def __init__(
        self,
        call: Call,
        provider: Provider,
        filters: Sequence[StreamFilter] = (),
        left_out: int = 0,
        adapted: Sequence[str] = (),
        signer: Signer | None = None,
    ) -> None:
        self._call = call
        self._provider = provider
        self._filters = filters
        self._left_out = left_out
        self._adapted = adapted
        self._signer = signer
        self._has_begun = False
        self.usage: Usage | TokenCounts | None = None
        self.is_done = False
        self.stream = call.stream

    @property
    def refused_fields(self) -> frozenset[str]:
        """Fields that the model rejects, as named by `services.inference.refusals`."""
        return self._call.refused_fields

    @property
    def answer_headers(self) -> Mapping[str, str] | None:
        """The headers of the provider's response; None before the response, and without HTTP."""
        return self._call.answer_headers

    def whole(self) -> Awaitable[Batch | PassthroughAnswer]:
        """Call the provider; return all events of its answer, to be filtered by `apply_filters`.

        A `PassthroughAnswer` is not filtered.

        Raises:
            GatewayError: as `batches`.
        """
        return self._provider.whole(self._call)

    @property
    def longest_silence_s(self) -> float:
        """The longest silence of the stream after its first content, in seconds."""
        patience = self._call.patience
        return 0.0 if patience is None else patience.longest_s

    def batches(self, patience: Patience | None = None) -> Batches:
        """Call the provider; yield its events, one non-empty batch per read.

        Each batch is to be filtered by `apply_filters`. After the first content, the stream may be
        silent for as long as `patience` allows.

        Raises:
            GatewayError: unsupported or invalid, if the provider does not support the
                request; nothing has been sent then.
            UpstreamError: the provider failed.
        """
        self._call.patience = patience
        return self._provider.stream(self._call)

    def apply_filters(self, batch: Batch) -> Batch:
        """Apply the filters to a batch; return the resulting events, possibly none."""
        if not self._has_begun:
            # On the first batch: most whole answers have no events.
            self._has_begun = True
            self._add_first_filters()
        for event in batch:
            if event.HasField("usage"):
                self.usage = event.usage
        for one in self._filters:
            batch = one.feed(batch)
            if one.is_done:
                self.is_done = True
        return batch

    def add_head(self, error: UpstreamError) -> None:
        """Add the response headers and request id that a caller may see to an error."""
        self._call.add_head(error, self._provider.dialect)

    def _add_first_filters(self) -> None:
        """Add the filters that depend on what was sent, and that of the gateway's signatures."""
        if names := self._call.property_names:
            self._filters = (PropertyNameFilter(names), *self._filters)
        if self._signer is not None:
            signing = ThinkingSigner(self._signer, self._call.target.upstream)
            self._filters = (signing, *self._filters)

    def route(self, step_id: str, attempts: int) -> AnswerRoute:
        """Return the route: the model and provider, and what was dropped or converted."""
        call = self._call
        target = call.target
        headers, request_id = call.answer_head(self._provider.dialect)
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
