"""The engine: checks a request, makes its fallback plan, and runs the plan.

This module has only the order of these operations. Their rules are in the modules beside it;
providers are in `providers`, retries and fallbacks in `fallback`.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial

from gateway.inference.v1.inference_pb2 import (
    CountTokensResponse,
    GenerateRequest,
    GenerateResponse,
)
from services.common import ids
from services.common.errors import unsupported
from services.common.grpc.authentication import caller_id
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.common.process.byte_budget import ByteBudget, Charge, open_budget, request_charge
from services.common.process.telemetry.spans import Telemetry
from services.common.process.timer_wheel import TimerWheel
from services.common.settings import Limits, Memory
from services.inference.adaptation.helpers import DESCRIBE
from services.inference.adaptation.session import Admit, MediaAdaptation
from services.inference.allowances.admission import Admission
from services.inference.balancing.balancer import Balancer
from services.inference.balancing.deployment_limits import DeploymentLimits
from services.inference.balancing.loads import Loads
from services.inference.circuit_breaker import CircuitBreakers, ModelKey, State, Uniform
from services.inference.fallback.attempt_log import AttemptLog, RecentAttempts
from services.inference.fallback.attempt_reports import AttemptSpans, FailureLog
from services.inference.fallback.attempts import AttemptFactory
from services.inference.fallback.run import OnEnd, RetryBudget
from services.inference.fallback.runner import FallbackRunner
from services.inference.learned.chat_models import ChatModels
from services.inference.learned.refusals import Refusals
from services.inference.memory.commit import AnswerCommitter
from services.inference.memory.split import uses_memory
from services.inference.memory.turn_client import (
    TurnFactory,
    begin_turn,
    run_turn,
)
from services.inference.metrics import InferenceMetrics
from services.inference.offload import mark, offload
from services.inference.plans.plan import Plan, Plans
from services.inference.request import thinking
from services.inference.request.sealed_summaries import open_summaries
from services.inference.routes import Routes
from services.inference.run.attempt_factory import RequestAttempts
from services.inference.run.prepared_request import (
    CheckedRequest,
    PreparedRequest,
    RequestPreparer,
    check_request,
)
from services.inference.run.token_count import count_tokens
from services.inference.stored_files import Files
from services.inference.stream.accumulator import whole_of
from services.inference.stream.batches import Batches
from services.inference.tools.loop import ToolLoop
from services.inference.tools.rounds import Rounds
from services.inference.tools.running import WebTools
from services.inference.usage.metering import Metering
from services.inference.usage.request_usage import RequestUsage, current_usage


class Engine:
    """Answers requests by calling providers.

    Args:
        routes: the models, and the providers that serve them.
        signer: signs the thinking of providers that do not sign it themselves.
        files: reads the files that requests reference.
        memories: opens turns at the memory service.
        limits: limits on time and size.
        memory: settings of memory.
        metrics: metrics of inference.
        monotonic: monotonic clock, in seconds.
        adaptation: converts media for models that do not read them.
        uniform: random source for jitter.
        telemetry: records spans of attempts and tools; None without a collector.
        metering: records the usage of requests.
        budget: limits the bytes that the process holds; by default by `limits`.
        admission: admits calls of deployments with limits; by default all are admitted.

    Attributes:
        files: see the argument.
        max_body_bytes: maximum bytes of a request, and of its files together.
        breakers: the circuit breakers of models.
        balancer: chooses among the deployments of a model.
        failure_log: logs the failures of providers.
        metering: records the usage of requests.
        sealer: seals and opens the summaries of conversations.
        refusals: the fields that models reject.
        chat_models: the models that answer chats alone.
    """

    def __init__(
        self,
        routes: Routes,
        signer: thinking.Signer,
        files: Files,
        memories: TurnFactory,
        limits: Limits,
        memory: Memory,
        metrics: InferenceMetrics,
        monotonic: Callable[[], float],
        adaptation: MediaAdaptation,
        uniform: Uniform = ids.uniform,
        telemetry: Telemetry | None = None,
        metering: Metering | None = None,
        budget: ByteBudget | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._budget = budget or open_budget(limits)
        self._limits = limits
        self.files = files
        self.max_body_bytes = limits.max_body_bytes
        self.routes = routes
        self._metrics = metrics
        self.breakers = CircuitBreakers(
            limits.breaker_failures, monotonic, self._show_breaker, uniform
        )
        self._signer = signer
        self.sealer = signer.summary_sealer()
        self._memories = memories
        self._memory = memory
        self._committer = AnswerCommitter(memory.leave_drain_s)
        self.failure_log = FailureLog(monotonic)
        self.balancer = Balancer(
            Loads(monotonic, metrics),
            DeploymentLimits(admission, metrics),
            self.breakers,
            uniform,
        )
        self._attempt_log = AttemptLog(
            self.breakers,
            metrics,
            self.failure_log,
            self.balancer,
            monotonic,
            limits.stream_idle_s,
            None if telemetry is None else AttemptSpans(telemetry, self._server_of),
        )
        self._uniform = uniform
        self.metering = metering or Metering()
        self.refusals = Refusals()
        self.chat_models = ChatModels()
        self._preparer = RequestPreparer(
            files,
            adaptation,
            partial(self.generate, task=DESCRIBE),
            signer,
            self.refusals,
            self.metering,
            limits.max_body_bytes,
        )
        self._timers = TimerWheel()

    @property
    def recent_attempts(self) -> RecentAttempts:
        """The attempts of the last minutes."""
        return self._attempt_log.recent

    @property
    def routes(self) -> Routes:
        """The models, and the providers that serve them; replaced when settings change."""
        return self._routed[0]

    @routes.setter
    def routes(self, routes: Routes) -> None:
        self._routed = routes, Plans(routes.models, self._limits)

    def plan_of(self, request: GenerateRequest) -> Plan:
        """Return the fallback plan for a request; see `Plans.plan_for`."""
        return self._routed[1].plan_for(request)

    def _server_of(self, provider: str) -> Mapping[str, str | int]:
        return self.routes.servers.get(provider, {})

    def _show_breaker(self, key: ModelKey, state: State) -> None:
        is_known = self.routes.models.offers(key.provider, key.model)
        self._metrics.breaker_changed(key, state, is_known=is_known)

    async def generate(
        self, sent: GenerateRequest | LazyRequest, *, task: str = ""
    ) -> GenerateResponse:
        """Return a whole answer.

        Args:
            sent: the request.
            task: the helper task that the request does for another request, or "".
        """
        answer = await self.answer(sent, task=task)
        return answer.response() if isinstance(answer, PassthroughAnswer) else answer

    def answer(
        self, sent: GenerateRequest | LazyRequest, *, task: str = ""
    ) -> Awaitable[GenerateResponse | PassthroughAnswer]:
        """Like `generate`, but may return the provider's response body unparsed."""
        if isinstance(sent, LazyRequest) and not sent.is_small:
            return self._answer_large(sent, task)
        runner = self._direct_runner(sent, whole=True)
        return self._answer(self._complete(sent), task) if runner is None else runner.answer()

    async def _answer_large(
        self, lazy: LazyRequest, task: str
    ) -> GenerateResponse | PassthroughAnswer:
        runner = await offload(self._direct_runner, lazy, whole=True)
        if runner is None:
            return await self._answer(await offload(self._complete, lazy), task)
        return await runner.answer()

    async def _answer(
        self, request: GenerateRequest, task: str
    ) -> GenerateResponse | PassthroughAnswer:
        checked = await self._checked(request, whole=True)
        if not checked.is_remembered:
            with self.charge() as charge:
                return await self._whole(
                    await self._preparer.prepare(request, checked, charge, task=task)
                )
        async with run_turn(request, self._memories, self._memory.inject_tokens) as turn:
            with self.charge() as charge:
                prepared = await self._preparer.prepare(request, checked, charge, turn)
                response = await self._whole(prepared)
            assert not isinstance(response, PassthroughAnswer), "one to be remembered is read here"
            await turn.commit(response)
        return response

    async def stream(self, sent: GenerateRequest | LazyRequest) -> Batches:
        """Return a streamed answer.

        Closing the iterator cancels the call of the provider. With memory it does so only before
        the first content; later the answer is still read to its end and committed.
        """
        is_large = isinstance(sent, LazyRequest) and not sent.is_small
        runner = (
            await offload(self._direct_runner, sent, whole=False)
            if is_large
            else self._direct_runner(sent, whole=False)
        )
        if runner is not None:
            return runner.stream()
        request = await offload(self._complete, sent)
        checked = await self._checked(request, whole=False)
        if checked.is_remembered:
            return self._remembered(request, checked)
        if checked.media or request.HasField("fallback_config"):
            return self._charged(request, checked)
        return self._stream(await self._preparer.prepare(request, checked, self.charge()))

    async def count_tokens(
        self, request: GenerateRequest, admit: Admit | None = None
    ) -> CountTokensResponse:
        """Return the input tokens of a request, estimated if its provider cannot count them.

        Args:
            request: the request.
            admit: awaited before media are converted; may raise GatewayError.
        """
        request = self._complete(request)
        checked = await self._checked(request, whole=False)
        if not checked.is_remembered:
            with self.charge() as charge:
                prepared = await self._preparer.prepare(
                    request, checked, charge, counts=True, admit=admit
                )
                return await count_tokens(prepared, self.failure_log)
        async with run_turn(
            request, self._memories, self._memory.inject_tokens, reads_only=True
        ) as turn:
            with self.charge() as charge:
                prepared = await self._preparer.prepare(
                    request, checked, charge, turn, counts=True, admit=admit
                )
                counted = await count_tokens(prepared, self.failure_log)
            await turn.turn.close()
        return counted

    async def drain(self, within_s: float) -> None:
        """Wait up to `within_s` seconds for answers that are still to be committed to memory."""
        await self._committer.drain(within_s)

    def charge(self) -> Charge:
        """Return the bytes held by the current task's request."""
        return Charge(self._budget, caller_id(), request_charge.get())

    async def _whole(self, prepared: PreparedRequest) -> GenerateResponse | PassthroughAnswer:
        if prepared.tools is not None:
            async with aclosing(self._in_rounds(prepared, *prepared.tools, whole=True)) as batches:
                return whole_of([batch async for batch in batches])
        runner = self.runner(
            prepared.plan, prepared.attempts, whole=True, on_end=prepared.meter.end
        )
        return await runner.answer()

    def _stream(self, prepared: PreparedRequest) -> Batches:
        if prepared.tools is not None:
            return self._in_rounds(prepared, *prepared.tools, whole=False)
        runner = self.runner(
            prepared.plan, prepared.attempts, whole=False, on_end=prepared.meter.end
        )
        return runner.stream()

    def _in_rounds(
        self, prepared: PreparedRequest, rounds: Rounds, web: WebTools, *, whole: bool
    ) -> Batches:
        meter = prepared.meter

        def start_runner(plan: Plan, budget: RetryBudget | None) -> FallbackRunner:
            return self.runner(
                plan, prepared.attempts, whole=whole, budget=budget, on_end=meter.add
            )

        usage: RequestUsage | None = current_usage.get(None)
        loop = ToolLoop(
            prepared.plan,
            rounds,
            start_runner,
            web,
            self._metrics,
            meter.end,
            None if usage is None else usage.extend,
            whole=whole,
        )
        return loop.batches()

    def _direct_runner(
        self, lazy: GenerateRequest | LazyRequest, *, whole: bool
    ) -> FallbackRunner | None:
        """Return the runner of a lazy request, which the facade has validated.

        None for one that has to be complete, for memory, files or the gateway's own tools.
        """
        if not isinstance(lazy, LazyRequest):
            return None
        routes, plans = self._routed
        request = lazy.request
        if request.use_built_in_tools or (request.built_in_tools_by_default and routes.has_search):
            return None
        if request.HasField("memory") and uses_memory(request):
            return None
        plan = plans.plan_for(request)
        if plan.is_balanced:
            plan = self.balancer.expand_deployments(plan, request, whole=whole, lazy=lazy)
        providers = routes.providers_of(request.dialect)
        attempts = RequestAttempts(
            request, (), plan, providers, self._signer, self.refusals, lazy=lazy
        )
        if not lazy.is_small:
            # Now, as this runs in a thread; the event loop would wait for either.
            attempts.estimate()
            if providers[plan.steps[0].target.adapter].dialect != request.dialect:
                _ = lazy.plain
        meter = self.metering.begin(request, attempts.input_tokens)
        return self.runner(plan, attempts, whole=whole, on_end=meter.end)

    def runner(
        self,
        plan: Plan,
        attempts: AttemptFactory,
        *,
        whole: bool,
        on_end: OnEnd,
        budget: RetryBudget | None = None,
    ) -> FallbackRunner:
        """Return the runner of a plan.

        Args:
            plan: the plan.
            attempts: makes the attempts.
            whole: whether to return a whole answer instead of a stream.
            on_end: called once, when the run has ended.
            budget: time and retries shared with earlier runs; by default those of the plan.
        """
        # Of one model, nothing is called beside it.
        usage = current_usage.get(None) if len(plan.steps) > 1 else None
        return FallbackRunner(
            self._timers,
            plan,
            attempts,
            self._attempt_log,
            self._uniform,
            on_end,
            whole=whole,
            budget=budget,
            reserve_rival=None if usage is None else usage.reserve_rival,
        )

    async def _remembered(self, request: GenerateRequest, checked: CheckedRequest) -> Batches:
        turn = await begin_turn(request, self._memories, self._memory.inject_tokens)
        with self.charge() as charge:
            async with turn.closing_on_failure():
                batches = self._stream(await self._preparer.prepare(request, checked, charge, turn))
            async with aclosing(self._committer.stream(turn, batches)) as committed:
                async for batch in committed:
                    yield batch

    async def _charged(self, request: GenerateRequest, checked: CheckedRequest) -> Batches:
        """Stream the answer to a request that may name content, which is charged meanwhile."""
        with self.charge() as charge:
            prepared = await self._preparer.prepare(request, checked, charge)
            async with aclosing(self._stream(prepared)) as batches:
                async for batch in batches:
                    yield batch

    async def _checked(self, request: GenerateRequest, *, whole: bool) -> CheckedRequest:
        mark(request)
        routes, plans = self._routed
        return await offload(
            check_request,
            request,
            routes,
            plans,
            self.balancer,
            partial(self.open_summaries, request),
            whole=whole,
        )

    def open_summaries(self, request: GenerateRequest) -> None:
        """Put the texts of sealed summaries in their places; see `sealed_summaries`."""
        open_summaries(request, self.sealer, caller_id())

    async def prepare_deferred(
        self, sent: GenerateRequest | LazyRequest, charge: Charge, choose: Callable[[Plan], Plan]
    ) -> tuple[GenerateRequest, PreparedRequest]:
        """Return a request, prepared for the plan that `choose` makes of its usual one.

        Raises:
            GatewayError: unsupported, it needs memory or the gateway's own tools.
        """
        request = await offload(self._complete, sent)
        checked = await self._checked(request, whole=True)
        if checked.is_remembered or checked.offers_tools or checked.has_tool_calls:
            raise unsupported("model", "model: no batch service runs this request")
        checked = checked._replace(plan=choose(checked.plan))
        return request, await self._preparer.prepare(request, checked, charge, counts=True)

    def _complete(self, sent: GenerateRequest | LazyRequest) -> GenerateRequest:
        """Return the complete request; agents use the gateway's own tools only if it has them."""
        request = sent.complete() if isinstance(sent, LazyRequest) else sent
        if request.built_in_tools_by_default:
            request.use_built_in_tools = self.routes.has_search
        return request
