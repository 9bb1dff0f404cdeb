"""One attempt at a provider: what it is asked, and the filters of what it answers."""

from collections.abc import Awaitable, Mapping, Sequence

from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.errors import UpstreamError
from services.common.passed_answer import PassedAnswer, Route, TokenCounts
from services.inference.providers.base import Call, Provider
from services.inference.stream.batches import Batches
from services.inference.stream.filters import Batch, StreamFilter
from services.inference.stream.sign_thinking import ThinkingSigner
from services.inference.thinking import Signer


class Attempt:
    """One attempt.

    Args:
        call: what to ask.
        provider: whom to ask.
        filters: what the answer passes, in order.
        signer: signs its thinking before it passes them; None where its provider does.
        left_out: how many remembered turns the request was shortened by.
        adapted: what was converted for the model.

    Attributes:
        usage: the latest that the provider has reported, or None.
        is_done: whether the provider need not write any more.
    """

    __slots__ = (
        *("_adapted", "_call", "_filters", "_left_out", "_provider", "_signer"),
        *("is_done", "usage"),
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
        self.usage: Usage | TokenCounts | None = None
        self.is_done = False

    @property
    def stream(self) -> bool:
        """Whether the provider is asked by `batches`, and not by `whole`."""
        return self._call.stream

    @property
    def refused_fields(self) -> frozenset[str]:
        """What the model is known to refuse, names of `services.inference.refusals`."""
        return self._call.refused_fields

    @property
    def answer_headers(self) -> Mapping[str, str] | None:
        """The headers of the provider's response; None before it, and without HTTP."""
        return self._call.answer_headers

    def whole(self) -> Awaitable[Batch | PassedAnswer]:
        """Ask the provider, and return all events of its answer, which are for `passed`.

        An answer that goes to the caller as it is passes no filters.

        Raises:
            GatewayError: as `batches`.
        """
        return self._provider.whole(self._call)

    def batches(self) -> Batches:
        """Ask the provider, and return its events, a batch for each read, none empty.

        Each batch is for `passed`.

        Raises:
            GatewayError: unsupported or invalid, when the provider cannot carry the
                request; nothing has been sent then.
            UpstreamError: the provider failed.
        """
        return self._provider.stream(self._call)

    def passed(self, batch: Batch) -> Batch:
        """Return the events of a batch that pass the filters, possibly none."""
        if self._signer is not None:
            # Made here, since most whole answers have no events.
            signing = ThinkingSigner(self._signer, self._call.target.upstream)
            self._filters, self._signer = (signing, *self._filters), None
        for event in batch:
            if event.HasField("usage"):
                self.usage = event.usage
        for one in self._filters:
            batch = one.feed(batch)
            if one.is_done:
                self.is_done = True
        return batch

    def add_head(self, error: UpstreamError) -> None:
        """Add to a failure what a caller is told of the head of the answer it came with."""
        self._call.add_head(error, self._provider.dialect)

    def route(self, step_id: str, attempts: int) -> Route:
        """Return what serves the attempt, and what of the request could not be used."""
        call = self._call
        target = call.target
        headers, request_id = call.answer_head(self._provider.dialect)
        route = Route(target.name, target.provider, step_id, attempts, headers, request_id)
        if call.dropped:
            route.dropped = call.dropped
        if self._left_out:
            route.memory_truncated = self._left_out
        if self._adapted:
            route.adapted = self._adapted
        if target.is_deployment:
            route.deployment = f"{target.provider}/{target.upstream}"
        return route
