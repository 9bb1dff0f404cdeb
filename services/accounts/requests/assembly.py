"""Builds the service of the request log from settings."""

from typing import Self

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.requests.bodies import BodyStore
from services.accounts.requests.repository import RequestRepository
from services.accounts.requests.servicer import RequestLogServicer
from services.accounts.requests.sweeper import request_sweeper
from services.common.clock import Clock
from services.common.settings import Settings, Storage
from services.common.storage.byte_store import open_store
from services.common.storage.disk import DiskReserve
from services.common.storage.sweeping import Sweeper, sweeper_lease

# Entries are kept for days; they may be kept for this much longer.
_SWEEP_EVERY_S = 600.0
# Name of the folder of bodies.
_FOLDER = "request-log"


class StoredRequests:
    """The service of one process, with its running sweeper.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(self, servicer: RequestLogServicer, sweeper: Sweeper) -> None:
        self.servicer = servicer
        self._sweeper = sweeper
        sweeper.start()

    @classmethod
    def start(
        cls, settings: Settings, database: AsyncEngine, clock: Clock, reserve: DiskReserve
    ) -> Self:
        """Create the service with a migrated database, and start its sweeper."""
        repository = RequestRepository(database)
        bodies = open_bodies(settings.storage, reserve)
        lease = sweeper_lease(database, "request_log", _SWEEP_EVERY_S, clock)
        return cls(
            RequestLogServicer(repository, bodies),
            request_sweeper(repository, bodies, lease, _SWEEP_EVERY_S, settings.request_log, clock),
        )

    async def stop(self) -> None:
        """Stop the sweeper."""
        await self._sweeper.stop()


def open_bodies(storage: Storage, reserve: DiskReserve) -> BodyStore:
    """Return the store of bodies; `reserve` is the free disk space to leave."""
    return BodyStore(open_store(storage, reserve, _FOLDER))
