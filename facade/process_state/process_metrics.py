"""Metrics of this process: its version, memory, CPU time and open files.

The names are those of Prometheus's conventions. The library has them for single processes only.
"""

import asyncio
import os
import platform
import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge
from services.common.version import VERSION

_EVERY_S = 5.0
_SELF = Path("/proc/self")


class ProcessMetrics:
    """Measures this process every few seconds; on systems without /proc, the CPU time alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, registry: CollectorRegistry) -> None:
        """Start measuring."""
        build = Gauge(
            "gateway_build_info",
            "Version of the gateway and of Python; always 1.",
            ("version", "python"),
            multiprocess_mode="livemax",
            registry=registry,
        )
        build.labels(VERSION, platform.python_version()).set(1)
        started = Gauge(
            "process_start_time_seconds",
            "Unix time at which the process began to serve.",
            multiprocess_mode="liveall",
            registry=registry,
        )
        started.set(time.time())
        self._cpu = Counter(
            "process_cpu_seconds", "CPU time of all processes, in seconds.", registry=registry
        )
        self._memory = Gauge(
            "process_resident_memory_bytes",
            "Resident memory of the process.",
            multiprocess_mode="liveall",
            registry=registry,
        )
        self._descriptors = Gauge(
            "process_open_fds",
            "Open file descriptors of the process.",
            multiprocess_mode="liveall",
            registry=registry,
        )
        self._loop = loop
        self._cpu_s = 0.0
        self._measure()

    def stop(self) -> None:
        """Stop measuring."""
        self._timer.cancel()

    def _measure(self) -> None:
        cpu_s = time.process_time()
        self._cpu.inc(cpu_s - self._cpu_s)
        self._cpu_s = cpu_s
        if _SELF.exists():
            pages = int((_SELF / "statm").read_bytes().split()[1])
            self._memory.set(pages * os.sysconf("SC_PAGE_SIZE"))
            self._descriptors.set(len(os.listdir(_SELF / "fd")))
        self._timer = self._loop.call_later(_EVERY_S, self._measure)
