"""The supervisor ends programs whose event loop does not run."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from services.supervisor import supervisor as supervisor_module
from services.supervisor.liveness import CHECKS, DUMP, KILL, NOTHING, RESUMED, Liveness, threads
from services.supervisor.process import Program, SupervisedProcess
from services.supervisor.supervisor import Supervisor
from tests.manual_clock import ManualClock
from tests.services.supervisor.stand_ins import StandIns, stand_ins
from tests.services.supervisor.test_supervisor import Observer, running
from tests.waiting import until

STALL_S = 20.0
STACKS = """\
Thread 0x02 (most recent call first):
  File "queue.py", line 5 in get
  File "pool.py", line 7 in work

Current thread 0x01 (most recent call first):
  File "sums.py", line 3 in add_up
"""
# The event loop beats, becomes ready, and then computes for ever in `add_up`.
_BUSY = """
import sys
from services.common.process import lifetime as process
def add_up():
    while True:
        pass
async def main(lifecycle):
    lifecycle.ready()
    add_up()
option = lambda name: int(sys.argv[sys.argv.index(name) + 1])
process.run(main, option("--parent-pipe"), option("--beat-pipe"))
"""


@pytest.fixture
def beats() -> Iterator[Liveness]:
    made = Liveness()
    yield made
    made.close_pipe()
    made.close()


def silent(beats: Liveness, checks: int) -> Sequence[str]:
    """Check so often without a beat."""
    return [beats.check() for _ in range(checks)]


def test_a_program_that_beats_is_left_alone(beats: Liveness) -> None:
    for _ in range(3):
        os.write(beats.pipe, b"\0\0")
        assert beats.check() == NOTHING
        assert set(silent(beats, CHECKS - 1)) == {NOTHING}


def test_a_silent_program_is_signalled_and_then_killed(beats: Liveness) -> None:
    os.write(beats.pipe, b"\0")
    assert silent(beats, CHECKS + 3) == [*[NOTHING] * CHECKS, DUMP, KILL, NOTHING]


def test_stacks_are_no_beat(beats: Liveness) -> None:
    assert silent(beats, CHECKS)[-1] == DUMP
    os.write(beats.pipe, STACKS.encode())
    assert (beats.check(), beats.stacks) == (KILL, STACKS)


def test_a_program_that_runs_on_is_not_killed(beats: Liveness) -> None:
    assert silent(beats, CHECKS)[-1] == DUMP
    os.write(beats.pipe, STACKS.encode() + b"\0")
    assert (beats.check(), beats.stacks) == (RESUMED, STACKS)
    assert silent(beats, CHECKS)[-2:] == [NOTHING, DUMP]


def test_the_event_loop_s_thread_comes_first() -> None:
    assert [*threads(STACKS)] == [
        ("Current thread 0x01", ['File "sums.py", line 3 in add_up']),
        ("Thread 0x02", ['File "queue.py", line 5 in get', 'File "pool.py", line 7 in work']),
    ]
    assert [*threads("")] == []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The supervisor's clock of its checks."""
    made = ManualClock()
    monkeypatch.setattr(supervisor_module, "monotonic", made.monotonic)
    return made


class Checks:
    """Makes a supervisor with programs, one at a time, check whether they beat."""

    def __init__(self, clock: ManualClock) -> None:
        self.supervisor: Supervisor
        self.done: asyncio.Queue[None] = asyncio.Queue()
        self._clock = clock

    async def pass_by(self, checks: int, *, late_s: float = 0) -> None:
        for _ in range(checks):
            self._clock.now_s += STALL_S / CHECKS + late_s
            self.supervisor.wake()
            await asyncio.wait_for(self.done.get(), 60)


@pytest.fixture
async def programs() -> AsyncIterator[StandIns]:
    async with stand_ins() as programs:
        yield programs


@pytest.fixture
async def observer() -> Observer:
    return Observer()


@pytest.fixture
async def checks(
    clock: ManualClock, programs: StandIns, observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Checks]:
    """Run a supervisor of one stand-in, and return what makes it check."""
    made = Checks(clock)
    loop = asyncio.get_running_loop()
    check = SupervisedProcess.check_liveness

    def report(process: SupervisedProcess) -> None:
        check(process)
        loop.call_soon_threadsafe(made.done.put_nowait, None)

    monkeypatch.setattr(SupervisedProcess, "check_liveness", report)
    made.supervisor = Supervisor(
        [programs.program("worker-0")],
        environ=os.environ,
        drain_s=60,
        stall_s=STALL_S,
        backoff_s=observer.backoff_s,
        on_end=observer.on_end,
    )
    async with running(made.supervisor, observer):
        yield made
    made.supervisor.close()


async def test_a_stalled_program_is_replaced_and_its_stacks_logged(
    checks: Checks, programs: StandIns, observer: Observer, caplog: pytest.LogCaptureFixture
) -> None:
    (stalled,) = await programs.ready("worker-0")
    await observer.ready.wait()
    await stalled.beat()
    await checks.pass_by(1 + CHECKS)
    assert await stalled.heard() == "SIGUSR1"
    await stalled.beat(STACKS)
    await checks.pass_by(1)
    assert await observer.ended.get() == stalled.pid
    (again,) = await programs.ready("worker-0")
    assert again.pid != stalled.pid
    levels = {record.levelno for record in caplog.records}
    assert levels == {logging.ERROR}
    first, loop_thread, other_thread, end = caplog.records
    assert first.getMessage() == "the event loop of a program has stalled; it is killed"
    assert vars(loop_thread)["frames"] == ['File "sums.py", line 3 in add_up']
    assert vars(other_thread)["stack_of"] == "Thread 0x02"
    assert vars(end)["end"] == "its event loop had stalled"
    # The new process has the whole time.
    await checks.pass_by(CHECKS - 1)
    await again.write("")


async def test_a_program_that_resumes_is_not_replaced(
    checks: Checks, programs: StandIns, observer: Observer, caplog: pytest.LogCaptureFixture
) -> None:
    (program,) = await programs.ready("worker-0")
    await observer.ready.wait()
    await checks.pass_by(CHECKS)
    assert await program.heard() == "SIGUSR1"
    await program.beat(STACKS + "\0")
    await checks.pass_by(1 + CHECKS - 1)
    await program.write("")
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3


async def test_a_supervisor_that_was_stopped_kills_nothing(
    checks: Checks, programs: StandIns, observer: Observer
) -> None:
    (program,) = await programs.ready("worker-0")
    await observer.ready.wait()
    await checks.pass_by(CHECKS - 1, late_s=86_400)
    await program.write("")
    await program.beat()
    await checks.pass_by(CHECKS, late_s=86_400)
    await program.write("")


async def test_a_program_that_is_not_ready_or_ending_need_not_beat(
    checks: Checks, programs: StandIns, observer: Observer
) -> None:
    program = await programs.started("worker-0")
    await checks.pass_by(CHECKS + 2)
    await program.ready()
    await observer.ready.wait()
    checks.supervisor.stop()
    assert await program.heard() == "SIGTERM"
    await checks.pass_by(CHECKS + 2)
    await program.write("")


async def test_a_stack_is_logged_while_the_loop_computes(
    observer: Observer, caplog: pytest.LogCaptureFixture
) -> None:
    program = Program("worker-0", [sys.executable, "-c", _BUSY])
    # A short time: a process that had no time to write its stacks is followed by another one.
    supervisor = Supervisor([program], environ=os.environ, drain_s=0, stall_s=2)

    def frames() -> str:
        return json.dumps([vars(record).get("frames") for record in caplog.records])

    async with running(supervisor, observer):
        await until(lambda: "in add_up" in frames())
    supervisor.close()
