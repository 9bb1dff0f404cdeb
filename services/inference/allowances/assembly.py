"""Build the allowances of a process from settings."""

import grpc
from prometheus_client import CollectorRegistry

from services.common import ids
from services.common.clock import Clock
from services.common.settings import Limits
from services.common.storage.secrets import Secrets
from services.inference.allowances.admission import Admission
from services.inference.allowances.lease_client import LimitClient
from services.inference.allowances.leaser import Leaser
from services.inference.allowances.metrics import LimitMetrics


class Allowances:
    """The allowances of a process.

    Args:
        channel: channel to the accounts service.
        limits: the settings of limits.
        secrets: has the gateway's service credential.
        clock: the clock.
        counters: registry of the metrics.
        new_id: makes the id of this worker as a holder of leases.

    Attributes:
        admission: admits requests.
        client: client of the LimitService.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        limits: Limits,
        secrets: Secrets,
        clock: Clock,
        counters: CollectorRegistry,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self.client = LimitClient(
            channel, secrets.service_credential, new_id("worker_"), LimitMetrics(counters)
        )
        self._leaser = Leaser(
            self.client,
            clock.now_ms,
            tick_s=limits.lease_every_s,
            # Claims every `lease_every_s` renew the leases; one of them may fail.
            slot_lease_s=max(limits.slot_lease_s, 3 * limits.lease_every_s),
        )
        self.admission = Admission(self._leaser, clock.now_ms)

    async def stop(self) -> None:
        """Return the leased amounts that were not used."""
        await self._leaser.close()
