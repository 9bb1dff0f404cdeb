"""How one request becomes an answer: find what may answer it, run that.

The engine owns the order of things. What each rule is stands in the modules beside it;
how a provider is spoken to, in `providers`; what is tried when one fails, in `fallback`.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import (
    CountTokensResponse,
    GenerateRequest,
    GenerateResponse,
    Served,
)
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference import estimate, extensions, thinking
from services.inference.accumulator import Accumulator
from services.inference.asking import Asking, PrefillRefusals
from services.inference.attempt import Batches
from services.inference.fallback.backoff import Uniform
from services.inference.fallback.breakers import Breakers
from services.inference.fallback.chain import Chain
from services.inference.fallback.ledger import Ledger
from services.inference.fallback.plan import Plan, make_plan
from services.inference.files import Files, place_files
from services.inference.media import Found, find_media
from services.inference.metrics import Metrics
from services.inference.providers.base import Call, Provider
from services.inference.routing import Models


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
        limits: bounds on time and size.
        metrics: what is counted.
        monotonic: seconds of a clock that never goes back.
        uniform: throws the dice for the jitter of waits.

    Attributes:
        breakers: of the models that keep failing.
    """

    def __init__(
        self,
        routes: Routes,
        signer: thinking.Signer,
        files: Files,
        limits: Limits,
        metrics: Metrics,
        monotonic: Callable[[], float],
        uniform: Uniform = random.uniform,
    ) -> None:
        self.routes = routes
        self.breakers = Breakers(limits.breaker_failures, monotonic, metrics.breaker_changed)
        self._signer = signer
        self._files = files
        self._limits = limits
        self._ledger = Ledger(self.breakers, metrics, monotonic)
        self._uniform = uniform
        self._refusals = PrefillRefusals()

    async def generate(self, request: GenerateRequest) -> GenerateResponse:
        """Give one whole answer."""
        plan, asking = await self._admit(request)
        chain = Chain(plan, asking, self._ledger, self._uniform, whole=True)
        accumulator = Accumulator()
        for batch in await chain.whole():
            accumulator.add(batch)
        return accumulator.response()

    async def stream(self, request: GenerateRequest) -> Batches:
        """Give the answer as it comes; closing the iterator ends it at the provider."""
        plan, asking = await self._admit(request)
        return Chain(plan, asking, self._ledger, self._uniform, whole=False).stream()

    async def count_tokens(self, request: GenerateRequest) -> CountTokensResponse:
        """Count what a request would read; a provider that cannot tell is estimated."""
        plan, asking = await self._admit(request)
        step = plan.steps[0]
        provider = self.routes.providers[step.target.provider]
        request = asking.seen_by(provider, asking.prepare(step).request)
        call = Call(request, step.target, stream=False)
        try:
            counted = await provider.count_tokens(call)
        except UpstreamError as error:
            if error.reason == errors_pb2.REASON_UPSTREAM_REJECTED:
                raise
            counted = None
        return CountTokensResponse(
            input_tokens=estimate.estimate_input_tokens(request) if counted is None else counted,
            estimated=counted is None,
            served=Served(
                model=step.target.name,
                provider=step.target.provider,
                step=step.step_id,
                attempts=1,
                dropped=call.dropped,
            ),
        )

    async def _admit(self, request: GenerateRequest) -> tuple[Plan, Asking]:
        """Find what may answer, and make the request one that it can be asked."""
        extensions.check_request(request)
        routes = self.routes
        plan = make_plan(request, routes.models, self._limits)
        media = find_media(request)
        if named := [*media, *_overriding_media(request, plan)]:
            await place_files(
                named,
                self._files,
                at_most=self._limits.max_body,
                keep_foreign=any(
                    routes.providers[step.target.provider].pass_stateful for step in plan.steps
                ),
            )
        asking = Asking(request, media, plan, routes.providers, self._signer, self._refusals)
        return plan, asking


def _overriding_media(request: GenerateRequest, plan: Plan) -> list[Found]:
    """Give the media of conversations that steps have instead of the request's."""
    found: list[Found] = []
    for step in plan.steps:
        if step.parameters is not None and step.parameters.messages:
            step.parameters.dialect = request.dialect
            found += [
                Found(f"{step.path}.parameters.{one.path}", one.block)
                for one in find_media(step.parameters)
            ]
    return found
