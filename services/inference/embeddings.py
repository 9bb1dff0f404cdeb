"""Embeddings: validates a request, makes its plan, and runs the plan.

A model falls back only to models with the same vector space, so that incomparable vectors are never
mixed in one answer, or in answers that a caller compares.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    EmbedResponse,
    Event,
    GenerateRequest,
    GenerateResponse,
)
from services.common.errors import invalid
from services.common.text.texts import MAX_NAME, quoted
from services.inference.attempt import Attempt
from services.inference.circuit_breaker import ModelKey
from services.inference.fallback.attempts import UnpreparedAttempts
from services.inference.learned.refusals import Refusals, all_refused
from services.inference.limits.fees import Fees
from services.inference.limits.reservation import Demand
from services.inference.offload import mark_large
from services.inference.plans.plan import Plan, Step
from services.inference.providers.base import Call, EmbeddingCall, Provider, Target
from services.inference.request.estimate import estimate_inputs
from services.inference.run.engine import Engine
from services.inference.stream.batches import Batches
from services.inference.stream.filters import Batch

MAX_INPUTS = 2_048
MAX_TOKENS = 1_000_000  # of a token list
# Bytes of a request that takes some milliseconds to serialize.
_LARGE = 1 << 20

_CHAINS = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)


async def embed(engine: Engine, request: EmbedRequest) -> EmbedResponse:
    """Return the vectors of a request, in one vector space.

    Raises:
        GatewayError: invalid, with the path of the field; model_not_found; unsupported, if the
            model's provider has no embeddings; else the error of a provider.
    """
    check(request)
    if request.ByteSize() > _LARGE:
        mark_large()
    routed, plan = _routed(engine, request)
    plan = plan._replace(operation="embeddings")
    if plan.is_balanced:
        plan = engine.balancer.expand_deployments(plan, routed, whole=True)
    attempts = EmbeddingAttempts(request, routed, engine.routes.providers, engine.refusals)
    meter = engine.metering.begin(routed, partial(estimate_inputs, request), endpoint="embeddings")
    runner = engine.runner(plan, attempts, whole=True, on_end=meter.end)
    [batch] = await runner.whole_batches()
    response = attempts.response
    response.route.CopyFrom(batch[0].whole.route)
    return response


def demand_of(engine: Engine, request: EmbedRequest, fees: Fees | None) -> Demand:
    """Return what a request may use at most.

    Raises:
        GatewayError: as `embed`.
    """
    routed, plan = _routed(engine, request)
    return Demand(plan, routed, fees, engine.routes.costs, generates=False)


def _routed(engine: Engine, request: EmbedRequest) -> tuple[GenerateRequest, Plan]:
    """Return a generate request with the models and headers of a request, and the plan."""
    routed = GenerateRequest(
        model=request.model,
        dialect=request.dialect,
        headers=request.headers,
        fallback=request.fallback,
    )
    if request.fallback in _CHAINS and request.HasField("fallback_config"):
        routed.fallback_config.CopyFrom(request.fallback_config)
    return routed, in_one_space(engine.plan_of(routed), is_chain=request.fallback in _CHAINS)


def check(request: EmbedRequest) -> None:
    """Validate a request by the rules of the proto.

    Raises:
        GatewayError: invalid, with the path of the field and its valid values.
    """
    if not 1 <= len(request.model) <= MAX_NAME:
        raise invalid("model", f"model: must be 1 to {MAX_NAME} characters")
    field = "token_lists" if request.token_lists else "texts"
    if request.token_lists and request.texts:
        raise invalid(field, f"{field}: cannot be combined with texts")
    if not 1 <= len(request.texts) + len(request.token_lists) <= MAX_INPUTS:
        raise invalid(field, f"{field}: must contain 1 to {MAX_INPUTS:,} items")
    if "" in request.texts:
        where = f"texts[{list(request.texts).index('')}]"
        raise invalid(where, f"{where}: must not be empty")
    for index, one in enumerate(request.token_lists):
        if not 1 <= len(one.tokens) <= MAX_TOKENS:
            where = f"token_lists[{index}]"
            raise invalid(where, f"{where}: must contain 1 to {MAX_TOKENS:,} tokens")
    if request.HasField("dimensions") and not request.dimensions:
        raise invalid("dimensions", "dimensions: must be at least 1")


def in_one_space(plan: Plan, *, is_chain: bool) -> Plan:
    """Return a plan with only the steps that have the vector space of the first one.

    Args:
        plan: the plan.
        is_chain: whether the caller set the steps, which then must have one vector space. The
            operator's fallbacks with other vector spaces are removed.

    Raises:
        GatewayError: invalid, a step of the caller has another vector space, or has parameters.
    """
    first = plan.steps[0]
    if not is_chain:
        steps = [step for step in plan.steps if share_space(step.target, first.target)]
        return _in_one_place(plan._replace(steps=tuple(steps), hedge_after_s=0.0))
    for step in plan.steps:
        if step.parameters is not None:
            where = f"{step.path}.parameters"
            raise invalid(where, f"{where}: not supported for embeddings")
        if not share_space(step.target, first.target):
            where = f"{step.path}.model"
            raise invalid(
                where,
                f"{where}: the vectors of {quoted(step.target.name)} are not in the vector space "
                f"of {quoted(first.target.name)}; if they are, set vector_space of both models to "
                "the same name",
            )
    return _in_one_place(plan)


def _in_one_place(plan: Plan) -> Plan:
    """Return a plan in which a model without a vector space has only its first deployment."""
    if not plan.is_balanced:
        return plan
    steps = (
        step if step.target.vector_space else replace(step, deployments=()) for step in plan.steps
    )
    return plan._replace(steps=tuple(steps))


def share_space(one: Target, other: Target) -> bool:
    """Return whether two models are the same or have the same `vector_space` in the settings."""
    if (one.provider, one.upstream) == (other.provider, other.upstream):
        return True
    return one.vector_space == other.vector_space != ""


def embedding_usage(response: EmbedResponse) -> Usage | None:
    """Return the usage that a provider reported with vectors, or None if it reported none."""
    return None if response.estimated else Usage(input_tokens=response.input_tokens)


class EmbeddingAttempts(UnpreparedAttempts):
    """Makes the attempts of an embedding request; see `fallback.attempts.AttemptFactory`.

    Fallback runs return events. Each attempt therefore returns one `whole` event, for the route and
    the usage, and stores the vectors here.

    Attributes:
        response: the vectors, after a successful attempt.
    """

    def __init__(
        self,
        request: EmbedRequest,
        routed: GenerateRequest,
        providers: Mapping[str, Provider],
        refusals: Refusals,
    ) -> None:
        """Create a factory.

        Args:
            request: the texts.
            routed: a generate request with the dialect and the headers.
            providers: the providers, by name.
            refusals: the fields that models reject.
        """
        self.response = EmbedResponse()
        self._request = request
        self._routed = routed
        self._providers = providers
        self._refusals = refusals

    def direct_attempt(self, step: Step, *, stream: bool) -> Attempt:
        """Return a first attempt, which needs no preparation."""
        provider = self._providers[step.target.adapter]
        call = EmbeddingCall(
            self._routed,
            step.target,
            False,
            refused_fields=self.refused(step),
            inputs=self._request,
        )
        return Attempt(call, _Embedder(provider, call, self))

    def reserved_tokens(self, step: Step) -> int:
        """Return the estimated tokens of the texts."""
        return estimate_inputs(self._request)

    def refused(self, step: Step) -> frozenset[str]:
        """Return the fields that a step's model rejects."""
        return all_refused(step.target.refuses, self._refusals.of(step.key))

    def learn_refusal(self, key: ModelKey, name: str) -> None:
        """Record that a model rejects a field."""
        self._refusals.add(key, name)


class _Embedder:
    """A provider whose vectors take the place of an answer; see `Answering`."""

    checks_signatures = False

    def __init__(
        self, provider: Provider, call: EmbeddingCall, attempts: EmbeddingAttempts
    ) -> None:
        self.dialect = provider.dialect
        self._provider = provider
        self._call = call
        self._attempts = attempts

    async def whole(self, _: Call) -> Batch:
        """Call the provider and store the vectors; return the `whole` event."""
        self._attempts.response = response = await self._provider.embed(self._call)
        return [Event(whole=GenerateResponse(usage=embedding_usage(response)))]

    def stream(self, _: Call) -> Batches:
        """Raise an error: vectors are not streamed."""
        raise NotImplementedError("vectors are not streamed")
