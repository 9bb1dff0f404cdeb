"""The InferenceService's gRPC servicer."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, nullcontext
from functools import partial
from typing import Any

import grpc

from gateway.accounts.v1.limits_pb2 import SubjectLimits
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from services.common.errors import GatewayError, model_not_found
from services.common.grpc.authentication import caller
from services.common.messages.deferred_call import DeferredCall, deferred_call
from services.common.messages.large_request import LargeRequest
from services.common.messages.lazy_request import LazyRequest
from services.inference import embeddings, forwarding, tasks
from services.inference.compaction.answers import CompactedAnswers
from services.inference.forwarded_files import place_images
from services.inference.limits.label_limits import LabelLimits
from services.inference.limits.limiter import Limiter
from services.inference.limits.named_models import check_models
from services.inference.limits.subjects import may_use
from services.inference.offload import mark, mark_large, offload, parse_large
from services.inference.response_cache import directives
from services.inference.response_cache.cached_answers import CachedAnswers, DirectedAnswers
from services.inference.response_cache.directives import CacheDirectives
from services.inference.run import deferred
from services.inference.run.engine import Engine
from services.inference.stream.batches import EventBatch, OnBatch, observed
from services.inference.stream.filters import Batch

# Sends a message at once; returns whether the next ones should wait.
Send = Callable[[Any], bool]

_UNLIMITED = nullcontext()

SERVICE_NAME = inference_pb2.DESCRIPTOR.services_by_name["InferenceService"].full_name


class InferenceServicer(inference_pb2_grpc.InferenceServiceServicer):
    """Implements `inference.proto`; errors are raised as GatewayError.

    Args:
        engine: answers requests.
        limiter: admits requests of callers with limits.
        cache: caches the engine's answers; None without a cache.
        labels: the limits of labels; None if the settings enable no labels.
    """

    def __init__(
        self,
        engine: Engine,
        limiter: Limiter,
        cache: CachedAnswers | None = None,
        labels: LabelLimits | None = None,
    ) -> None:
        self._engine = engine
        self._compacted = CompactedAnswers(engine)
        self._limiter = limiter
        self._cache = cache
        self._labels = labels

    async def Generate(
        self,
        request: inference_pb2.GenerateRequest | LazyRequest | LargeRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> Any:
        """Return a whole answer, as a message or a `PassthroughAnswer`."""
        if isinstance(request, LargeRequest):
            request = await parse_large(request)
        elif isinstance(request, LazyRequest) and not request.is_small:
            mark_large()
        answers = self._answers_to(request, context)
        limits = caller.get().limits if self._labels is None else await self._begin(context)
        if (call := deferred_call.get()) is not None:
            return await self._answer_deferred(request, limits, call)
        if not limits:
            return await answers.answer(request)
        with await self._limiter.begin(limits, request) as limited:
            answer = await answers.answer(request)
            limited.add_answer(answer)
            return answer

    async def StreamGenerate(
        self,
        request: inference_pb2.GenerateRequest | LazyRequest | LargeRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncGenerator[Any, Send | None]:
        """Yield the events of an answer in `EventBatch`es; see `CallContext.write_all`."""
        if isinstance(request, LargeRequest):
            request = await parse_large(request)
        elif isinstance(request, LazyRequest) and not request.is_small:
            mark_large()
        if deferred_call.get() is not None:
            raise deferred.not_deferred()
        answers = self._answers_to(request, context)
        limits = caller.get().limits if self._labels is None else await self._begin(context)
        limited = await self._limiter.begin(limits, request) if limits else None
        with limited or _UNLIMITED:
            answer = await answers.stream(request)
            if limited is not None:
                answer = observed(answer, limited.add_events)
            on_batch: OnBatch | None = None
            async with aclosing(answer) as batches:
                try:
                    batch = await anext(batches)
                    while True:
                        send = yield EventBatch(batch) if batch else None
                        if send is not None and on_batch is None:
                            on_batch = partial(_send_batch, send)
                        batch = await batches.asend(on_batch)
                except StopAsyncIteration:
                    return

    async def CountTokens(
        self,
        request: inference_pb2.GenerateRequest | LargeRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> inference_pb2.CountTokensResponse:
        """Count the input tokens of a request."""
        if isinstance(request, LargeRequest):
            request = await parse_large(request)
        limits = caller.get().limits
        if not limits:
            return await self._engine.count_tokens(request)
        mark(request)
        await offload(check_models, limits, request)
        with self._limiter.begin_count(limits) as count:
            return await self._engine.count_tokens(request, count.admit)

    async def Embed(
        self,
        request: inference_pb2.EmbedRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> inference_pb2.EmbedResponse:
        """Return the embeddings of texts."""
        if deferred_call.get() is not None:
            raise deferred.not_deferred()
        limits = caller.get().limits if self._labels is None else await self._begin(context)
        if not limits:
            return await embeddings.embed(self._engine, request)
        embeddings.check(request)
        with await self._limiter.begin(limits, request) as limited:
            answer = await embeddings.embed(self._engine, request)
            limited.add_answer(answer)
            return answer

    async def Forward(
        self,
        request: inference_pb2.ForwardRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncGenerator[Any, None]:
        """Yield the events of the answer to a request that is no conversation."""
        if deferred_call.get() is not None:
            raise deferred.not_deferred()
        limits = caller.get().limits if self._labels is None else await self._begin(context)
        forwarding.check(request)
        forwarding.check_served(self._engine, request)
        limited = await self._limiter.begin(limits, request) if limits else None
        with limited or _UNLIMITED, self._engine.charge() as charge:
            sent = await place_images(
                request, self._engine.files, charge, self._engine.max_body_bytes
            )
            answer = forwarding.forward(self._engine, request, sent)
            if limited is not None:
                answer = observed(answer, limited.add_events)
            async with aclosing(answer) as batches:
                async for batch in batches:
                    yield EventBatch(batch)

    async def ListModels(
        self,
        request: inference_pb2.ListModelsRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> inference_pb2.ListModelsResponse:
        """Return the listed models that the caller may use."""
        models = self._engine.routes.models.list()
        if limits := caller.get().limits:
            models = [model for model in models if may_use(limits, model.name)]
        return inference_pb2.ListModelsResponse(models=map(self._with_prices, models))

    async def GetModel(
        self,
        request: inference_pb2.GetModelRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> inference_pb2.GetModelResponse:
        """Return one model; not found if the caller may not use it."""
        if not may_use(caller.get().limits, request.name):
            raise model_not_found(request.name, "name")
        model = self._engine.routes.models.get(request.name)
        return inference_pb2.GetModelResponse(model=self._with_prices(model))

    async def RunTask(
        self,
        request: inference_pb2.RunTaskRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> inference_pb2.RunTaskResponse:
        """Run a task of the gateway's own."""
        return await tasks.run(self._engine, request)

    def _answers_to(
        self,
        request: inference_pb2.GenerateRequest | LazyRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> Engine | CompactedAnswers | DirectedAnswers:
        """Return what answers a request; an answer that compacts its conversation is not cached."""
        inner = request.request if isinstance(request, LazyRequest) else request
        if inner.HasField("compaction"):
            return self._compacted
        if self._cache is None:
            return self._engine
        return DirectedAnswers(self._cache, _directives(context))

    async def _answer_deferred(
        self,
        request: inference_pb2.GenerateRequest | LazyRequest,
        limits: Sequence[SubjectLimits],
        call: DeferredCall,
    ) -> Any:
        """Return the answer of a batch service; without one, render the call of the provider.

        Raises:
            GatewayError: cancelled, the call has been rendered; unsupported, the gateway has to run
                the request; else as `Generate`.
        """
        inner = request.request if isinstance(request, LazyRequest) else request
        if inner.HasField("compaction"):
            raise deferred.not_deferred()
        if call.answer is None:
            with await self._limiter.begin(limits, request) if limits else _UNLIMITED:
                call.rendered = await deferred.render(self._engine, request)
            raise GatewayError(errors_pb2.REASON_CANCELLED, "the call has been rendered")
        limited = self._limiter.begin_answered(limits) if limits else None
        with limited or _UNLIMITED:
            answer = await deferred.read_answer(self._engine, request, call)
            if limited is not None:
                limited.add_answer(answer)
            return answer

    async def _begin(self, context: grpc.aio.ServicerContext[Any, Any]) -> Sequence[SubjectLimits]:
        """Set the labels of the current task's request; return the limits that apply to it.

        Raises:
            GatewayError: as `LabelLimits.begin`.
        """
        assert self._labels is not None, "labels are enabled"
        return await self._labels.begin(caller.get(), context.invocation_metadata() or ())

    def _with_prices(self, model: inference_pb2.Model) -> inference_pb2.Model:
        rates = self._engine.routes.costs.token_rates(model.provider, model.name, "")
        if rates is None:
            return model
        prices = inference_pb2.TokenPrices(
            input=rates.input_tokens,
            output=rates.output_tokens,
            cached_input=rates.cache_read_tokens,
            cache_write=rates.cache_write_tokens,
            reasoning=rates.reasoning_tokens,
        )
        priced = inference_pb2.Model(prices=prices)
        priced.MergeFrom(model)
        return priced


def _send_batch(send: Send, batch: Batch) -> bool:
    """Send a batch; return whether the next ones should wait."""
    return send(EventBatch(batch))


def _directives(context: grpc.aio.ServicerContext[Any, Any]) -> CacheDirectives:
    """Return the cache directives in the metadata of a call."""
    for name, value in context.invocation_metadata() or ():
        if name == "cache-control":
            return directives.parse(str(value))
    return CacheDirectives()
