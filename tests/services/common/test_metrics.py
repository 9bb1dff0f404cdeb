"""Counters of processes that share a folder, as one page."""

import os
import subprocess
import sys
from pathlib import Path

# Counts in a loop of its own, and shows what is there for whoever asks it and for others.
_PROGRAM = """
import asyncio
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from services.common import metrics

metrics.count_quickly()
own = CollectorRegistry()
requests = Counter("requests", "Of a test.", ("status",), registry=own)
live = Gauge("live", "Of a test.", multiprocess_mode="livesum", registry=own)
seconds = Histogram("seconds", "Of a test.", buckets=(1, 2), registry=own)

def others():
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return registry.get_sample_value("requests_total", {"status": "200"})

async def count():
    for _ in range(3):
        requests.labels("200").inc()
    live.inc()
    live.inc()
    live.dec()
    seconds.observe(1.5)
    print(others())
    shown = metrics.shown(own)
    print(shown.get_sample_value("requests_total", {"status": "200"}))
    print(shown.get_sample_value("live"), shown.get_sample_value("seconds_sum"))
    requests.labels("200").inc()
    while others() != 4:
        await asyncio.sleep(0.01)
    requests.labels("200").inc()

asyncio.run(count())
metrics.write_counts()
print(others())
"""


def test_what_is_counted_is_shown_at_once_here_and_soon_everywhere(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert shown.stdout.split() == ["0.0", "3.0", "1.0", "1.5", "5.0"]
