"""Health checks of providers: close the breakers of a provider that answers again.

A breaker that is open lets the next request of a caller probe the model. A check makes that probe
without a caller: a provider that was down is used again though all requests go to fallbacks.
While no breaker of a provider is open, its callers' requests show its health, and nothing is sent.
"""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common import http, ids
from services.common.errors import GatewayError, UpstreamError
from services.common.settings import SANDBOX, Provider
from services.inference.circuit_breaker import ModelKey, Uniform
from services.inference.metrics import InferenceMetrics
from services.inference.models import discovery
from services.inference.plans.policy import is_transient
from services.inference.providers.base import Call
from services.inference.providers.credentials.authorizers import Authorizers
from services.inference.run.engine import Engine

# Maximum share by which the time to the next check is changed: workers do not check together.
_JITTER: Final = 0.2
# Statuses of a server without a list of models.
_NO_LIST: Final = (404, 405, 501)

log = logging.getLogger(__name__)


class HealthChecks:
    """The health checks of one process.

    Args:
        client: sends the requests for lists of models.
        engine: has the breakers, and calls models.
        metrics: counts the checks.
        uniform: random source for jitter.
        environ: has the keys of providers.
        authorizers: authorize the requests to clouds; new ones if None.
    """

    def __init__(
        self,
        client: http.Client,
        engine: Engine,
        metrics: InferenceMetrics,
        uniform: Uniform = ids.uniform,
        environ: Mapping[str, str] = os.environ,
        authorizers: Authorizers | None = None,
    ) -> None:
        self._client = client
        self._engine = engine
        self._metrics = metrics
        self._uniform = uniform
        self._environ = environ
        self._authorizers = authorizers or Authorizers()
        self._running: Sequence[asyncio.Task[None]] = ()

    def configure(self, providers: Mapping[str, Provider]) -> None:
        """Check the providers whose settings say so; those of earlier settings are not any more."""
        self._cancel()
        self._running = [
            asyncio.create_task(self._run(name, provider))
            for name, provider in providers.items()
            if provider.health_check_every_s and provider.kind != SANDBOX
        ]

    async def stop(self) -> None:
        """End all checks."""
        self._cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def _run(self, name: str, provider: Provider) -> None:
        """Check a provider until cancelled; a check ends before the next one begins."""
        while True:
            share = 1 + self._uniform(-_JITTER, _JITTER)
            await asyncio.sleep(provider.health_check_every_s * share)
            try:
                await self._check(name, provider)
            except Exception:
                log.exception("the health check of a provider failed", extra={"provider": name})

    async def _check(self, name: str, provider: Provider) -> None:
        """Check a provider with open breakers, and close those of what answers."""
        keys = self._engine.breakers.open_of(name)
        if not keys:
            return
        answering: Sequence[ModelKey] = ()
        try:
            async with asyncio.timeout(provider.health_check_timeout_s):
                answering = await self._answering(name, provider, keys)
        except TimeoutError:
            pass
        outcome = "answered" if answering else "failed"
        self._metrics.health_checks.labels(name, outcome).inc()
        for key in answering:
            self._engine.breakers.answers(key)
            log.info("a model answers again", extra={"model": str(key)})

    async def _answering(
        self, name: str, provider: Provider, keys: Sequence[ModelKey]
    ) -> Sequence[ModelKey]:
        """Return the models that may be called again, of those with open breakers.

        Raises:
            TimeoutError: connecting timed out.
        """
        try:
            authorize = self._authorizers.of(name, provider, provider.key(self._environ))
            response = await discovery.ask_models(
                self._client, provider, environ=self._environ, authorize=authorize
            )
        except (GatewayError, http.HttpError):
            return ()
        response.body.release()
        if response.status == 200:
            return keys
        if response.status in _NO_LIST and await self._answers_chat(keys[0]):
            return keys[:1]
        return ()

    async def _answers_chat(self, key: ModelKey) -> bool:
        """Return whether a model answers a request for one token, even with a rejection."""
        routes = self._engine.routes
        request = GenerateRequest(
            model=str(key),
            messages=[Message(role=conversation_pb2.ROLE_USER, blocks=[Block(text="Hi")])],
            max_tokens=1,
        )
        try:
            target = routes.models.resolve(str(key))
            adapter = routes.providers.get(target.adapter)
            if adapter is None:
                return False
            await adapter.whole(Call(request, target, stream=False))
        except UpstreamError as error:
            return not is_transient(error)
        except GatewayError:
            return False
        return True
