"""The set-up of a process before its libraries are imported."""

import os
import subprocess
import sys

import pytest

MINE = "-event_engine_fork"


def polling(module: str, **environ: str) -> list[str]:
    """Return whether gRPC is loaded when a program's own code begins, and how it is to poll."""
    return shown('"grpc" in sys.modules, os.environ["GRPC_EXPERIMENTS"]', module, **environ)


def shown(what: str, module: str = "services.__main__", **environ: str) -> list[str]:
    """Return the words that a program prints of itself as its own code begins."""
    code = f"""
import os, sys
import {module}
from services.common.process import lifetime as process
async def main(lifecycle):
    print({what})
process.run(main, None)
"""
    inherited = {name: value for name, value in os.environ.items() if name != "GRPC_EXPERIMENTS"}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.split()


@pytest.mark.parametrize("module", ["facade.__main__", "services.__main__"])
def test_grpc_is_imported_after_its_polling_is_set(module: str) -> None:
    # It reads that as it is imported, and never again.
    assert polling(module) == ["False", "-event_engine_client,-event_engine_listener"]


def test_what_the_operator_says_of_it_counts() -> None:
    assert polling("services.__main__", GRPC_EXPERIMENTS=MINE) == ["False", MINE]


def test_a_computing_thread_yields_to_the_event_loop() -> None:
    assert [float(one) for one in shown("sys.getswitchinterval()")] == [pytest.approx(0.0001)]
