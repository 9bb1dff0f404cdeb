"""What the handlers of a facade share, under typed keys of the application."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import grpc
from aiohttp import web
from prometheus_client import CollectorRegistry

from facade.access_log import AccessLog
from facade.body_budget import BodyBudget
from facade.cors import Cors
from facade.draining import Drain
from facade.metrics import Metrics
from facade.parser_pool import ParserPool
from gateway.articles.v1 import articles_pb2_grpc
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.files.v1 import files_pb2_grpc
from gateway.inference.v1 import inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import Served
from gateway.memory.v1 import memory_pb2_grpc
from services.common.authentication import Identify
from services.common.ids import Source
from services.common.settings import Settings


@dataclass(frozen=True)
class Context:
    """Everything a handler may need.

    Attributes:
        settings: what the operator set.
        channel: carries every call to the services.
        inference: the stub of the InferenceService on it.
        files: the stub of the FileStoreService on it.
        articles: the stub of the ArticleEditorService on it.
        memory: the stub of the MemoryService on it.
        identify: looks an API key up, through AccountsService, and remembers.
        parser: parses bodies of chat completions and messages.
        body_budget: bounds the bytes of bodies that are held at once.
        access_log: what this process writes of its requests.
        metrics: what this process counts.
        registry: what /metrics shows.
        source: identifiers and clocks.
        drain: the requests in hand.
        cors: what pages of other origins are told; None where none may read responses.
    """

    settings: Settings
    channel: grpc.aio.Channel
    inference: "inference_pb2_grpc.InferenceServiceAsyncStub"
    files: "files_pb2_grpc.FileStoreServiceAsyncStub"
    articles: "articles_pb2_grpc.ArticleEditorServiceAsyncStub"
    memory: "memory_pb2_grpc.MemoryServiceAsyncStub"
    identify: Identify
    parser: ParserPool
    body_budget: BodyBudget
    access_log: AccessLog
    metrics: Metrics
    registry: CollectorRegistry
    source: Source
    drain: Drain
    cors: Cors | None


class Answered(NamedTuple):
    """Who served an answer, as callers name the model, and the tokens read and written.

    Plain values: a part of a message would keep all of it, and an answer may have megabytes.
    """

    model: str
    provider: str
    input_tokens: int
    output_tokens: int

    @classmethod
    def of(cls, served: Served, usage: Usage) -> Self:
        """Return what the two tell; tokens of a provider's cache count as read."""
        read = usage.input_tokens
        read += usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        return cls(served.model, served.provider, read, usage.output_tokens)


CONTEXT = web.AppKey("context", Context)
