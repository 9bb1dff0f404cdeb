"""Measure calls over a link against plain gRPC calls: `python -m tests.bench.link`.

The same server and the same stubs, one process each; only the channel differs. What
counts is the CPU time that a call takes on both ends together, as a ratio of two figures
taken one right after the other.
"""

import argparse
import asyncio
import json
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import uvloop

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.files.v1 import files_pb2_grpc
from gateway.files.v1.files_pb2 import CreateFileRequest, CreateFileResponse
from gateway.inference.v1 import inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import (
    Event,
    GenerateRequest,
    GenerateResponse,
    StreamGenerateResponse,
)
from services.common.authentication import CachedIdentify, Caller
from services.common.channels import call_metadata, open_channel, open_plain_channel
from services.common.link.channel import LinkChannel
from services.common.server import Server
from tests.bench import processes
from tests.e2e.processes import PYTHON, Running

CALLERS = (1, 2, 4, 8, 16, 32, 64)
LINKS = (1, 2, 4)
_MESSAGES = 200  # of a stream
_REQUEST = GenerateRequest(model="x" * 1000)
_RESPONSE = GenerateResponse(id="x" * 1200)
_PART = StreamGenerateResponse(events=[Event(text="a token or two")])
_CHUNK = CreateFileRequest(chunk=b"x" * (256 << 10))
_CHUNKS = 200  # of a file of 50 MiB
_METADATA = call_metadata("gw-" + "a" * 43, "req_" + "0" * 24)
_MAX_MESSAGE = 80 << 20

Samples = defaultdict[str, list[float]]
# Calls once; gives how many messages came.
Call = Callable[[Any], Awaitable[int]]


class _Inference(inference_pb2_grpc.InferenceServiceServicer):
    async def Generate(self, request: GenerateRequest, context: Any) -> GenerateResponse:
        return _RESPONSE

    async def StreamGenerate(
        self, request: GenerateRequest, context: Any
    ) -> AsyncIterator[StreamGenerateResponse]:
        for _ in range(_MESSAGES):
            yield _PART


class _Files(files_pb2_grpc.FileStoreServiceServicer):
    async def CreateFile(self, request_iterator: Any, context: Any) -> CreateFileResponse:
        async for _ in request_iterator:
            pass
        return CreateFileResponse()


async def _identify(key: str) -> Caller:
    return Caller("bench", "", PLAN_ENTERPRISE)


async def _serve(address: str) -> None:
    server = Server(CachedIdentify(_identify, ttl_s=3600), max_message=_MAX_MESSAGE)
    server.add(inference_pb2_grpc.add_InferenceServiceServicer_to_server, _Inference(), "inference")
    server.add(files_pb2_grpc.add_FileStoreServiceServicer_to_server, _Files(), "files")
    server.listen(address)
    await server.start()
    print("READY", flush=True)
    await server.wait()


@dataclass(frozen=True, slots=True)
class _Cost:
    """What calls took.

    Attributes:
        cpu: seconds of both ends, by message.
        rate: messages in a second by the clock.
        wait: seconds of a call, median.
    """

    cpu: float
    rate: float
    wait: float


async def _cost(
    channels: Sequence[grpc.aio.Channel], call: Call, pid: int, callers: int, seconds: float
) -> _Cost:
    waits: list[float] = []

    async def ask(channel: grpc.aio.Channel, until: float) -> int:
        count = 0
        while (began := time.perf_counter()) < until:
            count += await call(channel)
            waits.append(time.perf_counter() - began)
        return count

    async def all_ask(how_long: float) -> int:
        until = time.perf_counter() + how_long
        asking = [ask(channels[number % len(channels)], until) for number in range(callers)]
        return sum(await asyncio.gather(*asking))

    await all_ask(seconds / 4)
    waits.clear()
    began, here, there = time.perf_counter(), time.process_time(), processes.cpu_seconds([pid])
    count = await all_ask(seconds)
    used = time.process_time() - here + processes.cpu_seconds([pid]) - there
    return _Cost(used / count, count / (time.perf_counter() - began), median(waits))


async def _unary(channel: Any) -> int:
    stub: Any = inference_pb2_grpc.InferenceServiceStub(channel)
    await stub.Generate(_REQUEST, metadata=_METADATA)
    return 1


async def _stream(channel: Any) -> int:
    stub: Any = inference_pb2_grpc.InferenceServiceStub(channel)
    call = stub.StreamGenerate(_REQUEST, metadata=_METADATA)
    count = 0
    while await call.read() is not grpc.aio.EOF:
        count += 1
    return count


async def _upload(channel: Any) -> int:
    stub: Any = files_pb2_grpc.FileStoreServiceStub(channel)
    call = stub.CreateFile(metadata=_METADATA)
    for _ in range(_CHUNKS):
        await call.write(_CHUNK)
    await call.done_writing()
    await call
    return _CHUNKS


async def _measure(rounds: int, seconds: float) -> Samples:
    available = sorted(os.sched_getaffinity(0))
    samples: Samples = defaultdict(list)
    # As between the processes of a gateway; links are for Unix sockets alone.
    folder = TemporaryDirectory(prefix="bench-")
    address = f"unix:{folder.name}/s"
    command = [PYTHON, "-m", "tests.bench.link", "--serve", address]
    with folder, Running(command, cpus=available[:1]) as process:
        process.wait_for("READY")
        processes.pin(available[1:2] or available)
        plain = open_plain_channel(address, max_message=_MAX_MESSAGE)
        links = [open_channel(address, max_message=_MAX_MESSAGE) for _ in range(max(LINKS))]
        whole = LinkChannel(
            open_plain_channel(address, max_message=_MAX_MESSAGE), max_message=_MAX_MESSAGE
        )

        async def note(
            name: str, call: Call, callers: int, link: Sequence[grpc.aio.Channel]
        ) -> None:
            base = await _cost([plain], call, process.pid, callers, seconds)
            ours = await _cost(link, call, process.pid, callers, seconds)
            for who, cost in (("plain", base), ("link", ours)):
                samples[f"{name}, {who} cpu us"].append(cost.cpu * 1e6)
                samples[f"{name}, {who} per s"].append(cost.rate)
                samples[f"{name}, {who} p50 ms"].append(cost.wait * 1e3)
            samples[f"{name}: cpu ratio"].append(base.cpu / ours.cpu)
            samples[f"{name}: p50 ratio"].append(base.wait / ours.wait)

        for _ in range(rounds):
            for callers in CALLERS:
                await note(f"unary x {callers}", _unary, callers, links[:1])
                await note(f"stream x {callers}", _stream, callers, links[:1])
            for count in LINKS[1:]:
                await note(f"unary x 32 on {count} links", _unary, 32, links[:count])
            await note("upload of 50 MiB", _upload, 1, [whole])
        for channel in (plain, whole, *links):
            await channel.close()
    return samples


def _table(samples: Samples) -> str:
    """Give a row a measure: both ends' CPU time, the rate, the wait; medians of the rounds."""
    head = ("", "plain us", "link us", "times less", "plain /s", "link /s", "plain ms", "link ms")
    lines = ["".join(f"{word:>12}" if at else f"{word:26}" for at, word in enumerate(head))]
    for name in [key.removesuffix(": cpu ratio") for key in samples if key.endswith("cpu ratio")]:
        shown = [
            f"{median(samples[f'{name}, plain cpu us']):.1f}",
            f"{median(samples[f'{name}, link cpu us']):.1f}",
            f"{median(samples[f'{name}: cpu ratio']):.1f}",
            *(
                f"{median(samples[f'{name}, {who} {what}']):,.{digits}f}"
                for what, digits in (("per s", 0), ("p50 ms", 2))
                for who in ("plain", "link")
            ),
        ]
        lines.append(f"{name:26}" + "".join(f"{figure:>12}" for figure in shown))
    return "\n".join(lines)


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.link", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: does it work?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        uvloop.run(_serve(arguments.serve))
        return
    samples = uvloop.run(_measure(*((1, 0.2) if arguments.quick else (5, 1.0))))
    print("CPU time of both ends a message (a stream's, or a unary call), rate, time of a call")
    print(_table(samples))
    if arguments.json:
        arguments.json.write_text(json.dumps(samples, indent=1))


if __name__ == "__main__":
    main()
