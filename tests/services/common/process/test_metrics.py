"""Metrics that reach the library late, and those of processes that share a folder, as one page."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from services.common.process import metrics
from tests.grid import each_row

# Counts in a loop of its own, and shows what is there for whoever asks it and for others.
_PROGRAM = """
import asyncio
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector
from services.common.process import metrics
from services.common.process.metrics import Counter, Gauge, Histogram

own = CollectorRegistry()
requests = Counter("requests", "Of a test.", ("status",), registry=own)
live = Gauge("live", "Of a test.", multiprocess_mode="livesum", registry=own)
seconds = Histogram("seconds", "Of a test.", buckets=(1, 2), registry=own)
waiting = ["a"]
Gauge("waiting", "Of a test.", multiprocess_mode="livesum", registry=own).follow(waiting.__len__)

def others(name="requests_total", labels={"status": "200"}):
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return registry.get_sample_value(name, labels)

async def count():
    for _ in range(3):
        requests.labels("200").inc()
    live.inc()
    live.inc()
    live.inc(-1)
    seconds.observe(1.5)
    seconds.observe(2)
    print(others())
    shown = metrics.shown(own)
    print(shown.get_sample_value("requests_total", {"status": "200"}))
    print(shown.get_sample_value("live"), shown.get_sample_value("seconds_sum"))
    print(shown.get_sample_value("waiting"))
    waiting.append("b")
    requests.labels("200").inc()
    while others() != 4:
        await asyncio.sleep(0.01)
    print(others("waiting", {}))
    requests.labels("200").inc()

asyncio.run(count())
metrics.write_counts()
print(others())
"""


def test_counts_are_shown_here_at_once_and_elsewhere_soon(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert shown.stdout.split() == ["None", "3.0", "1.0", "3.5", "1.0", "2.0", "5.0"]


def _count(kinds: Any, seed: int) -> str:
    """Count at random with the metrics of a module; return the page that shows them."""
    registry = CollectorRegistry()
    asked = kinds.Counter("asked", "Of a test.", ("status",), registry=registry)
    total = kinds.Counter("total", "Of a test.", registry=registry)
    live = kinds.Gauge("live", "Of a test.", registry=registry)
    size = kinds.Gauge("size", "Of a test.", ("kind",), registry=registry)
    seconds = kinds.Histogram("s", "Of a test.", ("route",), buckets=(1, 2, 5), registry=registry)
    pages = []
    chance = random.Random(seed)
    for _ in range(300):
        match chance.randrange(7):
            case 0:
                asked.labels(chance.choice(("200", "404"))).inc()
            case 1:
                total.inc(chance.choice((0, 1, 7)))
            case 2:
                live.inc()
            case 3:
                live.dec(chance.choice((1, 3)))
            case 4:
                change = chance.choice(("inc", "dec", "set"))
                getattr(size.labels("a"), change)(chance.randrange(9))
            case 5:
                seconds.labels("/").observe(chance.choice((-1, 0, 0.5, 1, 1.5, 2, 5, 5.25, 1024)))
            case _:
                pages.append(generate_latest(registry).decode())
    lines = "".join([*pages, generate_latest(registry).decode()]).splitlines()
    return "\n".join(line for line in lines if "_created" not in line)


@each_row("seed", range(10))
def test_a_page_shows_what_the_librarys_own_metrics_would(seed: int) -> None:
    assert _count(metrics, seed) == _count(prometheus_client, seed)


def test_a_gauge_that_follows_a_function_shows_its_value() -> None:
    registry, waiting = CollectorRegistry(), ["a"]
    gauge = metrics.Gauge("waiting", "Of a test.", registry=registry)
    gauge.follow(waiting.__len__)
    assert registry.get_sample_value("waiting") == 1
    waiting.clear()
    assert registry.get_sample_value("waiting") == 0


def test_nothing_is_counted_without_its_labels() -> None:
    for kind in (metrics.Counter, metrics.Gauge):
        metric = kind("nameless", "Of a test.", ("status",), registry=CollectorRegistry())
        with pytest.raises(AttributeError):
            metric.inc()
