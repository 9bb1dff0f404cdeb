import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.supervisor.gateway import worker_programs
from services.supervisor.resources import held_port, locked
from tests.services.supervisor.stand_ins import PATIENCE_S, StandIns, stand_ins

KEY = "gw-" + "k" * 43
NAMES = ("worker-0", "worker-1")

# Runs a gateway whose programs are stand-ins, and prints the arguments that they are made from.
_GATEWAY = """
import json, sys
from services.supervisor.config import SupervisorConfig
from services.supervisor.gateway import run_gateway
from services.supervisor.process import Program, StartError
config = SupervisorConfig(
    host="127.0.0.1", port=0, metrics_host="127.0.0.1", metrics_port=0, data_dir=sys.argv[1],
    drain_s=60, workers=2, grpc="",
)
def make_programs(*arguments):
    print(json.dumps(arguments), flush=True)
    return [Program(name, argv) for name, argv in json.loads(sys.argv[2])]
try:
    run_gateway(config, make_programs=make_programs)
except StartError as error:
    sys.exit(str(error))
"""


@pytest.fixture
async def programs() -> AsyncIterator[StandIns]:
    async with stand_ins() as programs:
        yield programs


@dataclass
class GatewayProcess:
    """A supervisor in a process of its own, with stand-ins for its workers.

    Attributes:
        folder: folder of the run; port, metrics_port: ports of the gateway.
    """

    process: asyncio.subprocess.Process
    output: asyncio.StreamReader
    folder: Path = Path()
    port: int = 0
    metrics_port: int = 0

    async def start(self) -> None:
        folder, self.port, self.metrics_port = json.loads(await self.line())
        self.folder = Path(folder)

    async def line(self) -> str:
        """Return the next line of its standard output."""
        async with asyncio.timeout(PATIENCE_S):
            return (await self.output.readline()).decode().rstrip("\n")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> tuple[int, str]:
        """Wait for its end; return the exit status and what it wrote to standard error."""
        async with asyncio.timeout(PATIENCE_S):
            _, errors = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, errors.decode()


@asynccontextmanager
async def gateway_process(programs: StandIns, data_dir: Path) -> AsyncIterator[GatewayProcess]:
    commands = [[name, programs.program(name).argv] for name in NAMES]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _GATEWAY, str(data_dir), json.dumps(commands)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield GatewayProcess(process, process.stdout)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.fixture
async def gateway(programs: StandIns, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with gateway_process(programs, tmp_path / "var") as gateway:
        await gateway.start()
        yield gateway


async def test_the_address_is_printed_once_all_are_ready(
    gateway: GatewayProcess, programs: StandIns
) -> None:
    await (await programs.started("worker-0")).write(f"READY {KEY}\n")
    await programs.ready("worker-1")
    assert await gateway.line() == f"The gateway listens on http://127.0.0.1:{gateway.port}"
    assert await gateway.line() == f"Metrics are on http://127.0.0.1:{gateway.metrics_port}/metrics"
    assert KEY in await gateway.line()
    gateway.signal(signal.SIGTERM)
    gateway.signal(signal.SIGINT)
    assert (await gateway.end())[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_programs(
    gateway: GatewayProcess, programs: StandIns, number: signal.Signals
) -> None:
    runs = await programs.ready(*NAMES)
    await gateway.line()
    gateway.signal(number)
    for run in runs:
        assert await run.heard() == "SIGTERM"
        run.tell("exit 0")
    assert await gateway.end() == (0, "")


async def test_a_hangup_is_passed_on_to_every_program(
    gateway: GatewayProcess, programs: StandIns
) -> None:
    runs = await programs.ready(*NAMES)
    await gateway.line()
    gateway.signal(signal.SIGHUP)
    for run in runs:
        assert await run.heard() == "SIGHUP"


async def test_programs_share_a_folder_that_the_end_removes(
    gateway: GatewayProcess, programs: StandIns
) -> None:
    for name in NAMES:
        run = await programs.started(name)
        metrics = Path(run.environ["PROMETHEUS_MULTIPROC_DIR"])
        assert metrics.parent == gateway.folder
        assert os.listdir(metrics) == []
        await run.ready()
    await gateway.line()
    assert stat.S_IMODE(os.stat(gateway.folder).st_mode) == 0o700
    # The second ends them at once. Two of one kind may come as one.
    gateway.signal(signal.SIGTERM)
    gateway.signal(signal.SIGINT)
    await gateway.end()
    with pytest.raises(FileNotFoundError):
        os.stat(gateway.folder)


async def test_the_gauges_of_a_dead_program_are_removed(
    gateway: GatewayProcess, programs: StandIns
) -> None:
    first, second = await programs.ready(*NAMES)
    await gateway.line()
    for run in (first, second):
        for kind in ("gauge_livesum", "counter"):
            os.mknod(gateway.folder / "metrics" / f"{kind}_{run.pid}.db")
    second.tell("die")
    await programs.started("worker-1")
    assert sorted(os.listdir(gateway.folder / "metrics")) == sorted(
        [
            f"counter_{first.pid}.db",
            f"counter_{second.pid}.db",
            f"gauge_livesum_{first.pid}.db",
        ]
    )


async def test_the_death_of_a_program_is_one_json_log_line(
    gateway: GatewayProcess, programs: StandIns
) -> None:
    _, second = await programs.ready(*NAMES)
    await gateway.line()
    second.tell("die")
    await programs.started("worker-1")
    assert gateway.process.stderr is not None
    logged = json.loads(await gateway.process.stderr.readline())
    assert logged["level"] == "error"
    assert (logged["program"], logged["end"], logged["wait_s"]) == ("worker-1", "SIGKILL", 0.2)


async def test_a_second_gateway_in_a_folder_is_refused(
    gateway: GatewayProcess, programs: StandIns, tmp_path: Path
) -> None:
    async with gateway_process(programs, tmp_path / "var") as other:
        status, errors = await other.end()
    assert status == 1
    pid = gateway.process.pid
    assert re.search(
        rf"another gateway uses this data folder \(process {pid}\).*GATEWAY_DATA_DIR", errors
    )


async def test_a_failed_start_frees_the_folder_and_the_port(
    gateway: GatewayProcess, programs: StandIns, tmp_path: Path
) -> None:
    first, second = [await programs.started(name) for name in NAMES]
    first.tell("exit 1")
    assert await second.heard() == "SIGTERM"
    second.tell("exit 0")
    status, errors = await gateway.end()
    assert (status, "ended before it was ready" in errors) == (1, True)
    with locked(str(tmp_path / "var")), held_port("127.0.0.1", gateway.port, ""):
        pass
    assert await gateway.line() == ""


async def test_an_interrupted_start_is_reported(
    gateway: GatewayProcess, programs: StandIns
) -> None:
    runs = [await programs.started(name) for name in NAMES]
    gateway.signal(signal.SIGINT)
    for run in runs:
        assert await run.heard() == "SIGTERM"
        run.tell("exit 0")
    assert await gateway.end() == (1, "interrupted before the gateway was ready\n")


def test_workers_share_the_ports_and_have_a_socket_each() -> None:
    workers = worker_programs("127.0.0.1", 2)("/run/gw", 8080, 8081)
    assert [program.name for program in workers] == ["worker 0", "worker 1"]
    for number, worker in enumerate(workers):
        *_, module = worker.argv[: worker.argv.index("--host")]
        assert module == "services.worker"
        assert list(worker.argv[worker.argv.index("--host") :]) == [
            *("--host", "127.0.0.1", "--port", "8080", "--metrics-port", "8081"),
            *("--grpc", f"unix:/run/gw/{number}.sock"),
        ]


def test_a_folder_called_services_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "__init__.py").write_text("raise SystemExit('not the gateway')")
    (worker,) = worker_programs("127.0.0.1", 1)(str(tmp_path), 80, 81)
    shown = subprocess.run(
        [*worker.argv, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.search("--parent-pipe", shown.stdout)


def test_programs_do_not_inherit_descriptors_of_the_gateway(tmp_path: Path) -> None:
    # A program that lists its descriptors: the standard ones, the pipe, and that of the folder.
    code = """
import os, sys
from services.supervisor.config import SupervisorConfig
from services.supervisor.gateway import run_gateway
from services.supervisor.process import Program, StartError
config = SupervisorConfig(
    host="127.0.0.1", port=0, metrics_host="127.0.0.1", metrics_port=0, data_dir=sys.argv[1],
    drain_s=0, workers=1, grpc="",
)
listing = "import os; print(f'FAILED {len(os.listdir(\\"/dev/fd\\"))}')"
programs = [Program("lister", [sys.executable, "-c", listing])]
try:
    run_gateway(config, make_programs=lambda *_: programs)
except StartError as error:
    print(error)
"""
    read_end, write_end = os.pipe()
    try:
        shown = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "var")],
            pass_fds=[read_end, write_end],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        os.close(read_end)
        os.close(write_end)
    assert shown.stdout == "5\n"
