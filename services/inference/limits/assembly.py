"""Build the limiter of a process from settings."""

import grpc
from prometheus_client import CollectorRegistry

from services.common.ids import Source
from services.common.secrets import Secrets
from services.common.settings import Settings
from services.inference.engine import Engine
from services.inference.limits.admission import Admission
from services.inference.limits.lease_client import LimitClient
from services.inference.limits.leaser import Leaser
from services.inference.limits.limiter import Limiter
from services.inference.limits.metrics import Metrics
from services.inference.limits.usage import Price


class Limiting:
    """The limiter of a process, and its leases.

    Args:
        engine: answers requests.
        channel: reaches accounts.
        settings: of the gateway.
        secrets: has the gateway's own credential.
        source: clock and ids.
        counters: where lease calls are counted.
        price: returns what a model's use costs.

    Attributes:
        limiter: answers the requests of callers with limits.
    """

    def __init__(
        self,
        engine: Engine,
        channel: grpc.aio.Channel,
        settings: Settings,
        secrets: Secrets,
        source: Source,
        counters: CollectorRegistry,
        price: Price,
    ) -> None:
        client = LimitClient(
            channel, secrets.service_credential, source.new_id("worker_"), Metrics(counters)
        )
        limits = settings.limits
        self._leaser = Leaser(
            client,
            source.now_ms,
            tick_s=limits.lease_every_s,
            # Renewed with the claims that are made once in `lease_every_s`; one of them may fail.
            slot_lease_s=max(limits.slot_lease_s, 3 * limits.lease_every_s),
        )
        self.limiter = Limiter(engine, Admission(self._leaser, source.now_ms), price)

    async def stop(self) -> None:
        """Return what is leased and not used."""
        await self._leaser.close()
