"""Forked processes have what executed ones have."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import Running
from tests.forked import fork

# Descriptors beyond the standard ones, without that which lists them; what the system does with
# signals; and that the process has one thread.
SHOW = """
import json, os, sys
from pathlib import Path
status = dict(
    line.split(":\\t") for line in Path("/proc/self/status").read_text().splitlines()
)
print(json.dumps({
    "arguments": sys.argv,
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[3:-1],
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "group": os.getpgrp(),
    "mask": os.umask(0),
    "shown": Path("/proc/self/cmdline").read_text().rstrip("\\0").split("\\0")[1:],
    "signals": [status[name] for name in ("SigBlk", "SigIgn", "SigCgt")],
    "threads": status["Threads"],
}))
"""


def shown(folder: Path, *, is_forked: bool) -> dict[str, object]:
    command = [sys.executable, "-c", SHOW, "one", "two words", ""]
    environ = {"ONLY_HERE": "yes", "EMPTY": ""}
    with Running(command, environ=environ, folder=folder, is_forked=is_forked) as process:
        values: dict[str, object] = json.loads(process.wait_for("^{.*}$")[0])
    return values


def test_a_forked_process_is_as_an_executed_one(tmp_path: Path) -> None:
    executed = shown(tmp_path, is_forked=False)
    assert shown(tmp_path, is_forked=True) == executed
    assert executed["folder"] == str(tmp_path)


@pytest.mark.parametrize(
    "code", ["raise SystemExit(3)", "raise ValueError", "import os; os._exit(9)"]
)
def test_its_exit_status_is_that_of_the_program(code: str) -> None:
    statuses = []
    for is_forked in (False, True):
        with Running(
            [sys.executable, "-c", f"print('it runs', flush=True); {code}"], is_forked=is_forked
        ) as process:
            with pytest.raises(AssertionError, match="it runs"):
                process.wait_for("what it never writes")
            statuses.append(process.stop())
    assert statuses[0] == statuses[1] != 0


async def test_a_killed_process_is_gone_with_its_output() -> None:
    code = "print('here', flush=True); import time; time.sleep(600)"
    process = await fork(sys.executable, "-c", code)
    assert await process.stdout.readline() == b"here\n"
    assert process.returncode is None
    process.send_signal(signal.SIGKILL)
    assert await process.communicate() == (b"", None)
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


async def test_what_is_written_to_it_is_read() -> None:
    code = "import sys; print(sys.stdin.read()[::-1])"
    processes = [await fork(sys.executable, "-c", code) for _ in range(3)]
    answers = await asyncio.gather(
        *(one.communicate(b"%d!" % number) for number, one in enumerate(processes))
    )
    assert [answer for answer, _ in answers] == [b"!0\n", b"!1\n", b"!2\n"]
    assert [one.returncode for one in processes] == [0] * 3
