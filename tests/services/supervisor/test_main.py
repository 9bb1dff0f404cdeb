import os
import signal
import subprocess
import sys
from pathlib import Path

from services.common.settings import Limits, Server, Settings, Storage
from services.supervisor.config import Orders
from tests.e2e.processes import Running

# What the programs it starts need, and it does not.
HEAVY = frozenset(
    "aiohttp alembic anthropic google grpc openai prometheus_client pydantic sqlalchemy ssl typer "
    "uvloop".split()
)
LOADED = "print(*{name.partition('.')[0] for name in sys.modules})"


def test_orders_come_through_the_command_line_as_they_were() -> None:
    settings = Settings(
        server=Server(host="::1", port=8081, metrics_host="::", metrics_port=8082),
        storage=Storage(data_dir=Path("some where/-var")),
        limits=Limits(drain_s=0.5),
    )
    orders = Orders.of(settings, 3)
    assert orders == Orders("::1", 8081, "::", 8082, Path("some where/-var"), 0.5, 3, "")
    python, *words = orders.command()
    assert (python, words[:3]) == (sys.executable, ["-P", "-m", "services.supervisor"])
    assert Orders.read(words[3:]) == orders


def test_the_process_that_keeps_the_others_running_stays_small() -> None:
    # It cannot take such orders, so it ends with all loaded that it ever loads.
    code = (
        "import services.supervisor.__main__, sys; sys.argv[1:] = "
        "['', '1', '', '1', '/dev/null/x', '0', '1', '']; "
        f"services.supervisor.__main__.main(); {LOADED}"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "storage.data_dir" in shown.stderr
    assert HEAVY.isdisjoint(shown.stdout.split())
    assert "asyncio" in shown.stdout.split()


def test_an_interrupted_start_is_told_in_one_line(tmp_path: Path) -> None:
    orders = Orders("127.0.0.1", 0, "127.0.0.1", 0, tmp_path / "var", 0, 1, "")
    # Where it waits for the database to be prepared, which here takes for ever.
    fifo = tmp_path / "gateway.toml"
    os.mkfifo(fifo)
    environ = {"GATEWAY_CONFIG": str(fifo), "GATEWAY_DATA_DIR": str(orders.data_dir)}
    # Programs that a shell runs in the background ignore the signal, and so would the keeper.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    running = Running(orders.command(), environ=environ)
    signal.signal(signal.SIGINT, before)
    with running as keeper, fifo.open("w"):
        os.kill(keeper.pid, signal.SIGINT)
        keeper.wait_for("^gateway: interrupted before the gateway was ready$")
        assert "Traceback" not in keeper.output
