"""A conversion process can do nothing on this machine but convert."""

import asyncio
import os
import struct
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from services.common.errors import GatewayError
from services.common.settings import Limits
from services.media.conversion import confinement
from services.media.conversion import worker as workers
from services.media.conversion.confinement import Protections, protections
from services.media.conversion.parts import Source
from services.media.conversion.pool import ConversionPool, PooledConverter
from tests.waiting import until

ROGUE = str(Path(__file__).parent / "rogue.py")
REPOSITORY = Path(__file__).parents[4]
OFFERED = protections()
NEEDS_LANDLOCK = pytest.mark.skipif(not OFFERED.landlock, reason="this kernel has no Landlock")
NEEDS_SECCOMP = pytest.mark.skipif(not OFFERED.seccomp, reason="this kernel has no seccomp")


@pytest.fixture
async def pool(monkeypatch):
    monkeypatch.setattr(workers, "_COMMAND", (sys.executable, "-P", ROGUE))
    made = ConversionPool(Limits(max_parallel_conversions=1), CollectorRegistry())
    yield made
    await made.close()


@pytest.fixture
def act(pool, caplog):
    async def run(name: str, argument: str = "") -> str:
        """Return what a process does, or the error that stops it."""
        converter = PooledConverter(pool, lambda: "someone")
        try:
            return (await converter.web_page(Source(argument.encode(), ""), url=name)).text
        except GatewayError:
            return caplog.records[-1].trace.splitlines()[-1]

    return run


@NEEDS_LANDLOCK
async def test_a_conversion_reads_no_file_of_the_user(act, tmp_path):
    data = tmp_path / "var"
    data.mkdir()
    (data / "dev.key").write_text("a key")
    for attempt in (
        act("read", str(data / "dev.key")),
        act("read", str(REPOSITORY / "pyproject.toml")),
        act("read", f"/proc/{os.getpid()}/environ"),
        act("list_folder", str(data)),
        act("remove", str(data / "dev.key")),
        act("write", str(data / "new")),
        act("write", str(Path(confinement.__file__).with_name("__pycache__") / "new")),
    ):
        assert (await attempt).startswith("PermissionError")
    assert os.listdir(data) == ["dev.key"]


@NEEDS_LANDLOCK
async def test_a_conversion_reads_its_libraries(act):
    assert "def confine" in await act("read", confinement.__file__)


@NEEDS_SECCOMP
async def test_a_conversion_opens_no_socket(act):
    for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"):
        assert (await act("connect", family)).startswith("PermissionError")


@NEEDS_SECCOMP
async def test_a_conversion_starts_and_signals_no_process(act):
    for name in ("fork", "spawn", "signal_parent", "signal_group", "limit_parent"):
        assert (await act(name)).startswith("PermissionError")
    assert await act("start_thread") == "threaded"


@NEEDS_SECCOMP
async def test_a_conversion_changes_no_modes_of_files(act, tmp_path):
    path = tmp_path / "key"
    path.touch(0o600)
    assert (await act("change_mode", str(path))).startswith("PermissionError")
    assert path.stat().st_mode & 0o777 == 0o600


@NEEDS_SECCOMP
async def test_a_conversion_process_shows_its_filter(act, pool):
    conversion = asyncio.create_task(act("hang"))
    await until(lambda: pool.workers())
    status = Path(f"/proc/{pool.workers()[0]}/status")
    await until(lambda: "Seccomp:\t2" in status.read_text())
    conversion.cancel()


@pytest.mark.parametrize(
    ("offered", "missing"),
    [
        (Protections(7, seccomp=True), ""),
        (Protections(0, seccomp=True), "read the files of the gateway's user"),
        (Protections(7, seccomp=False), "open connections"),
        (Protections(0, seccomp=False), "read files and open connections"),
    ],
)
def test_what_a_kernel_lacks_is_said(offered, missing):
    assert offered.missing() == missing


async def test_an_old_kernel_is_logged_once_at_the_start(monkeypatch, caplog):
    monkeypatch.setattr(
        "services.media.conversion.pool.protections", lambda: Protections(0, seccomp=True)
    )
    pool = ConversionPool(Limits(), CollectorRegistry())
    await pool.close()
    (record,) = caplog.records
    assert record.they_can == "read the files of the gateway's user"


ALLOWED, DENIED = 0x7FFF0000, 0x00050001


@pytest.mark.parametrize(
    ("machine", "architecture", "numbers"),
    [
        (
            "x86_64",
            0xC000003E,
            {"socket": 41, "read": 0, "kill": 62, "prlimit": 302, "clone": 56, "clone3": 435},
        ),
        (
            "aarch64",
            0xC00000B7,
            {"socket": 198, "read": 63, "kill": 129, "prlimit": 261, "clone": 220, "clone3": 435},
        ),
    ],
)
def test_the_filter_decides_by_call_and_argument(machine, architecture, numbers):
    code = confinement.system_call_filter(machine, 1_000)

    def decide(name: str, argument: int = 0) -> int:
        return run_filter(code, numbers[name], architecture, argument)

    assert decide("read") == ALLOWED
    assert decide("socket") == DENIED
    assert [decide("kill", pid) for pid in (1_000, 0, 999)] == [ALLOWED, DENIED, DENIED]
    assert [decide("prlimit", pid) for pid in (1_000, 0, 999)] == [ALLOWED, ALLOWED, DENIED]
    assert [decide("clone", flags) for flags in (0x10F00, 17)] == [ALLOWED, DENIED]
    assert decide("clone3") == 0x00050026  # ENOSYS
    assert run_filter(code, 0x40000000, architecture, 0) == 0x00050026
    assert run_filter(code, numbers["read"], 0x40000003, 0) == 0x80000000


def run_filter(code, number: int, architecture: int, argument: int) -> int:
    """Return the result of a classic BPF program on the data of a system call."""
    data = struct.pack("=IIQQ", number, architecture, 0, argument)
    position, held = 0, 0
    while True:
        operation, on_true, on_false, value = struct.unpack("=HBBI", code[position])
        position += 1
        match operation:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            case 0x06:
                return value
            case _:
                tests = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}
                position += on_true if tests[operation] else on_false
