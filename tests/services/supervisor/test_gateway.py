import asyncio
import io
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from services.supervisor.config import Orders
from services.supervisor.gateway import (
    LOCK_FILE,
    base_url,
    gateway_programs,
    greeting,
    held_port,
    locked,
    runtime_folder,
    short_path,
    up,
)
from services.supervisor.supervisor import Program, StartError
from tests.services.supervisor.stand_ins import PATIENCE_S, StandIns, stand_ins

KEY = "gw-" + "k" * 43
METRICS = "http://127.0.0.1:8081"
BODY = '{"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}'


@pytest.fixture
async def programs() -> AsyncIterator[StandIns]:
    async with stand_ins() as programs:
        yield programs


class Output(io.StringIO):
    """A standard output that tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def flush(self) -> None:
        self.written.set()


class Up:
    """`gateway up` with stand-ins, in this process."""

    def __init__(self, programs: StandIns, data_dir: Path) -> None:
        self.orders = Orders(
            "127.0.0.1", 0, "127.0.0.1", 0, data_dir, drain_s=0, workers=1, grpc=""
        )
        self.output = Output()
        self.port = self.metrics_port = 0
        self.folder = Path()
        self._programs = programs

    async def run(self) -> None:
        await up(self.orders, make_programs=self._make, output=self.output)

    def _make(self, folder: Path, port: int, metrics_port: int) -> Sequence[Program]:
        self.folder, self.port, self.metrics_port = folder, port, metrics_port
        return [self._programs.program(name) for name in ("worker-0", "worker-1")]


@pytest.fixture
async def gateway(programs: StandIns, tmp_path: Path) -> Up:
    return Up(programs, tmp_path / "var")


def _signal(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


async def test_it_says_where_it_is_once_it_is_ready(gateway: Up, programs: StandIns) -> None:
    task = asyncio.create_task(gateway.run())
    await (await programs.started("worker-0")).write(f"READY {KEY}\n")
    assert gateway.output.getvalue() == ""
    await programs.ready("worker-1")
    await gateway.output.written.wait()
    lines = gateway.output.getvalue().splitlines()
    assert lines[0] == f"The gateway listens on http://127.0.0.1:{gateway.port}"
    assert lines[1] == f"Metrics are on http://127.0.0.1:{gateway.metrics_port}/metrics"
    assert KEY in lines[2]
    _signal(signal.SIGTERM)
    _signal(signal.SIGINT)
    await task


async def test_a_signal_ends_the_programs(gateway: Up, programs: StandIns) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        task = asyncio.create_task(gateway.run())
        first, second = await programs.ready("worker-0", "worker-1")
        await gateway.output.written.wait()
        _signal(number)
        for run in (first, second):
            assert await run.heard() == "SIGTERM"
            run.tell("exit 0")
        await task
        gateway.output.written.clear()


async def test_a_hangup_makes_every_program_read_its_settings_again(
    gateway: Up, programs: StandIns
) -> None:
    task = asyncio.create_task(gateway.run())
    runs = await programs.ready("worker-0", "worker-1")
    await gateway.output.written.wait()
    _signal(signal.SIGHUP)
    for run in runs:
        assert await run.heard() == "SIGHUP"
    _signal(signal.SIGTERM)
    _signal(signal.SIGTERM)
    await task


async def test_programs_share_a_fresh_folder_that_goes_at_the_end(
    gateway: Up, programs: StandIns
) -> None:
    task = asyncio.create_task(gateway.run())
    for name in ("worker-0", "worker-1"):
        run = await programs.started(name)
        metrics = Path(run.environ["PROMETHEUS_MULTIPROC_DIR"])
        assert metrics.parent == gateway.folder
        assert os.listdir(metrics) == []
        await run.ready()
    await gateway.output.written.wait()
    assert stat.S_IMODE(os.stat(gateway.folder).st_mode) == 0o700
    _signal(signal.SIGTERM)
    _signal(signal.SIGTERM)
    await task
    with pytest.raises(FileNotFoundError):
        os.stat(gateway.folder)


async def test_the_gauges_of_a_program_that_died_are_forgotten(
    gateway: Up, programs: StandIns
) -> None:
    task = asyncio.create_task(gateway.run())
    first, second = await programs.ready("worker-0", "worker-1")
    await gateway.output.written.wait()
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
    _signal(signal.SIGTERM)
    _signal(signal.SIGTERM)
    await task


async def test_a_second_one_in_the_same_folder_is_told_who_is_there(
    gateway: Up, programs: StandIns
) -> None:
    task = asyncio.create_task(gateway.run())
    await programs.ready("worker-0", "worker-1")
    await gateway.output.written.wait()
    words = rf"runs there already \(process {os.getpid()}\).*GATEWAY_DATA_DIR"
    with pytest.raises(StartError, match=words):
        await asyncio.wait_for(gateway.run(), PATIENCE_S)
    _signal(signal.SIGTERM)
    _signal(signal.SIGTERM)
    await task


async def test_a_failed_start_frees_the_folder_and_the_port(
    gateway: Up, programs: StandIns, tmp_path: Path
) -> None:
    task = asyncio.create_task(gateway.run())
    first, second = [await programs.started(name) for name in ("worker-0", "worker-1")]
    first.tell("exit 1")
    assert await second.heard() == "SIGTERM"
    second.tell("exit 0")
    with pytest.raises(StartError, match="ended before it was ready"):
        await task
    with locked(tmp_path / "var"), held_port("127.0.0.1", gateway.port):
        pass
    assert gateway.output.getvalue() == ""


async def test_an_interrupted_start_is_told(gateway: Up, programs: StandIns) -> None:
    task = asyncio.create_task(gateway.run())
    first, second = [await programs.started(name) for name in ("worker-0", "worker-1")]
    _signal(signal.SIGINT)
    for run in (first, second):
        assert await run.heard() == "SIGTERM"
        run.tell("exit 0")
    with pytest.raises(StartError, match="interrupted before the gateway was ready"):
        await task


def test_the_lock_file_of_a_gateway_that_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("999999999\n")
    with locked(tmp_path):
        assert (tmp_path / LOCK_FILE).read_text() == f"{os.getpid()}\n"


def test_a_data_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StartError, match=r"file/var: .*storage\.data_dir"),
        locked(tmp_path / "file" / "var"),
    ):
        pass


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_where_somebody_listens_is_refused_even_if_they_would_share_it(
    shared: bool,
) -> None:
    with socket.socket() as other:
        if shared:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(StartError, match=f"127.0.0.1:{port}: .*in use.*GATEWAY_PORT"),
            held_port("127.0.0.1", port),
        ):
            pass


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StartError, match=r"192\.0\.2\.1:8080: .*GATEWAY_HOST"):
        with held_port("192.0.2.1", 8080):
            pass


def test_programs_may_listen_on_a_held_port_and_connections_reach_them() -> None:
    with held_port("127.0.0.1", 0) as port, socket.socket() as facade:
        facade.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        facade.bind(("127.0.0.1", port))
        facade.listen()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                facade.accept()[0].close()


def test_a_taken_port_is_told_with_the_settings_that_choose_another(tmp_path: Path) -> None:
    with held_port("127.0.0.1", 0) as port, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with (
            pytest.raises(StartError, match="GATEWAY_METRICS_PORT"),
            held_port("127.0.0.1", port, "GATEWAY_METRICS_PORT"),
        ):
            pass


def test_what_a_killed_run_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "run" / "metrics").mkdir(parents=True)
    (tmp_path / "run" / "0.sock").touch()
    with runtime_folder(tmp_path) as folder:
        assert folder == tmp_path / "run"
        assert list(folder.iterdir()) == []
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [10, 200])
def test_sockets_in_a_folder_with_a_long_path_have_a_short_one(tmp_path: Path, length: int) -> None:
    long = tmp_path / ("x" * length)
    long.mkdir()
    with short_path(long) as (folder, passed), socket.socket(socket.AF_UNIX) as one:
        assert len(str(folder / "63.sock")) <= 100
        assert len(passed) == (length > 100)
        one.bind(str(folder / "63.sock"))
        assert [each.name for each in long.iterdir()] == ["63.sock"]


def test_workers_share_the_ports_and_have_a_socket_each() -> None:
    workers = gateway_programs("127.0.0.1", 2)(Path("/run/gw"), 8080, 8081)
    assert [program.name for program in workers] == ["worker 0", "worker 1"]
    for number, worker in enumerate(workers):
        command = [sys.executable, "-P", "-m", "services.worker", "--host", "127.0.0.1"]
        command += ["--port", "8080", "--metrics-port", "8081"]
        assert list(worker.argv) == [*command, "--grpc", f"unix:/run/gw/{number}.sock"]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("fe80::1", "http://[fe80::1]:80"),
        ("gateway.example", "http://gateway.example:80"),
    ],
)
def test_the_address_shown_is_one_that_can_be_asked(host: str, url: str) -> None:
    assert base_url(host, 80) == url


def test_the_curl_line_works_as_pasted() -> None:
    *_, line = greeting("http://127.0.0.1:8080", METRICS, KEY, Path("var/dev.key")).splitlines()
    command = shlex.split(line)
    assert command[:2] == ["curl", "http://127.0.0.1:8080/beta/v1/chat/completions"]
    assert f"Authorization: Bearer {KEY}" in command
    assert "Content-Type: application/json" in command
    assert command[-2:] == ["-d", BODY]


def test_without_a_key_the_lines_make_one_and_use_it() -> None:
    *_, make, line = greeting("http://10.0.0.1:80", METRICS, "", Path("var/dev.key")).splitlines()
    script = f'gateway() {{ echo "{KEY}"; }}; curl() {{ printf "%s\\n" "$@"; }}\n{make}\n{line}'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert f"Authorization: Bearer {KEY}" in shown.splitlines()


def test_no_folder_of_the_working_directory_passes_for_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "__init__.py").write_text("raise SystemExit('not the gateway')")
    (worker,) = gateway_programs("127.0.0.1", 1)(tmp_path, 80, 81)
    shown = subprocess.run(
        [*worker.argv, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.search("--parent-pipe", shown.stdout)
