"""Builds inference from settings, and builds it anew when they change."""

import asyncio
import itertools
import logging
import os
from collections.abc import Mapping
from typing import Self

from prometheus_client import CollectorRegistry

from services.common.ids import Source
from services.common.secrets import Secrets
from services.common.settings import Provider, Settings
from services.inference import diagnostics, discovery
from services.inference.engine import Engine, Routes
from services.inference.files import Files
from services.inference.http import Client
from services.inference.memory.store import Memories
from services.inference.metrics import Metrics
from services.inference.providers import registry, sandbox
from services.inference.routing import Models
from services.inference.thinking import Signer
from services.inference.tools.running import WebTools

log = logging.getLogger(__name__)

# Local servers come and go; lists of the others change with new models.
_LEARN_LOCAL_EVERY_S = 30.0
_LEARN_ALL_EVERY_ROUNDS = 20


class Inference:
    """The engine, its connections to providers, and what it learns of them.

    Attributes:
        engine: answers requests.
    """

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        source: Source,
        counters: CollectorRegistry,
        client: Client,
        files: Files,
        memories: Memories,
        environ: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._client = client
        self._environ = environ
        self._metrics = Metrics(counters)
        self._learnt: dict[str, list[str]] = {}
        signer = Signer(secrets.signing_keys, secrets.current_signing_key)
        self.engine = Engine(
            self._routes(),
            signer,
            files,
            memories,
            settings.limits,
            settings.memory,
            self._metrics,
            source.monotonic,
        )
        self._learning = asyncio.create_task(self._keep_learning())

    @classmethod
    async def start(
        cls,
        settings: Settings,
        secrets: Secrets,
        source: Source,
        counters: CollectorRegistry,
        files: Files,
        memories: Memories,
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """Build it, over files to read and memories; nothing waits for a provider."""
        found = diagnostics.problems(settings, environ) + diagnostics.warnings(settings, environ)
        for problem in found:
            log.warning("settings", extra={"problem": problem})
        limits = settings.limits
        client = Client(
            limits.connect_timeout_s,
            monotonic=source.monotonic,
            max_answer=limits.max_answer,
            idle_s=limits.upstream_idle_s,
            max_idle=limits.max_idle_upstream_connections,
        )
        return cls(settings, secrets, source, counters, client, files, memories, environ)

    def reload(self, settings: Settings) -> None:
        """Take the providers, models and roles of settings that were read again."""
        self._settings = settings
        self.engine.routes = self._routes()

    async def learn(self, *, local_only: bool = False) -> None:
        """Ask providers, or local servers alone, which models they have.

        A local server that does not answer is gone; what any other provider listed before
        stays known.
        """
        asked = self._local()
        if not local_only:
            asked |= self._configured()
        found = await discovery.learn(self._client, asked)
        known = {name: self._learnt[name] for name in self._configured() if name in self._learnt}
        learnt = known | found
        if learnt != self._learnt:
            self._learnt = learnt
            self.engine.routes = self._routes()
            log.info("models learnt", extra={"providers": sorted(learnt)})

    async def settle(self, within_s: float) -> None:
        """Wait for answers that are still to be remembered, so many seconds at most."""
        await self.engine.settle(within_s)

    async def stop(self) -> None:
        """End what is not settled, and close every connection to a provider."""
        await self.settle(0)
        self._learning.cancel()
        await asyncio.gather(self._learning, return_exceptions=True)
        await self._client.close()

    def _configured(self) -> dict[str, Provider]:
        return discovery.configured(self._settings, self._environ)

    def _local(self) -> dict[str, Provider]:
        """Return the local servers that may join: those whose names are free."""
        if not self._settings.discovery.enabled:
            return {}
        configured = self._configured()
        found = discovery.local_servers(self._settings.server)
        return {name: one for name, one in found.items() if name not in configured}

    def _routes(self) -> Routes:
        configured = self._configured()
        local = self._local()
        joined = {name: local[name] for name in self._learnt if name in local}
        everyone = {**joined, **configured}
        return Routes(
            models=Models(self._settings.models, everyone, sandbox.MODELS, self._learnt),
            providers=registry.build(
                everyone, self._client, self._settings.limits, self._metrics.live_upstream_calls
            ),
            roles=self._settings.roles,
            web=self._web_tools(),
        )

    def _web_tools(self) -> WebTools:
        return WebTools(None, None, self._metrics)

    async def _keep_learning(self) -> None:
        for number in itertools.count():
            await self.learn(local_only=number % _LEARN_ALL_EVERY_ROUNDS != 0)
            await asyncio.sleep(_LEARN_LOCAL_EVERY_S)
