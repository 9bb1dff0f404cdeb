"""Measure the gateway against a bare proxy in the same run: `python -m tests.bench`.

The server under measure has one core; the upstream and the load share another. Rates
are counted per second of CPU time that the server's processes used, so they hold per
core whoever is the limit. Each round measures everything once, in slices that take turns; a
ratio is of two figures of one round.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import uvloop

from tests.bench import files, lag, large, load, measures, processes, wire
from tests.bench.budgets import lines_of
from tests.bench.measures import MEASURES, Rate, Subject
from tests.bench.report import as_json, table
from tests.e2e import gateway as real
from tests.e2e.processes import PYTHON, Running

Samples = defaultdict[str, list[float]]
_SLICES = 4  # of a round
_SHOWN_OF_LOG = 4000  # characters, when the gateway answers wrong


@contextmanager
def _started(module: str, *arguments: str, pattern: str, cpus: list[int]) -> Iterator[Subject]:
    with Running([PYTHON, "-m", module, *arguments], cpus=cpus) as process:
        port = int(process.wait_for(pattern)[1])
        yield Subject(port, processes.family(process.pid))


@contextmanager
def _gateway(upstream: int, *, workers: int, cpus: list[int]) -> Iterator[Subject]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        running = real.gateway(
            Path(folder),
            upstream,
            workers=workers,
            cpus=cpus,
            settings=measures.settings(upstream),
        )
        with running as started:
            pids = processes.family(started.process.pid)
            try:
                yield Subject(started.port, pids, started.key, workers)
            except load.WrongAnswerError:
                print(started.process.output[-_SHOWN_OF_LOG:], file=sys.stderr)
                raise


async def _start_up(upstream: int, cpus: list[int]) -> float:
    """Return the seconds from the command on an empty data folder to the first answer."""
    began = time.perf_counter()
    with _gateway(upstream, workers=1, cpus=cpus) as subject:
        request = wire.request("openai", "openai/bench", subject.key)
        await load.drive(subject.port, request, connections=1, seconds=0)
        return time.perf_counter() - began


async def _round(servers: Mapping[str, Subject], seconds: float, samples: Samples) -> None:
    """Measure all servers once, in slices that take turns: a machine's speed changes by seconds.

    No measure and no server is always the first.
    """
    totals = defaultdict[str, Rate](Rate)
    for turn in range(_SLICES):
        first = turn * len(MEASURES) // _SLICES
        for measure in (*MEASURES[first:], *MEASURES[:first]):
            for name in measure.servers[:: -1 if turn % 2 else 1]:
                rate = await measure.rate(servers[name], seconds / _SLICES)
                totals[f"{name} {measure.name}"] += rate
    for what, rate in totals.items():
        samples[what].append(rate.per_cpu_second)
        samples[f"{what} by the clock"].append(rate.per_second)


async def _waits(name: str, subject: Subject, seconds: float, samples: Samples) -> None:
    whole = await measures.latencies(subject, seconds)
    samples[f"{name} p50"].append(load.percentile(whole, 0.5) * 1000)
    samples[f"{name} p99"].append(load.percentile(whole, 0.99) * 1000)
    firsts = await measures.first_events(subject, seconds)
    samples[f"{name} first"].append(load.percentile(firsts, 0.5) * 1000)


async def _measure(rounds: int, seconds: float, requests: int) -> tuple[Samples, list[int]]:
    available = sorted(os.sched_getaffinity(0))
    served, loaded = available[:1], available[1:2] or available[:1]
    processes.pin(loaded)
    samples: Samples = defaultdict(list)
    with ExitStack() as stack:
        upstream = stack.enter_context(
            _started("tests.bench.upstream", pattern=r"on port (\d+)", cpus=loaded)
        )
        for _ in range(min(rounds, 3)):
            samples["start-up"].append(await _start_up(upstream.port, served))
        proxy = stack.enter_context(
            _started("tests.bench.proxy", str(upstream.port), pattern=r":(\d+)$", cpus=served)
        )
        gateway = stack.enter_context(_gateway(upstream.port, workers=1, cpus=served))
        two = stack.enter_context(_gateway(upstream.port, workers=2, cpus=available[:2]))
        await _waits("warm-up", gateway, seconds / 4, defaultdict(list))
        worker = processes.running_module(gateway.pids, "services.worker")
        samples["idle worker"].append(processes.memory(worker).rss)
        samples["idle"].append(processes.memory(gateway.pids).rss)
        samples["idle pss"].append(processes.memory(gateway.pids).pss)
        direct = replace(upstream, pids=())
        servers = {"proxy": proxy, "gateway": gateway, "two workers": two}
        for number in range(rounds):
            await _waits("direct", direct, seconds, samples)
            for name in ("proxy", "gateway"):
                await _waits(name, servers[name], seconds, samples)
            await _round(servers, seconds, samples)
            print(f"round {number + 1} of {rounds} done", flush=True)
        samples["after"].append(processes.memory(gateway.pids).rss)
        await _grow(gateway, requests, samples)
    return samples, available


async def _grow(gateway: Subject, requests: int, samples: Samples) -> None:
    """Note what memory does over many more requests."""
    before = processes.memory(gateway.pids).rss
    request = wire.request("openai", "openai/bench", gateway.key)
    sent = 0
    while sent < requests:
        outcome = await load.drive(
            gateway.port, request, connections=measures.CONNECTIONS, seconds=2
        )
        sent += outcome.count
    samples["growth"].append(processes.memory(gateway.pids).rss - before)


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: does it work?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    rounds, seconds, requests = (1, 0.5, 2_000) if arguments.quick else (5, 2.0, 100_000)
    samples, processors = uvloop.run(_measure(rounds, seconds, requests))
    uvloop.run(large.measure(samples, processors[:1], rounds=min(rounds, 3)))
    kept = {"seconds": 1.0, "rounds": 1} if arguments.quick else {"seconds": 4.0, "rounds": 3}
    uvloop.run(lag.measure(samples, processors[:1], processors[1:2] or processors[:1], **kept))
    rows = 20_000 if arguments.quick else 1_000_000
    uvloop.run(files.measure(samples, processors, seconds=seconds, rows=rows))
    lines = lines_of(samples)
    print(table(lines))
    if arguments.json:
        facts = {
            "processors": len(processors),
            "python": platform.python_version(),
            "rounds": rounds,
            "seconds": seconds,
            "samples": samples,
        }
        arguments.json.write_text(json.dumps(as_json(lines, facts), indent=1))


if __name__ == "__main__":
    main()
