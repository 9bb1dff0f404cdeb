"""Build the inference service from settings, and rebuild it when they change."""

import asyncio
import itertools
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from prometheus_client import CollectorRegistry

from services.common.clock import Clock
from services.common.grpc.authentication import caller, caller_id
from services.common.http import Client
from services.common.process.byte_budget import ByteBudget, open_budget
from services.common.process.telemetry.conventions import server_attributes
from services.common.process.telemetry.spans import Telemetry
from services.common.settings import Adaptation as AdaptationSettings
from services.common.settings import Provider, Settings, effective_providers
from services.common.settings.local_servers import local_servers
from services.common.storage.byte_store import StoreLimits, open_store
from services.common.storage.disk import DiskReserve
from services.common.storage.leases import Lease
from services.common.storage.secrets import Secrets
from services.inference import diagnostics
from services.inference.adaptation.session import MediaAdaptation
from services.inference.allowances.admission import Admission
from services.inference.demands import Demanding, demand_of
from services.inference.health_checks import HealthChecks
from services.inference.limits.fees import Fees
from services.inference.limits.reservation import Demand
from services.inference.limits.subjects import may_use
from services.inference.memory.turn_client import TurnFactory
from services.inference.metrics import InferenceMetrics
from services.inference.models.learning import LearntModels
from services.inference.models.routing import Models
from services.inference.pricing.costs import Costs
from services.inference.provider_states.testing import ProviderTests
from services.inference.providers import embedded, registry, sandbox
from services.inference.providers.address_guard import AddressGuard
from services.inference.providers.credentials.authorizers import Authorizers
from services.inference.request.thinking import Signer
from services.inference.response_cache.cached_answers import CachedAnswers
from services.inference.routes import Routes
from services.inference.run.engine import Engine
from services.inference.store_sweeper import ROUNDS, store_sweeper
from services.inference.stored_files import Files
from services.inference.tools.backends import search_backend
from services.inference.tools.file_search import FileSearches
from services.inference.tools.pages import Pages
from services.inference.tools.running import WebTools
from services.inference.usage.label_reader import LabelReader
from services.inference.usage.lines import UsedModel
from services.inference.usage.metering import Metering
from services.inference.usage.metrics import UsageMetrics
from services.inference.usage.recorder import Send, UsageRecorder
from services.inference.usage.records import cost_of_used
from services.media.conversion.cache import CONVERSIONS, Cache
from services.media.conversion.pool import ConversionPool, PooledConverter
from services.media.fetching.connecting import Resolver
from services.media.fetching.fetched import Fetches
from services.media.fetching.fetcher import Fetcher

log = logging.getLogger(__name__)

# Local servers come and go; the lists of others only change with new models.
_LEARN_LOCAL_EVERY_S = 30.0
_LEARN_ALL_EVERY_ROUNDS = 20
# Name of the folder of cached answers, and of the lease of their sweeper.
ANSWERS = "answers"
_NO_PROVIDERS: Mapping[str, Provider] = MappingProxyType({})


@dataclass(frozen=True)
class OtherServices:
    """Clients of the other services.

    Attributes:
        files: reads the files that requests reference.
        memories: opens turns at the memory service.
        send_usage: stores usage records.
        file_searches: searches vector stores; None without any.
    """

    files: Files
    memories: TurnFactory
    send_usage: Send
    file_searches: FileSearches | None = None


@dataclass(frozen=True)
class SharedStores:
    """Leases and disk reserve of the stores that processes share.

    Attributes:
        conversions_lease: held by the process that deletes old conversions.
        answers_lease: held by the process that deletes old cached answers.
        reserve: the free disk space that both stores leave.
    """

    conversions_lease: Lease
    answers_lease: Lease
    reserve: DiskReserve


class Inference:
    """The engine, its connections to providers, and the discovered models.

    Attributes:
        engine: generates answers.
        cache: caches answers; None unless the settings enable it.
        labels: reads the labels of requests; None if the settings enable none.
    """

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        clock: Clock,
        counters: CollectorRegistry,
        client: Client,
        others: OtherServices,
        stores: SharedStores,
        environ: Mapping[str, str],
        telemetry: Telemetry | None,
        budget: ByteBudget,
        admission: Admission | None,
        pool: ConversionPool | None,
        stored: Mapping[str, Provider],
        guard: AddressGuard,
    ) -> None:
        self._settings = settings
        self._stored = stored
        self._guard = guard
        self._budget = budget
        self._telemetry = telemetry
        self._client = client
        self._environ = environ
        self._now_ms = clock.now_ms
        self._file_searches = others.file_searches
        self._metrics = InferenceMetrics(counters)
        self._authorizers = Authorizers()
        self._guard_addresses()
        self._asking: asyncio.Task[None] | None = None
        self._learnt = LearntModels(client, self._authorizers, environ, self._configured)
        self._unsupported_urls: set[str] = set()  # addresses of servers
        self._recorder = UsageRecorder(
            settings.storage.data_dir,
            settings.usage,
            clock,
            lambda: self.engine.routes.costs,
            others.send_usage,
            UsageMetrics(counters),
            lambda name: self.engine.routes.models.offers_name(name),
        )
        self.labels = (
            LabelReader(settings.usage, clock.now, self._recorder.metrics)
            if settings.usage.has_labels
            else None
        )
        self._metering = Metering(self._recorder.lines if settings.usage.enabled else None)
        self._conversions = open_store(settings.storage, stores.reserve, CONVERSIONS)
        self._pool = pool or ConversionPool(settings.limits, counters)
        self._owns_pool = pool is None
        self._converter = PooledConverter(self._pool, caller_id)
        self._resolver = Resolver()
        self._fetcher: Fetches = Fetcher(settings.limits, resolve=self._resolver)
        signer = Signer(secrets.signing_keys, secrets.current_signing_key)
        self.engine = Engine(
            self._routes(),
            signer,
            others.files,
            others.memories,
            settings.limits,
            settings.memory,
            self._metrics,
            clock.monotonic,
            self._adaptation(),
            telemetry=telemetry,
            metering=self._metering,
            budget=budget,
            admission=admission,
        )
        self._health_checks = HealthChecks(
            client, self.engine, self._metrics, environ=environ, authorizers=self._authorizers
        )
        self._health_checks.configure(self._configured())
        self._recording = asyncio.create_task(self._recorder.run())
        self._learning = asyncio.create_task(self._keep_learning())
        sweeper = store_sweeper(
            CONVERSIONS,
            self._conversions,
            stores.conversions_lease,
            ROUNDS * settings.limits.sweep_every_s,
            _conversion_bounds(settings.adaptation),
            clock,
        )
        sweeper.start()
        self._sweepers = [sweeper]
        self.cache: CachedAnswers | None = None
        if settings.response_cache.enabled:
            self._open_cache(settings, stores, clock)

    @classmethod
    async def start(
        cls,
        settings: Settings,
        secrets: Secrets,
        clock: Clock,
        counters: CollectorRegistry,
        others: OtherServices,
        stores: SharedStores,
        environ: Mapping[str, str] = os.environ,
        telemetry: Telemetry | None = None,
        budget: ByteBudget | None = None,
        admission: Admission | None = None,
        pool: ConversionPool | None = None,
        stored: Mapping[str, Provider] = _NO_PROVIDERS,
    ) -> Self:
        """Build the service, without waiting for providers.

        `telemetry` records spans; None without a collector. `budget` limits the bytes that the
        process holds; by default the service has its own. `admission` admits calls of deployments
        with limits; by default all are admitted. `pool` converts media; by default the service
        has its own. `stored` are the providers of the database.
        """
        findings = diagnostics.problems(settings, environ) + diagnostics.warnings(settings, environ)
        for problem in findings:
            log.warning("settings", extra={"problem": problem})
        limits = settings.limits
        guard = AddressGuard()
        client = Client(
            limits.connect_timeout_s,
            monotonic=clock.monotonic,
            max_answer_bytes=limits.max_answer_bytes,
            idle_s=limits.upstream_idle_s,
            max_idle=limits.max_idle_upstream_connections,
            may_connect=guard,
        )
        return cls(
            settings,
            secrets,
            clock,
            counters,
            client,
            others,
            stores,
            environ,
            telemetry,
            budget or open_budget(limits),
            admission,
            pool,
            stored,
            guard,
        )

    def reload(self, settings: Settings) -> None:
        """Apply the providers, models and roles of reloaded settings."""
        self._settings = settings
        self._apply_providers()

    def set_stored(self, stored: Mapping[str, Provider]) -> None:
        """Apply the providers of the database; requests in progress keep theirs.

        Providers that are new or changed are asked for their models in the background.
        """
        if stored == self._stored:
            return
        self._stored = stored
        self._apply_providers()
        log.info("stored providers applied", extra={"providers": sorted(stored)})
        if self._asking is not None:
            self._asking.cancel()
        self._asking = asyncio.create_task(self.learn())

    def _apply_providers(self) -> None:
        self._guard_addresses()
        self.engine.routes = self._routes()
        self._health_checks.configure(self._configured())

    def _guard_addresses(self) -> None:
        self._guard.configure(
            self._stored,
            self._ruling(),
            is_on=not self._settings.stored_providers.internal_addresses,
        )

    async def learn(self, *, local_only: bool = False) -> None:
        """Query providers, or only local servers, for their models; see `LearntModels.query`."""
        asked = self._local()
        if not local_only:
            asked |= self._configured()
        is_new, silent = await self._learnt.query(asked)
        if is_new:
            self.engine.routes = self._routes()
        if not local_only:
            await self._learnt.check_base_urls(silent)

    def cost_of(self, used: UsedModel) -> int | None:
        """Return the cost of a model's usage, by the settings in force; see `cost_of_used`."""
        return cost_of_used(used, self.engine.routes.costs)

    def demand_of(self, request: Demanding, fees: Fees | None) -> Demand:
        """Return what a request may use at most, by the settings in force; see `demands`."""
        return demand_of(self.engine, request, fees)

    async def record_usage(self) -> None:
        """Record the usage of all ended requests, within some seconds."""
        await self._recorder.settle()

    async def drain(self, within_s: float) -> None:
        """Wait up to `within_s` seconds until pending answers are stored in memory."""
        await self.engine.drain(within_s)

    async def stop(self) -> None:
        """Cancel background tasks, and close all connections to providers."""
        await self.drain(0)
        await self._health_checks.stop()
        asking = [] if self._asking is None else [self._asking]
        tasks = [self._learning, self._recording, *asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._recorder.close()
        for sweeper in self._sweepers:
            await sweeper.stop()
        if self.cache is not None:
            await self.cache.drain()
        if self._owns_pool:
            await self._pool.close()
        self._resolver.close()
        await self._client.close()

    def _open_cache(self, settings: Settings, stores: SharedStores, clock: Clock) -> None:
        """Open the cache of answers, and start its sweeper."""
        bounds = settings.response_cache
        store = open_store(settings.storage, stores.reserve, ANSWERS)
        every_s = ROUNDS * settings.limits.sweep_every_s
        self.cache = CachedAnswers(self.engine, store, bounds, every_s, self._metrics, clock)
        kept = StoreLimits(bounds.ttl_s, bounds.max_bytes, bounds.max_bytes)
        sweeper = store_sweeper(ANSWERS, store, stores.answers_lease, every_s, kept, clock)
        sweeper.start()
        self._sweepers.append(sweeper)

    def _adaptation(self) -> MediaAdaptation:
        return MediaAdaptation(
            self._converter,
            self._fetcher,
            Cache(self._conversions, self._metrics.adaptation_cache),
            self._metrics,
            self._metering,
        )

    def provider_tests(self, clock: Clock) -> ProviderTests:
        """Return what tests providers for administrators."""
        return ProviderTests(
            lambda: {**self._local(), **self._configured()},
            lambda: {**self._local(), **self._ruling()},
            lambda: self._settings,
            clock,
            self._environ,
        )

    def _configured(self) -> dict[str, Provider]:
        return effective_providers(self._settings, self._environ, self._stored)

    def _ruling(self) -> dict[str, Provider]:
        """Return the providers of the settings and of the environment."""
        return effective_providers(self._settings, self._environ)

    def _local(self) -> dict[str, Provider]:
        """Return the local servers whose names are not used by the settings."""
        if not self._settings.discovery.enabled:
            return {}
        configured = self._configured()
        servers = local_servers(self._settings.server)
        return {name: one for name, one in servers.items() if name not in configured}

    def _routes(self) -> Routes:
        configured = self._configured()
        local = self._local()
        joined = {name: local[name] for name in self._learnt.names if name in local}
        everyone = {**joined, **configured}
        connections = registry.Connections(
            self._client,
            self._settings.limits,
            self._metrics.upstream_calls,
            self._authorizers,
        )
        models = Models(
            self._settings.models,
            everyone,
            sandbox.MODELS,
            self._learnt.names,
            self._learnt.abilities,
            embedded.embedded_models(),
            _caller_may_use,
            self._learnt.lifecycles,
        )
        return Routes(
            models=models,
            costs=Costs(everyone, models.configured, self._now_ms),
            servers={name: server_attributes(one.base_url) for name, one in everyone.items()},
            providers=registry.build(
                everyone, connections, self._converter, self._learnt.answering_urls
            ),
            responses=registry.build_responses(everyone, connections, self._unsupported_urls),
            messages=registry.build_messages(everyone, connections),
            batches=registry.build_batches(everyone, connections),
            roles=self._settings.roles,
            web=self._web_tools(),
        )

    def _web_tools(self) -> WebTools:
        """Return the web tools of the current settings."""
        return WebTools(
            search_backend(self._settings.tools.web_search, self._client, self._environ),
            Pages(
                self._fetcher,
                self._converter,
                self._settings.limits.max_fetched_bytes,
                self._budget,
            ),
            self._metrics,
            files=self._file_searches,
            telemetry=self._telemetry,
        )

    async def _keep_learning(self) -> None:
        for number in itertools.count():
            await self.learn(local_only=number % _LEARN_ALL_EVERY_ROUNDS != 0)
            await asyncio.sleep(_LEARN_LOCAL_EVERY_S)


def _conversion_bounds(kept: AdaptationSettings) -> StoreLimits:
    return StoreLimits(kept.kept_s, kept.kept_bytes, kept.kept_bytes_per_user)


def _caller_may_use(model: str) -> bool:
    """Return whether the caller of the current call may use a model."""
    current = caller.get(None)
    return current is None or may_use(current.limits, model)
