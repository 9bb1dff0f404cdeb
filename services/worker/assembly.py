"""Builds a worker: the one place above the facade and the services."""

import asyncio
from typing import Self

from facade.server import Facade
from services import SERVICES
from services.assembly import Services
from services.common.ids import Source
from services.common.settings import Settings


class Worker:
    """A gateway that runs in this process.

    The facade calls the services over a channel inside the process.

    Attributes:
        services: what the facade calls.
        facade: what HTTP callers reach.
    """

    def __init__(self, services: Services, facade: Facade) -> None:
        self.services = services
        self.facade = facade

    @classmethod
    async def start(
        cls,
        settings: Settings,
        source: Source,
        *,
        host: str,
        port: int,
        metrics_port: int,
        grpc: str = "",
    ) -> Self:
        """Serve HTTP on `host:port`, and gRPC at the address `grpc` where there is one.

        Other workers may share all three ports.
        """
        services = await Services.start(SERVICES, grpc, settings, source, is_shared=True)
        facade = await Facade.start(
            services.channel,
            host,
            port,
            settings,
            source,
            metrics_port=metrics_port,
            identify=services.identify,
        )
        return cls(services, facade)

    async def stop(self, hurrying: asyncio.Event | None = None) -> None:
        """Take no more requests, let those in hand end, then close.

        Those in hand have `limits.drain_s`, those of gRPC callers no more once `hurrying` is set.
        """
        await asyncio.gather(self.facade.stop(), self.services.stop_listening())
        await self.services.stop(hurrying)
