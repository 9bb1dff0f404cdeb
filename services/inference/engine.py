"""How one request becomes an answer: prepare, ask, see to the stream's rules.

The engine owns the order of things. What each rule is stands in the pure modules
beside it; how a provider is spoken to, in `providers`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from gateway.conversation.v1 import conversation_pb2
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt
from gateway.inference.v1.inference_pb2 import (
    CountTokensResponse,
    Event,
    GenerateRequest,
    GenerateResponse,
    Served,
    ThinkingBlockStrategy,
)
from services.common.errors import UpstreamError, invalid
from services.inference import estimate, extensions, thinking
from services.inference.accumulator import Accumulator
from services.inference.files import Files, place_files, texts_as_blocks
from services.inference.media import find_media
from services.inference.prefill import WithoutEcho, prefill_of
from services.inference.providers.base import Call, Provider, Target
from services.inference.routing import Models
from services.inference.stops import StopMatcher

PRIMARY_STEP = "primary"

Batch = Sequence[Event]
Batches = AsyncGenerator[Batch, None]
Transform = Callable[[Batch], Batch]


@dataclass(frozen=True, slots=True)
class Routes:
    """What can be reached: replaced as a whole when the settings are read again."""

    models: Models
    providers: Mapping[str, Provider]


class Engine:
    """Answers requests through providers.

    Args:
        routes: the models and the providers behind them.
        signer: signs the thinking of providers that sign nothing.
        files: where the files are read that requests name.
        max_files: bytes that the files of one request may have in all.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        routes: Routes,
        signer: thinking.Signer,
        files: Files,
        max_files: int,
        monotonic: Callable[[], float],
    ) -> None:
        self.routes = routes
        self._signer = signer
        self._files = files
        self._max_files = max_files
        self._monotonic = monotonic

    async def generate(self, request: GenerateRequest) -> GenerateResponse:
        """Give one whole answer."""
        accumulator = Accumulator()
        async with aclosing(self._answer(request, stream=False)) as batches:
            async for batch in batches:
                accumulator.add(batch)
        return accumulator.response()

    def stream(self, request: GenerateRequest) -> Batches:
        """Give the answer as it comes; closing the iterator ends it at the provider."""
        return self._answer(request, stream=True)

    async def count_tokens(self, request: GenerateRequest) -> CountTokensResponse:
        """Count what a request would read; a provider that cannot tell is estimated."""
        target, provider = await self._admit(request)
        request = self._prepare(request, target, provider)
        call = Call(request, target, stream=False)
        try:
            counted = await provider.count_tokens(call)
        except UpstreamError as error:
            if error.reason == errors_pb2.REASON_UPSTREAM_REJECTED:
                raise
            counted = None
        return CountTokensResponse(
            input_tokens=estimate.estimate_input_tokens(request) if counted is None else counted,
            estimated=counted is None,
            served=_served(call, 1),
        )

    async def _admit(self, request: GenerateRequest) -> tuple[Target, Provider]:
        """Find who is to answer, and make the request one that it can be asked."""
        extensions.check_request(request)
        target = self.routes.models.resolve(request.model)
        provider = self.routes.providers[target.provider]
        extensions.check_target(request, target)
        limit = target.max_output_tokens
        if limit and request.max_tokens > limit:
            raise invalid("max_tokens", f"max_tokens: {target.name} writes at most {limit} tokens")
        if found := find_media(request):
            await place_files(
                found,
                self._files,
                at_most=self._max_files,
                keep_foreign=provider.pass_stateful,
            )
            rest = texts_as_blocks(found, target)
            extensions.check_media(rest, request.multimodal, target)
        return target, provider

    def _prepare(
        self, request: GenerateRequest, target: Target, provider: Provider
    ) -> GenerateRequest:
        return thinking.apply_strategy(
            request,
            target_signs=provider.signs_thinking,
            target_dialect=provider.dialect,
            signer=self._signer,
        )

    async def _answer(self, request: GenerateRequest, *, stream: bool) -> Batches:
        target, provider = await self._admit(request)
        sent = False
        for attempt in (1, 2):
            prepared = self._prepare(request, target, provider)
            try:
                async with aclosing(
                    self._attempt(prepared, target, provider, stream, attempt)
                ) as batches:
                    async for batch in batches:
                        sent = True
                        yield batch
                return
            except UpstreamError as error:
                if sent or attempt == 2 or not _refuses_signatures(error):
                    raise
            # A provider that doubts a signature answers once the thinking is gone.
            request.thinking_block_strategy = ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_DISCARD

    async def _attempt(
        self,
        request: GenerateRequest,
        target: Target,
        provider: Provider,
        stream: bool,
        number: int,
    ) -> Batches:
        began = self._monotonic()
        ending = None
        if _finds_stops_itself(request, provider):
            ending = _Ending(request)
            # Only a stream can be ended where the caller's string comes up.
            stream = True
            request = _without_stops(request)
        call = Call(request, target, stream)
        transforms = self._transforms(request, target, provider)
        started = False
        try:
            async with aclosing(provider.generate(call)) as batches:
                async for batch in batches:
                    for transform in transforms:
                        batch = transform(batch)
                    if not started and batch:
                        started = True
                        batch[0].start.served.CopyFrom(_served(call, number))
                    if ending is not None:
                        batch = ending.feed(batch)
                    if batch:
                        yield batch
                    if ending is not None and ending.done:
                        return
        except UpstreamError as error:
            error.attempts.append(
                Attempt(
                    step=PRIMARY_STEP,
                    model=f"{target.provider}/{target.upstream}",
                    status=error.status,
                    reason=error.reason,
                    duration_ms=round((self._monotonic() - began) * 1000),
                )
            )
            raise

    def _transforms(
        self, request: GenerateRequest, target: Target, provider: Provider
    ) -> list[Transform]:
        transforms: list[Transform] = []
        if not provider.signs_thinking:
            transforms.append(thinking.SignThinking(self._signer, target.upstream).feed)
        if not provider.prefills and (prefill := prefill_of(request)):
            transforms.append(WithoutEcho(prefill, request.n or 1).feed)
        return transforms


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
        """Give the events that may pass, possibly none.

        A provider that is left before its end never tells the usage, so that what was
        read and written is estimated.
        """
        passed, self.done = self._stops.feed(batch)
        for event in passed:
            self._written.append(event.text or event.thinking)
            self._counted = self._counted or event.HasField("usage")
        if not self.done or self._counted:
            return passed
        usage = conversation_pb2.Usage(
            input_tokens=estimate.estimate_input_tokens(self._request),
            output_tokens=estimate.estimate_output_tokens("".join(self._written)),
        )
        return [*passed, Event(usage=usage)]


def _finds_stops_itself(request: GenerateRequest, provider: Provider) -> bool:
    """Tell whether the caller is told which stop sequence matched, and not by the provider."""
    return (
        bool(request.stop_sequences)
        and not provider.tells_stop_sequence
        and request.dialect != conversation_pb2.DIALECT_OPENAI
    )


def _without_stops(request: GenerateRequest) -> GenerateRequest:
    copy = GenerateRequest()
    copy.CopyFrom(request)
    copy.ClearField("stop_sequences")
    return copy


def _refuses_signatures(error: UpstreamError) -> bool:
    return error.reason == errors_pb2.REASON_UPSTREAM_REJECTED and "signature" in error.body.lower()


def _served(call: Call, attempts: int) -> Served:
    return Served(
        model=call.target.name,
        provider=call.target.provider,
        step=PRIMARY_STEP,
        attempts=attempts,
        dropped=call.dropped,
    )
