"""How one request becomes an answer: find what may answer it, run that.

The engine owns the order of things. What each rule is stands in the modules beside it;
how a provider is spoken to, in `providers`; what is tried when one fails, in `fallback`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import (
    CountTokensResponse,
    GenerateRequest,
    GenerateResponse,
    Served,
)
from services.common import ids
from services.common.errors import UpstreamError, unsupported
from services.common.lazy_request import LazyRequest
from services.common.settings import Limits, Memory
from services.inference import estimate, thinking, validation
from services.inference.adaptation.session import Adaptation, Session
from services.inference.attempt import Batches
from services.inference.attempt_factory import RequestAttempts
from services.inference.fallback.attempt_log import AttemptLog
from services.inference.fallback.budget import RetryBudget
from services.inference.fallback.circuit_breaker import CircuitBreakers, ModelKey, State
from services.inference.fallback.failure_log import FailureLog
from services.inference.fallback.plan import Plan, Plans
from services.inference.fallback.policy import Uniform
from services.inference.fallback.run_context import RunContext
from services.inference.fallback.runner import FallbackRunner
from services.inference.files import Files, place_files
from services.inference.media import MediaRef, find_media
from services.inference.memory.commit import AnswerCommitter
from services.inference.memory.open_turn import (
    OpenedTurn,
    open_turn,
    opened_turn,
    place_remembered_files,
)
from services.inference.memory.split import check_steps, uses_memory
from services.inference.memory.turn_client import TurnOpener
from services.inference.metrics import Metrics
from services.inference.offload import mark, offload
from services.inference.providers.base import Call, Provider
from services.inference.providers.heads import add_head, set_served_head
from services.inference.refusals import Refusals
from services.inference.routes import Routes
from services.inference.stream.accumulator import whole_of
from services.inference.tools.history import KINDS as HISTORY_KINDS
from services.inference.tools.loop import ToolLoop
from services.inference.tools.offer import NOTHING, may_run_tools
from services.inference.tools.rounds import Rounds
from services.inference.tools.running import WebTools


class _Admitted(NamedTuple):
    """A request that keeps to the rules, with what may answer it, as it was when it came.

    Attributes:
        plan: what may answer.
        providers: whom to ask, by name.
        media: those of the request, where memory takes no part in it.
        has_thoughts: whether there may be thinking in the conversation.
        is_remembered: whether memory takes part.
        web: runs the gateway's own tools.
        asks_for_tools: whether some of them may be called.
        has_called: whether some may have been called before.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    media: Sequence[MediaRef]
    has_thoughts: bool
    is_remembered: bool
    web: WebTools | None
    asks_for_tools: bool
    has_called: bool


class _Ready(NamedTuple):
    """A request that models can be asked.

    Attributes:
        plan: what may answer.
        providers: whom to ask, by name.
        attempts: makes the attempts.
        tools: makes the requests of rounds, and runs what is called in them; None where no tool
            of the gateway's may be called.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    attempts: RequestAttempts
    tools: tuple[Rounds, WebTools] | None


class Engine:
    """Answers requests through providers.

    Args:
        routes: the models and the providers behind them.
        signer: signs the thinking of providers that sign nothing.
        files: where the files are read that requests name.
        memories: where turns of remembered conversations are taken.
        limits: bounds on time and size.
        memory: how memory takes part.
        metrics: what is counted.
        monotonic: seconds of a clock that never goes back.
        adaptation: converts media for models that do not read them.
        uniform: throws the dice for the jitter of waits.

    Attributes:
        breakers: of the models that keep failing.
        failure_log: tells whoever runs the gateway of providers that failed.
    """

    def __init__(
        self,
        routes: Routes,
        signer: thinking.Signer,
        files: Files,
        memories: TurnOpener,
        limits: Limits,
        memory: Memory,
        metrics: Metrics,
        monotonic: Callable[[], float],
        adaptation: Adaptation,
        uniform: Uniform = ids.uniform,
    ) -> None:
        self._limits = limits
        self.routes = routes
        self._metrics = metrics
        self.breakers = CircuitBreakers(
            limits.breaker_failures, monotonic, self._show_breaker, uniform
        )
        self._signer = signer
        self._files = files
        self._memories = memories
        self._memory = memory
        self._committer = AnswerCommitter(memory.leave_drain_s)
        self.failure_log = FailureLog(monotonic)
        self._attempt_log = AttemptLog(self.breakers, metrics, self.failure_log, monotonic)
        self._adaptation = adaptation
        self._uniform = uniform
        self._refusals = Refusals()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def routes(self) -> Routes:
        """What can be reached."""
        return self._routed[0]

    @routes.setter
    def routes(self, routes: Routes) -> None:
        self._routed = routes, Plans(routes.models, self._limits)

    def _show_breaker(self, key: ModelKey, state: State) -> None:
        is_known = self.routes.models.offers(key.provider, key.model)
        self._metrics.breaker_changed(key, state, is_known=is_known)

    async def generate(self, given: GenerateRequest | LazyRequest) -> GenerateResponse:
        """Return one whole answer."""
        request, lazy = self._taken_apart(given)
        if lazy is not None:
            return whole_of(await self._lazy_runner(lazy, whole=True).whole())
        admitted = await self._admitted(request)
        if not admitted.is_remembered:
            return await self._whole(await self._ready(request, admitted))
        async with opened_turn(request, self._memories, self._memory.inject_tokens) as taken:
            response = await self._whole(await self._ready(request, admitted, taken))
            await taken.commit(response)
        return response

    async def stream(self, given: GenerateRequest | LazyRequest) -> Batches:
        """Return the answer as it comes.

        Closing the iterator ends it at the provider; an answer that is to be remembered
        only as long as none of it was given.
        """
        request, lazy = self._taken_apart(given)
        if lazy is not None:
            return self._lazy_runner(lazy, whole=False).stream()
        admitted = await self._admitted(request)
        if admitted.is_remembered:
            return self._remembered(request, admitted)
        return self._streamed(await self._ready(request, admitted))

    async def count_tokens(self, request: GenerateRequest) -> CountTokensResponse:
        """Count what a request would read; a provider that cannot tell is estimated."""
        request, _ = self._taken_apart(request)
        mark(request)
        admitted = await offload(self._admit, request)
        if not admitted.is_remembered:
            return await self._counted(await self._ready(request, admitted, counts=True))
        async with opened_turn(
            request, self._memories, self._memory.inject_tokens, reads_only=True
        ) as taken:
            ready = await self._ready(request, admitted, taken, counts=True)
            counted = await self._counted(ready)
            await taken.turn.close()
        return counted

    async def drain(self, within_s: float) -> None:
        """Wait for answers that are still to be remembered, so many seconds at most."""
        await self._committer.drain(within_s)

    async def _whole(self, ready: _Ready) -> GenerateResponse:
        if ready.tools is not None:
            async with aclosing(self._in_rounds(ready, *ready.tools, whole=True)) as batches:
                return whole_of([batch async for batch in batches])
        return whole_of(await self._runner(ready.plan, ready.attempts, whole=True).whole())

    def _streamed(self, ready: _Ready) -> Batches:
        if ready.tools is not None:
            return self._in_rounds(ready, *ready.tools, whole=False)
        return self._runner(ready.plan, ready.attempts, whole=False).stream()

    def _in_rounds(self, ready: _Ready, rounds: Rounds, web: WebTools, *, whole: bool) -> Batches:
        def start_runner(plan: Plan, budget: RetryBudget | None) -> FallbackRunner:
            return self._runner(plan, ready.attempts, whole=whole, budget=budget)

        loop = ToolLoop(ready.plan, rounds, start_runner, web, self._metrics, whole=whole)
        return loop.batches()

    def _lazy_runner(self, lazy: LazyRequest, *, whole: bool) -> FallbackRunner:
        """Return a run of a request that takes no more than its caller's own words.

        Memory and tools of the gateway take no part in it, it names no files, and what reads a
        body so has checked it.
        """
        routes, plans = self._routed
        plan = plans.of(lazy.request)
        attempts = RequestAttempts(
            lazy.request, (), plan, routes.providers, self._signer, self._refusals, lazy=lazy
        )
        return self._runner(plan, attempts, whole=whole)

    def _runner(
        self,
        plan: Plan,
        attempts: RequestAttempts,
        *,
        whole: bool,
        budget: RetryBudget | None = None,
    ) -> FallbackRunner:
        loop = self._loop
        if loop is None:
            # Of the first request and of all others: to ask for it takes a system call.
            loop = self._loop = asyncio.get_running_loop()
        return FallbackRunner(
            RunContext(
                loop,
                plan,
                attempts,
                self._attempt_log,
                self._uniform,
                whole=whole,
                budget=budget,
            )
        )

    async def _remembered(self, request: GenerateRequest, admitted: _Admitted) -> Batches:
        taken = await open_turn(request, self._memories, self._memory.inject_tokens)
        async with taken.closing_on_failure():
            batches = self._streamed(await self._ready(request, admitted, taken))
        async with aclosing(self._committer.stream(taken, batches)) as told:
            async for batch in told:
                yield batch

    async def _counted(self, ready: _Ready) -> CountTokensResponse:
        step = ready.plan.steps[0]
        provider = ready.providers[step.target.provider]
        if ready.attempts.may_convert(step):
            await ready.attempts.adapt(step)
        prepared = await offload(ready.attempts.complete, step)
        request = await offload(ready.attempts.seen_by, provider, prepared.request)
        call = Call(request, step.target, stream=False, without=ready.attempts.refused(step))
        try:
            counted = await provider.count_tokens(call)
        except UpstreamError as error:
            if error.reason == errors_pb2.REASON_UPSTREAM_REJECTED:
                add_head(error, call, provider.dialect)
                raise
            name = f"{step.target.provider}/{step.target.upstream}"
            self.failure_log.write(step.target.provider, error, {"model": name, "call": "count"})
            counted = None
        input_tokens = counted
        if input_tokens is None:
            input_tokens = await offload(estimate.estimate_input_tokens, request)
        served = Served(
            model=step.target.name,
            provider=step.target.provider,
            step=step.step_id,
            attempts=1,
            dropped=call.dropped,
            memory_truncated=prepared.left_out,
            adapted=prepared.adapted,
        )
        set_served_head(served, call, provider.dialect)
        return CountTokensResponse(
            input_tokens=input_tokens,
            estimated=counted is None or ready.attempts.guesses,
            served=served,
        )

    async def _admitted(self, request: GenerateRequest) -> _Admitted:
        mark(request)
        return await offload(self._admit, request)

    def _admit(self, request: GenerateRequest) -> _Admitted:
        """Check a request and find what may answer it; nothing is waited for."""
        kinds = validation.check(request)
        routes, plans = self._routed
        plan = plans.of(request)
        has_called = not HISTORY_KINDS.isdisjoint(kinds)
        asks = self._asks_for_tools(request, plan, routes, has_called=has_called)
        if uses_memory(request):
            check_steps(request, plan)
            # The answer is read here, to be remembered.
            request.takes_passthrough = False
            return _Admitted(plan, routes.providers, (), True, True, routes.web, asks, has_called)
        media = find_media(request) if "media" in kinds else ()
        has_thoughts = not thinking.KINDS.isdisjoint(kinds)
        return _Admitted(
            plan, routes.providers, media, has_thoughts, False, routes.web, asks, has_called
        )

    def _asks_for_tools(
        self, request: GenerateRequest, plan: Plan, routes: Routes, *, has_called: bool
    ) -> bool:
        """Return whether the gateway may have to run tools for a request."""
        available = NOTHING if routes.web is None else routes.web.available
        providers = routes.providers
        targets = ((providers[step.target.provider].dialect, step.target) for step in plan.steps)
        if not may_run_tools(request, targets, available, has_called=has_called):
            return False
        if request.use_built_in_tools and not any(available):
            raise unsupported(
                "use_built_in_tools", "use_built_in_tools: this gateway has no tools of its own"
            )
        # The rounds of the answer are put together here.
        request.takes_passthrough = False
        return True

    def _taken_apart(
        self, given: GenerateRequest | LazyRequest
    ) -> tuple[GenerateRequest, LazyRequest | None]:
        """Return a request, and the lazy one that completes it.

        There is none where memory or the gateway's own tools take part, which read all of it.
        """
        request = given.request if isinstance(given, LazyRequest) else given
        if request.expects_built_in_tools:
            web = self.routes.web
            request.use_built_in_tools = web is not None and web.available.searches
        if not isinstance(given, LazyRequest):
            return given, None
        if request.use_built_in_tools or uses_memory(request):
            return given.complete(), None
        return request, given

    async def _ready(
        self,
        request: GenerateRequest,
        admitted: _Admitted,
        taken: OpenedTurn | None = None,
        *,
        counts: bool = False,
    ) -> _Ready:
        """Make a request one that the models of its plan can be asked.

        `counts` tells that no more than its tokens are wanted.
        """
        plan, providers = admitted.plan, admitted.providers
        media = admitted.media
        conversation = None if taken is None else taken.conversation
        remembered: dict[str, list[MediaRef]] = {}
        if conversation is not None:
            media = conversation.callers_media()
            remembered = conversation.remembered_files()
        named = media
        if request.HasField("fallback_config"):
            named = [*media, *_overriding_media(request, plan)]
        if named or remembered:
            keep_foreign = any(providers[step.target.provider].pass_stateful for step in plan.steps)
            at_most = self._limits.max_body_bytes
            await place_files(named, self._files, at_most=at_most, keep_foreign=keep_foreign)
            targets = [step.target for step in plan.steps]
            await place_remembered_files(
                remembered,
                self._files,
                targets,
                request.multimodal,
                at_most=at_most,
                keep_foreign=keep_foreign,
            )
        session: Callable[[], Session] | None = None
        if named or (conversation is not None and conversation.has_media):
            session = partial(
                self._adaptation.session,
                request.multimodal,
                self.routes,
                self.generate,
                self._limits.max_body_bytes,
                counts=counts,
            )
        rounds = None
        if admitted.asks_for_tools or admitted.has_called:
            available = NOTHING if admitted.web is None else admitted.web.available
            rounds = Rounds(request, available, self._signer)
        attempts = RequestAttempts(
            request,
            media,
            plan,
            providers,
            self._signer,
            self._refusals,
            conversation,
            has_thoughts=admitted.has_thoughts,
            session=session,
            rounds=rounds,
        )
        tools = None
        if rounds is not None and admitted.asks_for_tools and admitted.web is not None:
            tools = rounds, admitted.web
        return _Ready(plan, providers, attempts, tools)


def _overriding_media(request: GenerateRequest, plan: Plan) -> list[MediaRef]:
    """Return the media of conversations that steps have instead of the request's."""
    found: list[MediaRef] = []
    for step in plan.steps:
        if step.parameters is not None and step.parameters.messages:
            step.parameters.dialect = request.dialect
            found += [
                MediaRef(f"{step.path}.parameters.{one.path}", one.block)
                for one in find_media(step.parameters)
            ]
    return found
