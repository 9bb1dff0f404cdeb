"""A disk on which no byte is free, and stays free: another program takes what is freed."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from tests.bench import processes
from tests.e2e.processes import Running, command
from tests.waiting import until

_SETTINGS = """\
[storage]
min_free_bytes = 1_000_000

[discovery]
enabled = false
"""
_ADDRESS = r"(http://127\.0\.0\.1:\d+)"
# A file system of its own, which other processes reach as the gateway's root folder.
_SHELL = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
_MOUNT = "mount -t tmpfs -o size={size},mode=700 none {folder}"
_CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
_FULL = 503


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A gateway whose data folder is a small disk.

    Attributes:
        process: the gateway, whose log is on the disk too.
        folder: the data folder, as this process reaches it.
        address: where callers go.
        metrics_url: where operators go.
        key: an API key.
    """

    process: Running
    folder: Path
    address: str
    metrics_url: str
    key: str

    @property
    def workers(self) -> list[int]:
        """The process ids of the workers."""
        return [pid for pid in processes.family(self.process.pid) if pid != self.process.pid]

    async def status(
        self, path: str, *, method: str = "GET", json: object = None, data: object = None
    ) -> int:
        """Return the status of the answer to a request on a connection of its own."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.request(method, self.address + path, json=json, data=data) as answer,
        ):
            await answer.read()
            return answer.status

    async def upload(self) -> str:
        """Upload a file; return its id."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.post(f"{self.address}/v1/files", data=_file()) as answer,
        ):
            assert answer.status == 200
            return str((await answer.json())["id"])

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Fill the disk, and take whatever becomes free until the end."""
        is_done = threading.Event()
        with open(self.folder / "other", "wb", buffering=0) as file:

            def fill() -> None:
                size = 1 << 20
                while not is_done.is_set():
                    try:
                        file.write(bytes(size))
                    except OSError:
                        size = max(1, size // 2)
                        is_done.wait(0.001 if size == 1 else 0)

            filling = threading.Thread(target=fill)
            filling.start()
            try:
                yield
            finally:
                is_done.set()
                filling.join()
                (self.folder / "other").unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Run a gateway with two workers on a disk of its own."""
    folder = tmp_path / "var"
    folder.mkdir()
    mount = _MOUNT.format(size="64m", folder=folder)
    if subprocess.run([*_SHELL, mount], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a file system")
    (tmp_path / "gateway.toml").write_text(_SETTINGS)
    environ: Mapping[str, str] = {
        "GATEWAY_CONFIG": str(tmp_path / "gateway.toml"),
        "GATEWAY_DATA_DIR": str(folder),
        "GATEWAY_DATABASE_URL": "",
        "GATEWAY_HOST": "127.0.0.1",
        "GATEWAY_PORT": "0",
        "GATEWAY_METRICS_PORT": "0",
    }
    run = f"{mount} && exec {command('gateway')} up --workers 2 2> {folder}/log"
    with Running([*_SHELL, run], environ=environ, folder=tmp_path) as process:
        address = process.wait_for(f"listens on {_ADDRESS}")[1]
        metrics_url = process.wait_for(f"Metrics are on {_ADDRESS}")[1]
        inside = Path(f"/proc/{process.pid}/root{folder}")
        key = (inside / "dev.key").read_text().strip()
        yield SmallDisk(process, inside, address, metrics_url, key)


@pytest.mark.soak
async def test_a_full_disk_ends_no_worker(small_disk: SmallDisk) -> None:
    workers = small_disk.workers
    ids = [await small_disk.upload() for _ in range(3)]
    with small_disk.filled():
        await until(partial(_is_low, small_disk))
        await _assert_usable(small_disk, ids.pop(), ids[0])
        assert small_disk.workers == workers

        # New workers start, one after the other.
        for killed in workers:
            registered = _registered(small_disk)
            os.kill(killed, signal.SIGKILL)
            await until(lambda before=registered: bool(_registered(small_disk) - before))
        await until(lambda: len(small_disk.workers) == 2)
        await until(partial(_is_answered, small_disk))
        await _assert_usable(small_disk, ids.pop(), ids[0])
        started = small_disk.workers
    await until(partial(_has_room, small_disk))
    await small_disk.upload()
    assert small_disk.workers == started
    for line in (small_disk.folder / "log").read_text().splitlines():
        assert "SIGBUS" not in line


async def _assert_usable(disk: SmallDisk, deleted_id: str, file_id: str) -> None:
    """Assert that everything but writing works."""
    for number in range(20):
        assert await disk.status("/healthz") == 200
        # New labels of metrics.
        assert await disk.status(f"/v1/models/{number}") == 404
        assert await disk.status("/v1/chat/completions", method="POST", json=_CHAT) == 200
        assert await disk.status(f"/v1/files/{file_id}/content") == 200
        assert await disk.status("/v1/files") == 200
    assert await disk.status("/v1/files", method="POST", data=_file()) == _FULL
    assert await disk.status(f"/v1/files/{deleted_id}", method="DELETE") == 200
    assert await disk.status(f"/v1/files/{deleted_id}") == 404
    async with aiohttp.ClientSession() as http:
        for _ in disk.workers * 3:
            async with http.get(f"{disk.metrics_url}/metrics") as answer:
                assert answer.status == 200
                assert "gateway_http_requests_total" in await answer.text()


async def _is_low(disk: SmallDisk) -> bool:
    return await _states(disk) == {"low"} and not os.statvfs(disk.folder).f_bavail


async def _has_room(disk: SmallDisk) -> bool:
    return await _states(disk) == {"ok"}


async def _states(disk: SmallDisk) -> set[str]:
    """Return what the workers report: each connection reaches one at random."""
    states = set()
    for _ in range(16):
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{disk.metrics_url}/readyz?verbose") as answer,
        ):
            states.add((await answer.json())["storage"])
    return states


async def _is_answered(disk: SmallDisk) -> bool:
    try:
        return await disk.status("/healthz") == 200
    except aiohttp.ClientConnectionError:
        return False


def _registered(disk: SmallDisk) -> set[str]:
    """Return the names of the processes that have opened the database."""
    return {path.name for path in (disk.folder / "instances").iterdir()}


def _file() -> aiohttp.FormData:
    form = aiohttp.FormData()
    form.add_field("purpose", "user_data")
    form.add_field("file", b"content", filename="a.txt")
    return form
