import os
import signal
import subprocess
import sys
from pathlib import Path

from services.supervisor.config import SupervisorConfig
from tests.e2e.processes import Running

# Modules that the workers need and the supervisor does not; among them large ones of Python's.
HEAVY = frozenset(
    "aiohttp alembic anthropic asyncio dataclasses google grpc json logging openai orjson pathlib "
    "prometheus_client pydantic re shutil sqlalchemy ssl subprocess threading typer typing "
    "uvloop".split()
)
LOADED = "print(*{name.partition('.')[0] for name in sys.modules})"


def _config(data_dir: str) -> SupervisorConfig:
    return SupervisorConfig(
        host="127.0.0.1",
        port=0,
        metrics_host="::1",
        metrics_port=8082,
        data_dir=data_dir,
        drain_s=0.5,
        workers=3,
        grpc="",
        stall_s=7.5,
    )


def test_a_config_survives_its_command_line() -> None:
    config = _config("some where/-var")
    python, *words = config.command()
    options = ["-P", "-X", "no_debug_ranges", "-m", "services.supervisor"]
    assert (python, words[:5]) == (sys.executable, options)
    assert vars(SupervisorConfig.parse(words[5:])) == vars(config)


def test_the_supervisor_imports_no_heavy_module() -> None:
    # The data folder cannot be used, so the call ends with all imported that a start needs.
    code = (
        "import services.supervisor.__main__, sys; sys.argv[1:] = "
        "['', '1', '', '1', '/dev/null/x', '0', '1', '', 'http', '0', 'True']; "
        f"services.supervisor.__main__.main(); {LOADED}"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "storage.data_dir" in shown.stderr
    assert HEAVY.isdisjoint(shown.stdout.split())
    assert "signal" in shown.stdout.split()


def test_an_interrupted_start_is_reported_in_one_line(tmp_path: Path) -> None:
    config = _config(str(tmp_path / "var"))
    config.metrics_host, config.metrics_port, config.workers = "127.0.0.1", 0, 1
    # The worker waits for its settings, which never come.
    fifo = tmp_path / "gateway.toml"
    os.mkfifo(fifo)
    environ = {"GATEWAY_CONFIG": str(fifo), "GATEWAY_DATA_DIR": config.data_dir}
    # Programs that a shell runs in the background ignore SIGINT, and so would the supervisor.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    running = Running(config.command(), environ=environ)
    signal.signal(signal.SIGINT, before)
    with running as supervisor, fifo.open("w"):
        os.kill(supervisor.pid, signal.SIGINT)
        supervisor.wait_for("^gateway: interrupted before the gateway was ready$")
        assert "Traceback" not in supervisor.output
