"""The InferenceService's gRPC servicer."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from services.common.authentication import caller
from services.common.errors import model_not_found
from services.common.large_request import LargeRequest
from services.common.lazy_request import LazyRequest
from services.inference import embeddings, tasks
from services.inference.engine import Engine
from services.inference.limits.limiter import Limiter, check_models
from services.inference.limits.subjects import may_use
from services.inference.offload import parse_large
from services.inference.stream.event_batch import EventBatch

SERVICE_NAME = inference_pb2.DESCRIPTOR.services_by_name["InferenceService"].full_name


class InferenceServicer(inference_pb2_grpc.InferenceServiceServicer):
    """Implements `inference.proto`; errors are raised as GatewayError."""

    def __init__(self, engine: Engine, limiter: Limiter) -> None:
        self._engine = engine
        self._limiter = limiter

    async def Generate(
        self,
        request: inference_pb2.GenerateRequest | LazyRequest | LargeRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> inference_pb2.GenerateResponse:
        """Return a whole answer."""
        if isinstance(request, LargeRequest):
            request = await parse_large(request)
        if limits := caller.get().limits:
            return await self._limiter.generate(limits, request)
        return await self._engine.generate(request)

    async def StreamGenerate(
        self,
        request: inference_pb2.GenerateRequest | LazyRequest | LargeRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> AsyncIterator[Any]:
        """Yield a streamed answer, as `EventBatch`es."""
        if isinstance(request, LargeRequest):
            request = await parse_large(request)
        if limits := caller.get().limits:
            answer = self._limiter.stream(limits, request)
        else:
            answer = await self._engine.stream(request)
        async with aclosing(answer) as batches:
            async for batch in batches:
                yield EventBatch(batch)

    async def CountTokens(
        self,
        request: inference_pb2.GenerateRequest | LargeRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> inference_pb2.CountTokensResponse:
        """Count the input tokens of a request."""
        if isinstance(request, LargeRequest):
            request = await parse_large(request)
        if limits := caller.get().limits:
            check_models(limits, request)
        return await self._engine.count_tokens(request)

    async def Embed(
        self,
        request: inference_pb2.EmbedRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> inference_pb2.EmbedResponse:
        """Return vectors of texts."""
        if limits := caller.get().limits:
            return await self._limiter.embed(limits, request)
        return await embeddings.embed(self._engine, request)

    async def ListModels(
        self,
        request: inference_pb2.ListModelsRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> inference_pb2.ListModelsResponse:
        """Return the available models, those that the caller may use."""
        models = self._engine.routes.models.list()
        if limits := caller.get().limits:
            models = [model for model in models if may_use(limits, model.name)]
        return inference_pb2.ListModelsResponse(models=models)

    async def GetModel(
        self,
        request: inference_pb2.GetModelRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> inference_pb2.GetModelResponse:
        """Return a model that the caller may use."""
        if not may_use(caller.get().limits, request.name):
            raise model_not_found(request.name, "name")
        return inference_pb2.GetModelResponse(model=self._engine.routes.models.get(request.name))

    async def RunTask(
        self,
        request: inference_pb2.RunTaskRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> inference_pb2.RunTaskResponse:
        """Run a task of the gateway's own."""
        return await tasks.run(self._engine, request)
