"""Builds the service of stored responses from settings."""

from typing import Self

from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.process.byte_budget import ByteBudget
from services.common.process.registry import ProcessRegistry
from services.common.settings import Settings
from services.common.storage.disk import DiskReserve
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.responses.conversations.records import ConversationLimits
from services.responses.conversations.repository import ConversationRepository
from services.responses.conversations.servicer import ConversationServicer
from services.responses.records import ResponseLimits
from services.responses.repository import ResponseRepository
from services.responses.response_chain import ResponseChainReader
from services.responses.runs import ResponseRuns
from services.responses.servicer import ResponseServicer
from services.responses.sweeper import response_sweeper


class Responses:
    """The service of stored responses in one process, with its sweeper running.

    Attributes:
        servicer: the gRPC servicer of ResponseService.
        conversations: the gRPC servicer of ConversationService.
    """

    def __init__(
        self,
        servicer: ResponseServicer,
        conversations: ConversationServicer,
        runs: ResponseRuns,
        sweeper: Sweeper,
    ) -> None:
        self.servicer = servicer
        self.conversations = conversations
        self._runs = runs
        self._sweeper = sweeper
        sweeper.start()

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        reserve: DiskReserve,
        processes: ProcessRegistry | None,
        budget: ByteBudget,
    ) -> Self:
        """Build and start the service over a migrated database.

        Args:
            settings: all settings of the gateway.
            database: the database.
            clock: the clock.
            reserve: the free disk space that storing requires.
            processes: the processes of this machine, if their deaths can be detected.
            budget: limits the bytes that the process holds.
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
        reader = ResponseChainReader(database, clock, limits)
        conversations = ConversationRepository(database, clock, limits.conversations)
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "responses", every_s, clock)
        return cls(
            ResponseServicer(repository, runs, reader, memory.storage, reserve, budget),
            ConversationServicer(conversations, memory.storage, reserve, budget),
            runs,
            response_sweeper(repository, conversations, lease, every_s),
        )

    async def stop(self) -> None:
        """Stop the sweeper and the renewal of leases."""
        await self._sweeper.stop()
        await self._runs.close()
