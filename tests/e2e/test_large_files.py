"""Large files take next to no memory of the processes that pass them on."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.services.files.running_file_store import MIB, Bucket

NOBODY = 9  # a port on which no provider listens
# One process holds what is on its way in the facade and in the service.
AT_MOST_MIB = 12


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes lie beside the rows."""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bytes lie in a bucket."""
    bucket = Bucket()
    for name, value in bucket.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GATEWAY_BLOB_URL", f"s3://{bucket.name}/files")
    yield
    bucket.client.close()
    bucket.stop()


@pytest.fixture(params=["folder", "s3"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gateway]:
    request.getfixturevalue(request.param)
    with gateway(tmp_path, NOBODY, is_forked=False) as one:
        yield one


class Peaks:
    """The most memory of each process of a gateway since the beginning of the block, in MiB."""

    def __init__(self, pid: int) -> None:
        self._pids = processes.family(pid)

    def __enter__(self) -> "Peaks":
        for pid in self._pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        self._before = [_peak_mib(pid) for pid in self._pids]
        return self

    def __exit__(self, *_: object) -> None:
        self.risen = [
            _peak_mib(pid) - before for pid, before in zip(self._pids, self._before, strict=True)
        ]


def _peak_mib(pid: int) -> float:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return int(status["VmHWM"].split()[0]) / 1024


async def _upload(http: aiohttp.ClientSession, content: bytes) -> str:
    form = aiohttp.FormData()
    form.add_field("purpose", "assistants")
    form.add_field("file", io.BytesIO(content), filename="a.bin")
    async with http.post("/beta/v1/files", data=form) as response:
        assert response.status == 200
        file_id: str = (await response.json())["id"]
        return file_id


async def _download(http: aiohttp.ClientSession, file_id: str) -> bytes:
    async with http.get(f"/beta/v1/files/{file_id}/content") as response:
        assert response.status == 200
        return await response.read()


@pytest.mark.thorough(one_in=2)
async def test_transfers_of_50_mb_are_never_held_in_memory(at: Gateway) -> None:
    credential = {"Authorization": f"Bearer {at.key}"}
    async with aiohttp.ClientSession(at.address, headers=credential) as http:
        # What the ways load and set up once is no part of what a size costs; nor is the one
        # part of 5 MiB that is held on its way to S3, which takes none that is smaller.
        await _download(http, await _upload(http, bytes(6 * MIB)))
        content = os.urandom(50 * MIB)
        with Peaks(at.process.pid) as inwards:
            file_id = await _upload(http, content)
        with Peaks(at.process.pid) as outwards:
            whole = await _download(http, file_id) == content
    assert whole
    assert max(*inwards.risen, *outwards.risen) < AT_MOST_MIB
