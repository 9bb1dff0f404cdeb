"""What a large file costs a process that serves it."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from gateway.files.v1.files_pb2_grpc import FileStoreServiceStub
from services.accounts.repository import AccountRepository
from services.common.channels import open_channel
from services.common.database import migrate, open_engine
from services.common.settings import Storage
from tests.services.files.filing import MIB, Client
from tests.services.files.killed import serving

SENT_AT_ONCE = 256 << 10
# A quiet machine shows 3 to 7; how the allocator's luck goes is not what is tested.
AT_MOST_MIB = 8


def _peak_mib(pid: int) -> float:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return int(status["VmHWM"].split()[0]) / 1024


def _begin_peak(pid: int) -> float:
    """Let the peak count from now on; give it."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return _peak_mib(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
async def test_a_large_file_goes_in_and_out_without_ever_being_in_memory() -> None:
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        engine = open_engine(Storage(data_dir=folder))
        await migrate(engine)
        key = await AccountRepository(engine).create_key("ada", plan="enterprise")
        await engine.dispose()
        async with (
            serving(folder) as (process, address),
            open_channel(address, max_message=4 * MIB) as channel,
        ):
            ada = Client(FileStoreServiceStub(channel), key, SENT_AT_ONCE)
            await ada.content((await ada.create(b"x" * 3 * MIB)).id)
            before = _begin_peak(process.pid)
            content = os.urandom(50 * MIB)
            file = await ada.create(content)
            assert await ada.content(file.id) == content
            assert _peak_mib(process.pid) - before < AT_MOST_MIB
