"""Builds inference from settings, and builds it anew when they change."""

import asyncio
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

log = logging.getLogger(__name__)

_LEARN_EVERY_S = 30.0


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
        for problem in diagnostics.problems(settings, environ):
            log.warning("settings", extra={"problem": problem})
        client = Client(settings.limits.connect_timeout_s, monotonic=source.monotonic)
        return cls(settings, secrets, source, counters, client, files, memories, environ)

    def reload(self, settings: Settings) -> None:
        """Take the providers, models and roles of settings that were read again."""
        self._settings = settings
        self.engine.routes = self._routes()

    async def learn(self) -> None:
        """Ask servers that are not the dialects' makers which models they have."""
        askable = {
            name: one
            for name, one in {**self._local(), **self._configured()}.items()
            if one.kind == "openai" and not registry.is_official(one)
        }
        learnt = await discovery.learn(self._client, askable)
        if learnt != self._learnt:
            self._learnt = learnt
            self.engine.routes = self._routes()
            log.info("models learnt", extra={"providers": sorted(learnt)})

    async def settle(self, within_s: float) -> None:
        """Let answers end that are still to be remembered; end them after so many seconds."""
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
        """Give the local servers that may join: those whose names are free."""
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
        )

    async def _keep_learning(self) -> None:
        while True:
            await self.learn()
            await asyncio.sleep(_LEARN_EVERY_S)
