"""Build the limiter of a process from settings."""

import grpc
from prometheus_client import CollectorRegistry

from services.common import ids
from services.common.clock import Clock
from services.common.settings import Settings
from services.common.storage.secrets import Secrets
from services.inference.limits.admission import Admission
from services.inference.limits.lease_client import LimitClient
from services.inference.limits.leaser import Leaser
from services.inference.limits.limiter import DemandOf, Limiter, Price
from services.inference.limits.metrics import LimitMetrics


class Limiting:
    """The limiter of a process, and its leases.

    Args:
        channel: channel to the accounts service.
        settings: the settings of the gateway.
        secrets: has the gateway's service credential.
        clock: the clock.
        counters: registry of the metrics.
        price: returns the price of a model's usage.
        demand_of: returns what a request may use at most.
        new_id: makes the id of this worker as a holder of leases.

    Attributes:
        limiter: admits the requests of callers with limits.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        settings: Settings,
        secrets: Secrets,
        clock: Clock,
        counters: CollectorRegistry,
        price: Price,
        demand_of: DemandOf,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        client = LimitClient(
            channel, secrets.service_credential, new_id("worker_"), LimitMetrics(counters)
        )
        limits = settings.limits
        self._leaser = Leaser(
            client,
            clock.now_ms,
            tick_s=limits.lease_every_s,
            # Claims every `lease_every_s` renew the leases; one of them may fail.
            slot_lease_s=max(limits.slot_lease_s, 3 * limits.lease_every_s),
        )
        self.limiter = Limiter(Admission(self._leaser, clock.now_ms), price, demand_of)

    async def stop(self) -> None:
        """Return the leased amounts that were not used."""
        await self._leaser.close()
