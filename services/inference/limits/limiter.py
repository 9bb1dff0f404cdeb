"""Answers requests of callers with limits: admission, the engine, settlement."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

from gateway.accounts.v1.limits_pb2 import SubjectLimits
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    EmbedResponse,
    GenerateRequest,
    GenerateResponse,
)
from services.common.errors import GatewayError
from services.common.lazy_request import LazyRequest
from services.inference import embeddings, estimate
from services.inference.engine import Engine
from services.inference.limits.admission import Admission, Permit
from services.inference.limits.refusals import model_refused
from services.inference.limits.subjects import counts_tokens, models_of, refused_model
from services.inference.limits.usage import AnswerMeter, End, Price, tokens_of
from services.inference.offload import mark, offload
from services.inference.stream.batches import Batches
from services.inference.usage.spent import Spent, spent

# Bytes of JSON that are about a token, at least.
_BYTES_A_TOKEN = 3


class Answers(Protocol):
    """What answers requests, where no limit refuses them."""

    async def generate(self, given: GenerateRequest | LazyRequest) -> GenerateResponse:
        """Return a whole answer."""

    async def stream(self, given: GenerateRequest | LazyRequest) -> Batches:
        """Return the answer as it comes."""


class Limiter:
    """Answers requests within the limits of their callers.

    Args:
        engine: returns vectors.
        admission: admits them.
        price: returns what a model's use costs.
    """

    def __init__(self, engine: Engine, admission: Admission, price: Price) -> None:
        self._engine = engine
        self._admission = admission
        self._price = price

    async def generate(
        self,
        limits: Sequence[SubjectLimits],
        request: GenerateRequest | LazyRequest,
        answers: Answers,
    ) -> GenerateResponse:
        """Return a whole answer.

        Raises:
            GatewayError: as `Admission.admit`; permission_denied, a model is not allowed; as
                `Engine.generate`.
        """
        permit = await self._admit(limits, request)
        used, meter = _noted(), AnswerMeter()
        end = End.LEFT
        try:
            answer = await answers.generate(request)
            meter.add_answer(answer)
            answer.route.limits.extend(permit.limits())
            end = End.COMPLETE
            return answer
        except GatewayError:
            end = End.FAILED
            raise
        finally:
            self._settle(permit, used, meter, end)

    async def stream(
        self,
        limits: Sequence[SubjectLimits],
        request: GenerateRequest | LazyRequest,
        answers: Answers,
    ) -> Batches:
        """Yield a streamed answer; it counts as under way until its end, or until it is closed.

        Raises:
            GatewayError: as `generate`.
        """
        permit = await self._admit(limits, request)
        used, meter = _noted(), AnswerMeter()
        end = End.LEFT
        try:
            async with aclosing(await answers.stream(request)) as batches:
                async for batch in batches:
                    start = meter.add_events(batch)
                    if start is not None:
                        start.route.limits.extend(permit.limits())
                    yield batch
            end = End.COMPLETE
        except GatewayError:
            end = End.FAILED
            raise
        finally:
            self._settle(permit, used, meter, end)

    async def embed(self, limits: Sequence[SubjectLimits], request: EmbedRequest) -> EmbedResponse:
        """Return vectors of texts.

        Raises:
            GatewayError: as `generate`.
        """
        embeddings.check(request)
        check_models(limits, request)
        tokens = estimate.estimate_inputs(request) if counts_tokens(limits) else 0
        permit = await self._admission.admit(limits, tokens)
        used, meter = _noted(), AnswerMeter()
        end = End.LEFT
        try:
            answer = await embeddings.embed(self._engine, request)
            meter.add_answer(GenerateResponse(route=answer.route))
            answer.route.limits.extend(permit.limits())
            end = End.COMPLETE
            return answer
        except GatewayError:
            end = End.FAILED
            raise
        finally:
            self._settle(permit, used, meter, end)

    async def _admit(
        self, limits: Sequence[SubjectLimits], given: GenerateRequest | LazyRequest
    ) -> Permit:
        request = given.request if isinstance(given, LazyRequest) else given
        check_models(limits, request)
        tokens = 0
        if counts_tokens(limits):
            if isinstance(given, LazyRequest):
                # What is not read yet is text alone.
                tokens = given.ByteSize() // _BYTES_A_TOKEN + 1
            else:
                mark(given)
                tokens = await offload(estimate.estimate_input_tokens, given)
        return await self._admission.admit(limits, tokens)

    def _settle(self, permit: Permit, used: Spent, meter: AnswerMeter, end: End) -> None:
        models = meter.used(used, permit.tokens, end)
        tokens = sum(tokens_of(one) for one in models)
        permit.end(tokens, sum(self._price(one) or 0 for one in models))


def _noted() -> Spent:
    """Have noted what the models of the request use that this task handles."""
    used = Spent()
    spent.set(used)
    return used


def check_models(limits: Sequence[SubjectLimits], request: GenerateRequest | EmbedRequest) -> None:
    """Check that a caller may use the models that its request names.

    Raises:
        GatewayError: permission_denied, naming the field.
    """
    refused = refused_model(limits, models_of(request))
    if refused is not None:
        raise model_refused(*refused)
