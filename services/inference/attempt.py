"""One attempt at a provider: what it is asked, and the stream's rules on what it answers."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import lru_cache

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import HelperUsage, Usage
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest, Served
from services.common.errors import UpstreamError
from services.common.lazy_request import Source
from services.common.tokens import estimate_tokens
from services.inference import estimate, thinking
from services.inference.pieces import keep
from services.inference.prefill import WithoutEcho, prefill_of
from services.inference.providers.base import Call, Provider, Target
from services.inference.providers.heads import add_head, tell_head
from services.inference.refusals import PREFILL
from services.inference.stops import StopMatcher

Batch = Sequence[Event]
Batches = AsyncGenerator[Batch, None]
Transform = Callable[[Batch], Batch]


class Attempt:
    """One attempt.

    Args:
        request: what to ask; it is not changed.
        target: the model.
        provider: who has it.
        stream: whether the provider is to answer as a stream.
        signer: signs the thinking of providers that sign nothing.
        last: what is done to the answer after all else, if anything.
        dropped: paths of the request's fields that were left out already.
        left_out: how many remembered turns were.
        without: what the model refuses, names of `services.inference.refusals`.
        source: the conversation as its caller wrote it, where it goes so; the request has no
            messages and tools then.
        adapted: what was converted for the model.
        helpers: what the models used that did so.

    Attributes:
        stream: whether it is `batches` that asks, and not `whole`.
    """

    def __init__(
        self,
        request: GenerateRequest,
        target: Target,
        provider: Provider,
        *,
        stream: bool,
        signer: thinking.Signer,
        last: Transform | None = None,
        dropped: Sequence[str] = (),
        left_out: int = 0,
        without: frozenset[str] = frozenset(),
        source: Source | None = None,
        adapted: Sequence[str] = (),
        helpers: Sequence[HelperUsage] = (),
    ) -> None:
        self._provider = provider
        self._left_out = left_out
        self._adapted = adapted
        self._ending = None
        if _finds_stops_itself(request, provider):
            self._ending = _Ending(request)
            # Only a stream can be ended where the caller's string comes up.
            stream = True
            request = _without_stops(request)
        self.stream = stream
        self._transforms: list[Transform] = []
        prefills = provider.prefills and PREFILL not in without
        if not prefills and (prefill := prefill_of(request)):
            self._transforms.append(WithoutEcho(prefill, request.n or 1).feed)
        if self._ending is not None:
            self._transforms.append(self._ending.feed)
        if last is not None:
            self._transforms.append(last)
        if helpers:
            self._transforms.append(_WithHelpers(helpers).feed)
        as_it_is = not (stream or self._transforms) and _takes_verbatim(request, provider)
        self._call = Call(request, target, stream, list(dropped), as_it_is, without, source)
        if not provider.checks_signatures:
            # Before all else. What goes verbatim holds no thinking.
            self._transforms.insert(0, thinking.SignThinking(signer, target.upstream).feed)

    async def whole(self) -> Batch:
        """Ask, and return all events of the answer.

        Raises:
            GatewayError: as `batches`.
        """
        try:
            batch = await self._provider.whole(self._call)
        except UpstreamError as error:
            add_head(error, self._call, self._provider.dialect)
            raise
        for transform in self._transforms:
            batch = transform(batch)
        return batch

    async def batches(self) -> Batches:
        """Ask, and give the events that may pass, a batch for each read, none empty.

        Raises:
            GatewayError: unsupported or invalid, when the provider cannot carry the
                request; nothing has been sent then.
            UpstreamError: the provider failed; it has what is told of its answer's head.
        """
        transforms = self._transforms
        ending = self._ending
        try:
            async with aclosing(self._provider.stream(self._call)) as batches:
                async for batch in batches:
                    for transform in transforms:
                        batch = transform(batch)
                    if batch:
                        yield batch
                    if ending is not None and ending.done:
                        return
        except UpstreamError as error:
            add_head(error, self._call, self._provider.dialect)
            raise

    def tell(self, served: Served, step_id: str, attempts: int) -> None:
        """Write down what serves the attempt, and what of the request could not be used."""
        target = self._call.target
        served.CopyFrom(_served(target.name, target.provider, step_id, attempts))
        # Setting what says nothing takes as long as what says something.
        if self._call.dropped:
            served.dropped.extend(self._call.dropped)
        if self._left_out:
            served.memory_truncated = self._left_out
        if self._adapted:
            served.adapted.extend(self._adapted)
        tell_head(served, self._call, self._provider.dialect)


# To be copied, never changed: the same few are told again and again.
@lru_cache(maxsize=1024)
def _served(model: str, provider: str, step: str, attempts: int) -> Served:
    return Served(model=model, provider=provider, step=step, attempts=attempts)


class _WithHelpers:
    """Adds what helper models used to the usage of an answer."""

    def __init__(self, helpers: Sequence[HelperUsage]) -> None:
        self._helpers = helpers

    def feed(self, batch: Batch) -> Batch:
        """Return a batch with them; clients of messages read them at the head of a stream."""
        told: list[Event] = []
        begins = False
        for event in batch:
            if event.HasField("usage"):
                event, begins = self._with_helpers(event), False
            told.append(event)
            begins = begins or event.HasField("start")
        if begins:
            told.insert(1, self._with_helpers(Event(usage=Usage())))
        return told

    def _with_helpers(self, event: Event) -> Event:
        told = Event()
        told.CopyFrom(event)
        told.usage.helpers.extend(self._helpers)
        return told


class _Ending:
    """Ends an answer at the caller's stop sequence, for a provider that goes on writing.

    Attributes:
        done: whether the provider need not go on.
    """

    def __init__(self, request: GenerateRequest) -> None:
        self._stops = StopMatcher(request.stop_sequences, request.n or 1)
        self._request = request
        self._written: list[str] = []
        self._counted = False
        self.done = False

    def feed(self, batch: Batch) -> Batch:
        """Return the events that may pass, possibly none.

        A provider that is left before its end never tells the usage, so that what was
        read and written is estimated.
        """
        passed, self.done = self._stops.feed(batch)
        for event in passed:
            keep(self._written, event.text or event.thinking)
            self._counted = self._counted or event.HasField("usage")
        if not self.done or self._counted:
            return passed
        usage = conversation_pb2.Usage(
            input_tokens=estimate.estimate_input_tokens(self._request),
            output_tokens=estimate_tokens("".join(self._written)),
        )
        return [*passed, Event(usage=usage)]


def _finds_stops_itself(request: GenerateRequest, provider: Provider) -> bool:
    """Return whether the caller is told which stop sequence matched, and not by the provider."""
    return (
        bool(request.stop_sequences)
        and not provider.tells_stop_sequence
        and request.dialect != conversation_pb2.DIALECT_OPENAI
    )


def _takes_verbatim(request: GenerateRequest, provider: Provider) -> bool:
    """Return whether the provider's own JSON is an answer that the caller alone reads."""
    return request.takes_verbatim and request.dialect == provider.dialect


def _without_stops(request: GenerateRequest) -> GenerateRequest:
    copy = GenerateRequest()
    copy.CopyFrom(request)
    copy.ClearField("stop_sequences")
    return copy
