"""Builds the service of stored responses from settings."""

from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2_grpc
from services.common.clock import Clock
from services.common.process.byte_budget import ByteBudget
from services.common.process.metrics import Gauge
from services.common.process.registry import ProcessRegistry
from services.common.settings import Settings
from services.common.storage.disk import DiskReserve
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.responses.background import BackgroundResponses, UserSlots
from services.responses.chats.records import ChatLimits
from services.responses.chats.repository import ChatRepository
from services.responses.chats.servicer import ChatServicer
from services.responses.conversations.records import ConversationLimits
from services.responses.conversations.repository import ConversationRepository
from services.responses.conversations.servicer import ConversationServicer
from services.responses.records import ResponseLimits
from services.responses.rendering import MakeRenderer
from services.responses.repository import ResponseRepository
from services.responses.response_chain import ResponseChainReader
from services.responses.runs import ResponseRuns
from services.responses.servicer import ResponseServicer
from services.responses.sweeper import response_sweeper


class ResponseService:
    """The service of stored responses in one process, with its sweeper running.

    Attributes:
        servicer: the gRPC servicer of ResponseService.
        conversations: the gRPC servicer of ConversationService.
        chats: the gRPC servicer of ChatCompletionService.
    """

    def __init__(
        self,
        servicer: ResponseServicer,
        conversations: ConversationServicer,
        chats: ChatServicer,
        runs: ResponseRuns,
        background: BackgroundResponses,
        sweeper: Sweeper,
    ) -> None:
        self.servicer = servicer
        self.conversations = conversations
        self.chats = chats
        self._runs = runs
        self._background = background
        self._sweeper = sweeper
        sweeper.start()

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        counters: CollectorRegistry,
        channel: grpc.aio.Channel,
        reserve: DiskReserve,
        processes: ProcessRegistry | None,
        budget: ByteBudget,
        make_renderer: MakeRenderer,
    ) -> Self:
        """Build and start the service over a migrated database.

        Args:
            settings: all settings of the gateway.
            database: the database.
            clock: the clock.
            counters: registry for the metrics.
            channel: leads to the inference service.
            reserve: the free disk space that storing requires.
            processes: the processes of this machine, if their deaths can be detected.
            budget: limits the bytes that the process holds.
            make_renderer: makes the renderer of a background response.
        """
        memory = settings.memory
        limits = ResponseLimits(
            ttl_s=memory.response_ttl_s,
            lease_s=memory.response_lease_s,
            max_bytes=memory.max_response_bytes,
            max_conversation=memory.max_conversation,
            # The same bound as for a request that contains the conversation itself.
            max_conversation_bytes=settings.limits.max_body_bytes,
            conversations=ConversationLimits(
                memory.response_ttl_s, memory.max_conversation_items, settings.limits.max_body_bytes
            ),
        )
        repository = ResponseRepository(database, clock, limits, processes)
        runs = ResponseRuns(repository)
        count = Gauge(
            "gateway_http_background_responses",
            "Background responses that are queued or in progress.",
            multiprocess_mode="livesum",
            registry=counters,
        )
        bounds = settings.limits
        background = BackgroundResponses(
            runs,
            UserSlots(bounds.max_background_responses, bounds.max_queued_responses, count.inc),
            inference_pb2_grpc.InferenceServiceStub(channel),
            budget,
            make_renderer,
        )
        reader = ResponseChainReader(database, clock, limits)
        conversations = ConversationRepository(database, clock, limits.conversations)
        chats = ChatRepository(database, clock, ChatLimits(limits.ttl_s, limits.max_bytes))
        every_s = bounds.sweep_every_s
        lease = sweeper_lease(database, "responses", every_s, clock)
        return cls(
            ResponseServicer(
                repository, conversations, runs, background, reader, memory.storage, reserve, budget
            ),
            ConversationServicer(conversations, memory.storage, reserve, budget),
            ChatServicer(chats, memory.storage, reserve),
            runs,
            background,
            response_sweeper(repository, conversations, chats, lease, every_s),
        )

    async def drain(self, within_s: float) -> None:
        """Wait for background responses for at most `within_s` seconds, then end the others."""
        await self._background.drain(within_s)

    async def stop(self) -> None:
        """Complete what is being stored; stop the sweeper and the renewal of leases."""
        await self.drain(0)
        await self.servicer.writes.finish()
        await self._sweeper.stop()
        await self._runs.close()
