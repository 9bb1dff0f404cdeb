"""Forwarded requests, which are no conversations: validates one, makes its plan, and runs the plan.

They have one form at all providers of OpenAI's dialect, and are sent as they are but for the model.
Providers of other dialects have no such requests.
"""

from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Final

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import ForwardRequest, GenerateRequest
from services.common.errors import GatewayError, UpstreamError, invalid, unsupported
from services.common.process.telemetry.conventions import Operation
from services.common.text.texts import MAX_NAME
from services.inference.attempt import Attempt
from services.inference.circuit_breaker import ModelKey
from services.inference.fallback.attempts import UnpreparedAttempts
from services.inference.learned.chat_models import ChatModels
from services.inference.limits.fees import Fees
from services.inference.limits.reservation import Demand
from services.inference.offload import mark_large
from services.inference.plans.plan import Plan, Step
from services.inference.pricing.pieces import pieces_of
from services.inference.providers.base import Call, ForwardCall, Forwards, Provider
from services.inference.request.estimate import estimate_forwarded
from services.inference.run.engine import Engine
from services.inference.stream.batches import Batches

# Also in the proto.
MAX_PARTS: Final = 512
_MAX_FILENAME: Final = 1_024
# Bytes of a request that takes some milliseconds to serialize.
_LARGE: Final = 1 << 20

_CHAINS: Final = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)
_IMAGES: Final[tuple[str, Operation]] = ("images", "generate_content")
# By operation: the endpoint in usage records, and the operation in spans.
_NAMES: Final[Mapping[int, tuple[str, Operation]]] = {
    ForwardRequest.OPERATION_MODERATION: ("moderations", "moderation"),
    ForwardRequest.OPERATION_IMAGE_GENERATION: _IMAGES,
    ForwardRequest.OPERATION_IMAGE_EDIT: _IMAGES,
    ForwardRequest.OPERATION_IMAGE_VARIATION: _IMAGES,
    ForwardRequest.OPERATION_SPEECH: ("speech", "generate_content"),
    ForwardRequest.OPERATION_TRANSCRIPTION: ("transcriptions", "generate_content"),
    ForwardRequest.OPERATION_TRANSLATION: ("translations", "generate_content"),
    ForwardRequest.OPERATION_RERANK: ("rerank", "rerank"),
    ForwardRequest.OPERATION_COMPLETION: ("completions", "text_completion"),
}
# Operations whose answers have no tokens of their own.
_GENERATES_NOTHING: Final = (
    ForwardRequest.OPERATION_MODERATION,
    ForwardRequest.OPERATION_RERANK,
)


def forward(engine: Engine, request: ForwardRequest, sent: ForwardRequest) -> Batches:
    """Return the answer of a request, in batches of events.

    Args:
        engine: makes the attempts.
        request: the request.
        sent: the same with the content of its files, for providers.

    Raises:
        GatewayError: invalid, with the path of the field; model_not_found; unsupported, the
            model's provider has no such requests; else the error of a provider.
    """
    check(request)
    if sent.ByteSize() > _LARGE:
        mark_large()
    routed, plan = _routed(engine, request)
    check_served(engine, request, plan)
    endpoint, operation = _NAMES[request.operation]
    # An answer that breaks off cannot be continued, and two at once would cost twice as much.
    plan = plan._replace(operation=operation, hedge_after_s=0.0, max_recovered_characters=None)
    if plan.is_balanced:
        plan = engine.balancer.expand_deployments(plan, routed, whole=False)
    attempts = ForwardAttempts(sent, routed, engine.routes.providers, engine.chat_models)
    meter = engine.metering.begin(routed, partial(estimate_forwarded, request), endpoint=endpoint)
    return engine.runner(plan, attempts, whole=False, on_end=meter.end).stream()


def check_served(engine: Engine, request: ForwardRequest, plan: Plan | None = None) -> None:
    """Check that the first model may have legacy completions, if that is what a request is for.

    Raises:
        GatewayError: unsupported; as `forward`.
    """
    if request.operation != ForwardRequest.OPERATION_COMPLETION:
        return
    plan = _routed(engine, request)[1] if plan is None else plan
    first = next(plan.places())
    provider = engine.routes.providers[first.target.adapter]
    if not isinstance(provider, Forwards) or first.key in engine.chat_models:
        raise _only_chats(provider)


def _only_chats(provider: Provider) -> GatewayError:
    return unsupported("model", f"model: the provider {provider.name} has only chats for it")


def demand_of(engine: Engine, request: ForwardRequest, fees: Fees | None) -> Demand:
    """Return what a request may use at most.

    Raises:
        GatewayError: as `forward`.
    """
    routed, plan = _routed(engine, request)
    generates = request.operation not in _GENERATES_NOTHING
    costs, pieces = engine.routes.costs, pieces_of(request)
    return Demand(plan, routed, fees, costs, generates=generates, pieces=pieces)


def _routed(engine: Engine, request: ForwardRequest) -> tuple[GenerateRequest, Plan]:
    """Return a generate request with the models and headers of a request, and the plan."""
    routed = GenerateRequest(
        model=request.model,
        dialect=DIALECT_OPENAI,
        headers=request.headers,
        fallback=request.fallback,
    )
    if request.fallback in _CHAINS and request.HasField("fallback_config"):
        for index, step in enumerate(request.fallback_config.steps):
            if step.HasField("parameters"):
                where = f"fallback_config.steps[{index}].parameters"
                raise invalid(where, f"{where}: not supported for this endpoint")
        routed.fallback_config.CopyFrom(request.fallback_config)
    return routed, engine.plan_of(routed)


def check(request: ForwardRequest) -> None:
    """Validate a request by the rules of the proto.

    Raises:
        GatewayError: invalid, with the path of the field and its valid values.
    """
    if not 1 <= len(request.model) <= MAX_NAME:
        raise invalid("model", f"model: must be 1 to {MAX_NAME} characters")
    if request.operation not in _NAMES:
        raise invalid("operation", "operation: must be one of ForwardRequest.Operation")
    if bool(request.json) == bool(request.parts):
        raise invalid("json", "json: either json or parts is required")
    if len(request.parts) > MAX_PARTS:
        raise invalid("parts", f"parts: must have at most {MAX_PARTS} items")
    for index, part in enumerate(request.parts):
        for field, value, least, most in (
            ("name", part.name, 1, MAX_NAME),
            ("filename", part.filename, 0, _MAX_FILENAME),
            ("content_type", part.content_type, 0, MAX_NAME),
        ):
            if not least <= len(value) <= most or (value and not value.isprintable()):
                where = f"parts[{index}].{field}"
                raise invalid(where, f"{where}: must be {least} to {most:,} printable characters")


class ForwardAttempts(UnpreparedAttempts):
    """Makes the attempts of a forwarded request; see `fallback.attempts.AttemptFactory`.

    Args:
        request: the request.
        routed: a generate request with its models and headers.
        providers: the providers, by name.
        chat_models: the models that only chat; new ones are added.
    """

    def __init__(
        self,
        request: ForwardRequest,
        routed: GenerateRequest,
        providers: Mapping[str, Provider],
        chat_models: ChatModels,
    ) -> None:
        self._request = request
        self._routed = routed
        self._providers = providers
        self._chat_models = chat_models

    def direct_attempt(self, step: Step, *, stream: bool) -> Attempt:
        """Return a first attempt, which needs no preparation."""
        provider = self._providers[step.target.adapter]
        call = ForwardCall(self._routed, step.target, True, sent=self._request)
        return Attempt(call, _Forwarder(provider, call, step.key, self._chat_models))

    def reserved_tokens(self, step: Step) -> int:
        """Return the estimated tokens of the request."""
        return estimate_forwarded(self._request)

    def refused(self, step: Step) -> frozenset[str]:
        """Return no fields: requests are sent as they are."""
        return frozenset()

    def learn_refusal(self, key: ModelKey, name: str) -> None:
        """Do nothing: a field that a model rejects is not left out."""


class _Forwarder:
    """A provider that answers forwarded requests; see `Answering`."""

    checks_signatures = False

    def __init__(
        self, provider: Provider, call: ForwardCall, key: ModelKey, chat_models: ChatModels
    ) -> None:
        self._key = key
        self._chat_models = chat_models
        self.dialect = provider.dialect
        self._provider = provider
        self._call = call

    async def whole(self, _: Call) -> list[inference_pb2.Event]:
        """Raise an error: answers are always read as streams."""
        raise NotImplementedError("answers to forwarded requests are streams")

    def stream(self, _: Call) -> Batches:
        """Yield the events of the answer.

        Raises:
            GatewayError: unsupported, the provider has no such requests.
        """
        if not isinstance(self._provider, Forwards):
            raise unsupported(
                "model",
                f"model: the provider {self._provider.name} does not serve this endpoint; use a "
                "model of a provider of kind openai",
            )
        batches = self._provider.forward(self._call)
        if self._call.sent.operation == ForwardRequest.OPERATION_COMPLETION:
            return self._completed(batches)
        return batches

    async def _completed(self, batches: Batches) -> Batches:
        """Yield the events of a legacy completion.

        Raises:
            GatewayError: unsupported, the model only chats.
        """
        async with aclosing(batches):
            try:
                async for batch in batches:
                    yield batch
            except UpstreamError as error:
                if self._chat_models.learns_from(self._key, error):
                    raise _only_chats(self._provider) from error
                raise
