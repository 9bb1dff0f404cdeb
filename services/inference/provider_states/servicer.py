"""The gRPC servicer of ProviderAdminService."""

import asyncio
import logging
from typing import Any

import grpc

from gateway.inference.v1 import providers_pb2, providers_pb2_grpc
from services.common.clock import Clock
from services.inference.fallback.attempt_log import WINDOW_S
from services.inference.provider_states.merging import merge
from services.inference.provider_states.observation import observe
from services.inference.provider_states.shared_folder import SharedFolder
from services.inference.provider_states.testing import ProviderTests
from services.inference.run.engine import Engine

SERVICE_NAME = providers_pb2.DESCRIPTOR.services_by_name["ProviderAdminService"].full_name
# Interval in which a worker writes its observations.
_WRITE_EVERY_S = 2.0

log = logging.getLogger(__name__)


class ProviderStates(providers_pb2_grpc.ProviderAdminServiceServicer):
    """Implements `providers.proto`, and shares the observations of this worker.

    Args:
        engine: the engine of this process.
        folder: the files of all workers.
        clock: the clock.
        tests: tests providers.
    """

    def __init__(
        self, engine: Engine, folder: SharedFolder, clock: Clock, tests: ProviderTests
    ) -> None:
        self._engine = engine
        self._tests = tests
        self._folder = folder
        self._clock = clock
        self._writing = asyncio.create_task(self._keep_writing())

    async def ListProviders(
        self,
        request: providers_pb2.ListProvidersRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> providers_pb2.ListProvidersResponse:
        """Return all providers."""
        models = self._engine.routes.models
        others = await asyncio.to_thread(self._folder.read_others)
        seen = [observe(self._engine, self._clock), *others]
        providers = merge(
            models.kinds,
            models.configured_places(),
            [model for worker in seen for model in worker],
            self._clock.now_ms(),
        )
        return providers_pb2.ListProvidersResponse(
            providers=providers,
            workers=len(seen),
            window_s=WINDOW_S,
            fallbacks=[
                providers_pb2.ModelFallbacks(name=name, fallbacks=fallbacks)
                for name, fallbacks in models.configured_fallbacks()
            ],
        )

    async def TestProvider(
        self,
        request: providers_pb2.TestProviderRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> providers_pb2.TestProviderResponse:
        """Test a provider."""
        return await self._tests.test(request)

    async def stop(self) -> None:
        """Stop writing, and delete this worker's file."""
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)
        self._folder.leave()

    async def _keep_writing(self) -> None:
        while True:
            try:
                self._folder.write(observe(self._engine, self._clock))
            except OSError as error:
                log.warning("provider states could not be written", extra={"error": str(error)})
            await asyncio.sleep(_WRITE_EVERY_S)
