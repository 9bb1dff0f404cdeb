"""Measures what an attack costs the gateway's memory, and how much work delays another caller."""

import asyncio
import json
import math
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.bench import processes
from tests.e2e.gateway import Gateway
from tests.e2e.processes import PYTHON, ROOT

MAX_RSS_GROWTH_MB = 200
MAX_P99_MS = 250
WORKER = "services.worker"
_RSS_INTERVAL_S = 0.05
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass
class Measurement:
    """The cost of an attack.

    Attributes:
        rss_growth_mb: the highest RSS of all processes of the gateway together during the
            attack, less what it was before.
        healthz_p99_ms: the 99th percentile of what the worker's event loop computed while
            another caller waited for `GET /healthz`.
        chat_p99_ms: the same of another caller's chat with `sandbox/echo`.
        failures: what else than 200 the other caller was answered.
    """

    rss_growth_mb: float = math.nan
    healthz_p99_ms: float = math.nan
    chat_p99_ms: float = math.nan
    failures: Sequence[str] = ()

    def assert_harmless(self, most_mb: float = MAX_RSS_GROWTH_MB) -> None:
        """Assert that the attack stayed within the bounds that every attack has."""
        assert not self.failures, self
        assert self.rss_growth_mb < most_mb, self
        assert self.healthz_p99_ms < MAX_P99_MS, self
        assert self.chat_p99_ms < MAX_P99_MS, self


class Prober:
    """The process of `tests.attacks.prober`; a context, at whose end the process ends."""

    def __enter__(self) -> Self:
        self._process = _start_prober()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    async def start(self, port: int, key: str, worker: int) -> None:
        """Begin to probe a gateway; return once it has been answered."""
        if self._process.poll() is not None:  # failed in another test
            self._process.communicate()
            self._process = _start_prober()
        answer = await self._command(f"{port} {key} {worker}")
        assert answer == "ready\n", "the gateway does not answer"

    async def stop(self) -> dict[str, Any]:
        """Stop to probe; return the figures."""
        figures: dict[str, Any] = json.loads(await self._command(""))
        return figures

    async def _command(self, line: str) -> str:
        """Send a command; return the line that answers it, "" where the process has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return await asyncio.to_thread(self._process.stdout.readline)


def _start_prober() -> subprocess.Popen[str]:
    command = [PYTHON, "-m", "tests.attacks.prober"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


class Observer:
    """Measures attacks on one gateway::

    async with observer.watch() as measured:
        ...  # the attack
    measured.assert_harmless()
    """

    def __init__(self, target: Gateway, prober: Prober) -> None:
        self._target = target
        self._prober = prober

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Measurement]:
        """Measure from the start to the end of the block, which fills the measurement in."""
        measured = Measurement()
        family = processes.family(self._target.process.pid)
        worker = processes.of_modules(family, [WORKER])[WORKER]
        await self._prober.start(self._target.port, self._target.key, worker)
        before = rss_mb(self._target)
        highest = before
        done = asyncio.Event()

        async def sample() -> None:
            nonlocal highest
            while not done.is_set():
                highest = max(highest, rss_mb(self._target))
                await asyncio.sleep(_RSS_INTERVAL_S)

        sampling = asyncio.create_task(sample())
        try:
            yield measured
        finally:
            done.set()
            await sampling
            figures = await self._prober.stop()
        measured.rss_growth_mb = max(highest, rss_mb(self._target)) - before
        for name, value in figures.items():
            setattr(measured, name, value)


def rss_mb(target: Gateway) -> float:
    """Return the RSS of all processes of a gateway together."""
    return sum(map(_rss_mb, processes.family(target.process.pid)))


def _rss_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # ended since the family was listed
    return pages * _PAGE_MB
