"""The cost of files: large ones and descriptions over HTTP, pages of a long list.

Transfers go by the clock, one at a time, and may use every processor, as may the plain
server beside them. An upload ends when the disk
has it, so the disk's own time for the same bytes is taken too.
"""

import asyncio
import json
import os
import socket
import tempfile
import time
from collections.abc import MutableMapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.files.v1.files_pb2 import ListFilesRequest
from services.common.settings import Storage
from services.common.storage.database import open_engine, writing
from services.common.storage.migrations.runner import migrate
from services.files.repository import FileRepository
from tests.bench import load, processes
from tests.bench.load import WrongAnswerError
from tests.e2e import gateway as real
from tests.e2e.processes import PYTHON, Running, free_port

SIZE = 50_000_000
FEW = 1_000
_TRANSFERS = 5
_CALLERS = 16
_PAGES = 60
_OWNER = "user_bench"
_MB = 1e6
_BOUNDARY = "a-boundary-of-the-benchmark"
_READ = 1 << 20
_TIMEOUT_S = 60.0
_NOBODY = 9  # a port on which no provider listens

Samples = MutableMapping[str, list[float]]


async def measure(samples: Samples, cpus: Sequence[int], *, seconds: float, rows: int) -> None:
    """Add every figure of files; `cpus` are all there are, `rows` those of the long list."""
    await asyncio.to_thread(_transfers, samples, cpus)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        samples["descriptions"].append(await _descriptions(Path(folder), cpus, seconds))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        await _pages(Path(folder), rows, samples)


class _Client:
    """One connection to a server of the loopback address, which blocks."""

    def __init__(self, port: int, key: str = "none") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
        self._key = key

    def upload(self, path: str, content: bytes) -> tuple[float, bytes]:
        """Send a file in a form; give the seconds until the answer, and the answer."""
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        before = (
            f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n'
            "content-type: application/octet-stream\r\n\r\n"
        ).encode()
        after = f"\r\n--{_BOUNDARY}--\r\n".encode()
        body = b"".join((before, content, after))
        return self._ask("POST", path, body, f"content-type: {kind}\r\n")

    def download(self, path: str) -> tuple[float, bytes]:
        """Return the seconds until the last byte, and the bytes."""
        return self._ask("GET", path)

    def delete(self, path: str) -> None:
        self._ask("DELETE", path)

    def close(self) -> None:
        self._socket.close()

    def _ask(
        self, method: str, path: str, body: bytes = b"", headers: str = ""
    ) -> tuple[float, bytes]:
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self._key}\r\n"
            f"{headers}content-length: {len(body)}\r\n\r\n"
        ).encode()
        began = time.perf_counter()
        self._socket.sendall(head)
        self._socket.sendall(body)
        answer = self._read()
        return time.perf_counter() - began, answer

    def _read(self) -> bytes:
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._some(memoryview(bytearray(_READ)))
        head = bytes(received[:end]).lower()
        at = head.index(b"content-length:") + len(b"content-length:")
        body = bytearray(int(head[at:].split(b"\r\n", 1)[0]))
        begun = len(received) - end - 4
        body[:begun] = received[end + 4 :]
        left = memoryview(body)[begun:]
        while left:
            left = left[len(self._some(left)) :]
        if not head.startswith(b"http/1.1 200"):
            raise WrongAnswerError((head + body[:2000]).decode(errors="replace"))
        return bytes(body)

    def _some(self, into: memoryview) -> memoryview:
        count = self._socket.recv_into(into)
        if not count:
            raise WrongAnswerError("connection lost")
        return into[:count]


def _transfers(samples: Samples, cpus: Sequence[int]) -> None:
    """Send a file there and back over and over, through the gateway and without it."""
    content = os.urandom(SIZE)
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        real.gateway(Path(folder), free_port(), cpus=cpus) as gateway,
        Running([PYTHON, "-m", "tests.bench.plain"], cpus=cpus) as plain,
    ):
        bare = _Client(int(plain.wait_for(r":(\d+)$")[1]))
        ours = _Client(gateway.port, gateway.key)
        for number in range(_TRANSFERS + 1):
            into: Samples = samples if number else {}  # the first one warms up

            def note(name: str, took: float, into: Samples = into) -> None:
                into.setdefault(name, []).append(SIZE / _MB / took)

            note("upload bare", bare.upload("/", content)[0])
            took, answer = ours.upload("/beta/v1/files", content)
            note("upload", took)
            path = f"/beta/v1/files/{json.loads(answer)['id']}"
            note("download bare", bare.download(f"/{SIZE}")[0])
            took, received = ours.download(f"{path}/content")
            note("download", took)
            if received != content:
                raise WrongAnswerError("a download gives other bytes than its upload took")
            ours.delete(path)
            note("disk", _kept(Path(folder, "beside"), content))
        bare.close()
        ours.close()


def _kept(path: Path, content: bytes) -> float:
    """Return the seconds that the disk takes to keep the content for good."""
    began = time.perf_counter()
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    took = time.perf_counter() - began
    path.unlink()
    return took


async def _descriptions(folder: Path, cpus: Sequence[int], seconds: float) -> float:
    """Return how many files the gateway describes in a second of its CPU time."""
    with real.gateway(folder, _NOBODY, cpus=cpus[:1]) as gateway:
        client = _Client(gateway.port, gateway.key)
        _, answer = await asyncio.to_thread(client.upload, "/beta/v1/files", b"some text")
        client.close()
        path = f"/beta/v1/files/{json.loads(answer)['id']}"
        request = (
            f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {gateway.key}\r\n\r\n"
        ).encode()
        drive = partial(load.drive, gateway.port, request, connections=_CALLERS)
        await drive(seconds=seconds / 4)
        pids = processes.family(gateway.process.pid)
        before = processes.cpu_seconds(pids)
        outcome = await drive(seconds=seconds)
        return outcome.count / max(processes.cpu_seconds(pids) - before, 0.01)


async def _pages(folder: Path, rows: int, samples: Samples) -> None:
    """Note what a page of 20 costs in the middle of a short list and of one of `rows`."""
    engine = open_engine(Storage(data_dir=folder))
    await migrate(engine)
    repository = FileRepository(engine)
    async with writing(engine) as connection:
        await connection.execute(
            text("INSERT INTO file_usage (owner_id, files, size_bytes) VALUES (:owner, 0, 0)"),
            {"owner": _OWNER},
        )
    await _fill(engine, 0, FEW)
    samples["page of few"].append(await _page_ms(repository, FEW))
    await _fill(engine, FEW, rows)
    samples["page of many"].append(await _page_ms(repository, rows))
    await engine.dispose()


async def _fill(engine: AsyncEngine, begin: int, end: int) -> None:
    """Add rows of files from one number to another, two of each second."""
    rows = """
        INSERT INTO files (id, owner_id, filename, purpose, size_bytes, mime_type,
                           created_at_s, expires_at_s, sha256)
        WITH RECURSIVE numbers(n) AS (
            SELECT :begin UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :end
        )
        SELECT printf('file-%026d', n), :owner, 'a.txt', 'batch', 1, 'text/plain',
               :now + n / 2, :now * 2, printf('%064d', 0)
        FROM numbers
    """
    async with writing(engine) as connection:
        await connection.execute(
            text(rows), {"begin": begin, "end": end, "owner": _OWNER, "now": int(time.time())}
        )
        await connection.execute(text("ANALYZE files"))


async def _page_ms(repository: FileRepository, rows: int) -> float:
    request = ListFilesRequest(limit=20, after_id=f"file-{rows // 2:026}")
    took = []
    for _ in range(_PAGES):
        began = time.perf_counter()
        page, more = await repository.page(_OWNER, request)
        took.append((time.perf_counter() - began) * 1000)
        if (len(page), more) != (20, True):
            raise WrongAnswerError(f"a page of {len(page)} files where 20 were asked for")
    return median(took)
