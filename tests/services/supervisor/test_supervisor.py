import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from services.supervisor import process
from services.supervisor import supervisor as supervisor_module
from services.supervisor.process import Program, StartError, backoff_s
from services.supervisor.supervisor import HURRY_AFTER_S, Supervisor
from tests.manual_clock import ManualClock
from tests.services.supervisor.stand_ins import PATIENCE_S, StandIn, StandIns, stand_ins

_SUPERVISOR = """
import os, sys
from services.supervisor.process import Program
from services.supervisor.supervisor import Supervisor
program = Program("worker-1", sys.argv[1:])
Supervisor([program], environ=os.environ, drain_s=0).run(print)
"""


@pytest.fixture
async def programs() -> AsyncIterator[StandIns]:
    async with stand_ins() as programs:
        yield programs


class Observer:
    """Records what a supervisor, which runs in a thread, reports."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.message = ""
        self.ended: asyncio.Queue[int] = asyncio.Queue()
        self.deaths: asyncio.Queue[tuple[int, bool]] = asyncio.Queue()
        self.wait_s = 0.0
        self._loop = asyncio.get_running_loop()

    def on_ready(self, message: str) -> None:
        self.message = message
        self._loop.call_soon_threadsafe(self.ready.set)

    def on_end(self, pid: int) -> None:
        self._loop.call_soon_threadsafe(self.ended.put_nowait, pid)

    def backoff_s(self, deaths: int, was_ready: bool) -> float:
        self._loop.call_soon_threadsafe(self.deaths.put_nowait, (deaths, was_ready))
        return self.wait_s


@pytest.fixture
async def observer() -> Observer:
    return Observer()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock of the times within which programs end; a test that moves it wakes the supervisor.

    By the real clock a stand-in that is not running for a while is killed before it reports.
    """
    made = ManualClock()
    monkeypatch.setattr(supervisor_module, "monotonic", made.monotonic)
    return made


Start = Callable[..., Supervisor]


@pytest.fixture
def supervise(programs: StandIns, observer: Observer) -> Iterator[Start]:
    """Return a function that makes a supervisor of programs with these names."""
    with ExitStack() as stack:

        def make(*names: str, drain_s: float = 60) -> Supervisor:
            made = Supervisor(
                [programs.program(name) for name in names],
                environ=os.environ,
                drain_s=drain_s,
                backoff_s=observer.backoff_s,
                on_end=observer.on_end,
            )
            stack.callback(made.close)
            return made

        yield make


@asynccontextmanager
async def running(
    supervisor: Supervisor, observer: Observer
) -> AsyncIterator["asyncio.Task[None]"]:
    """Run a supervisor in a thread; end it at once at the end of the context."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, supervisor.wake)
    task = asyncio.create_task(asyncio.to_thread(supervisor.run, observer.on_ready))
    try:
        yield task
    finally:
        supervisor.stop()
        supervisor.stop()
        _, late = await asyncio.wait([task], timeout=PATIENCE_S)
        loop.remove_signal_handler(signal.SIGCHLD)
        assert not late


async def _pong(stand_in: StandIn) -> None:
    """Check that the program received no signal: its next line answers this write."""
    await stand_in.write("")


async def test_the_supervisor_is_ready_once_every_program_is(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-0", "worker-1"), observer):
        (first,) = await programs.ready("worker-0")
        second = await programs.started("worker-1")
        await second.write("something else\n")
        await _pong(first)
        assert not observer.ready.is_set()
        await second.ready()
        await observer.ready.wait()


async def test_ready_may_come_in_pieces(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-1"), observer):
        second = await programs.started("worker-1")
        for piece in ("a line\nREA", "DY", "\nanother"):
            await second.write(piece)
        await observer.ready.wait()
        assert observer.message == ""


async def test_the_first_message_after_ready_is_passed_on(
    supervise: Start, programs: StandIns, observer: Observer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(supervise("worker-0", "worker-1", "worker-2"), observer):
        for name, line in [("worker-0", "READY"), ("worker-1", "READY a"), ("worker-2", "READY b")]:
            await (await programs.started(name)).write(f"{line}\n")
        await observer.ready.wait()
        assert observer.message == "a"
    assert "READY" not in capsys.readouterr().err


async def test_what_programs_write_goes_to_standard_error(
    supervise: Start, programs: StandIns, observer: Observer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(supervise("worker-1"), observer):
        second = await programs.started("worker-1")
        await second.write("one\ntwo\n")
        await second.ready()
        await observer.ready.wait()
    captured = capsys.readouterr()
    assert captured.err.splitlines()[:2] == ["one", "two"]
    assert "READY" not in captured.err
    assert captured.out == ""


async def test_a_log_on_a_full_disk_does_not_end_the_supervisor(
    supervise: Start, programs: StandIns, observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys.stderr, "write", write)
    async with running(supervise("worker-1"), observer):
        program = await programs.started("worker-1")
        await program.write("one\n")
        await program.ready()
        await observer.ready.wait()


async def test_a_program_that_dies_is_restarted_and_others_stay(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-0", "worker-1"), observer) as task:
        first, second = await programs.ready("worker-0", "worker-1")
        second.tell("die")
        again = await programs.started("worker-1")
        assert again.pid != second.pid
        assert await observer.ended.get() == second.pid
        await _pong(first)
        assert not task.done()


async def test_a_child_that_outlives_a_program_hides_no_death(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-1"), observer):
        (second,) = await programs.ready("worker-1")
        second.tell("leave 1")
        await programs.started("worker-1")


async def test_a_program_that_keeps_dying_waits_ever_longer(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-1"), observer):
        (second,) = await programs.ready("worker-1")
        for deaths in (1, 2, 3):
            second.tell("exit 1")
            assert await observer.deaths.get() == (deaths, deaths == 1)
            second = await programs.started("worker-1")


async def test_a_program_that_ran_for_long_is_restarted_at_once(
    supervise: Start, programs: StandIns, observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(supervise("worker-1"), observer):
        (second,) = await programs.ready("worker-1")
        second.tell("exit 1")
        assert await observer.deaths.get() == (1, True)
        second = await programs.started("worker-1")
        monkeypatch.setattr(process, "STEADY_S", 0.0)
        second.tell("exit 1")
        assert await observer.deaths.get() == (0, False)
        await programs.started("worker-1")


def test_the_wait_doubles_up_to_a_bound() -> None:
    for was_ready, most in ((False, 10), (True, 1)):
        assert backoff_s(0, was_ready) == 0
        assert [backoff_s(deaths, was_ready) for deaths in (1, 2, 3)] == [0.2, 0.4, 0.8]
        assert backoff_s(1000, was_ready) == most


async def test_a_program_that_dies_before_it_is_ready_ends_the_start(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-0", "worker-1"), observer) as task:
        first = await programs.started("worker-0")
        second = await programs.started("worker-1")
        second.tell("exit 3")
        assert await first.heard() == "SIGTERM"
        first.tell("exit 0")
        with pytest.raises(StartError, match=r"^worker-1: ended before .* \(exit status 3\)$"):
            await task
    assert not observer.ready.is_set()


async def test_a_failed_start_is_reported_in_the_programs_words(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-0"), observer) as task:
        program = await programs.started("worker-0")
        await program.write("FAILED the disk is full\n")
        program.tell("exit 1")
        with pytest.raises(StartError, match=r"^the disk is full$"):
            await task


def test_a_program_that_cannot_be_started_ends_the_start() -> None:
    program = Program("worker-0", ["/nowhere/python"])
    supervisor = Supervisor([program], environ={}, drain_s=0)
    with pytest.raises(StartError, match=r"worker-0: .*No such file"):
        supervisor.run(print)
    supervisor.close()


async def test_programs_that_are_not_ready_in_time_end_the_start(
    supervise: Start, observer: Observer
) -> None:
    supervisor = supervise("worker-0", "worker-1", drain_s=0)
    with pytest.raises(StartError, match=r"^worker-0, worker-1: not ready"):
        supervisor.run(observer.on_ready, ready_within_s=0)


async def test_all_programs_get_sigterm_together(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    supervisor = supervise("worker-0", "worker-1")
    async with running(supervisor, observer) as task:
        workers = await programs.ready("worker-0", "worker-1")
        await observer.ready.wait()
        supervisor.stop()
        for worker in workers:
            assert await worker.heard() == "SIGTERM"
        workers[0].tell("exit 0")
        assert await observer.ended.get() == workers[0].pid
        assert not task.done()
        workers[1].tell("exit 0")
        await task


async def test_a_program_that_crashes_while_ending_stays_down(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    supervisor = supervise("worker-1")
    async with running(supervisor, observer) as task:
        (second,) = await programs.ready("worker-1")
        await observer.ready.wait()
        supervisor.stop()
        assert await second.heard() == "SIGTERM"
        second.tell("die")
        await task
        assert observer.deaths.empty()


async def test_a_stop_before_a_delayed_restart_starts_nothing(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    observer.wait_s = 600
    supervisor = supervise("worker-1")
    async with running(supervisor, observer) as task:
        (second,) = await programs.ready("worker-1")
        await observer.ready.wait()
        second.tell("die")
        await observer.deaths.get()
        supervisor.stop()
        await task


async def test_a_stop_before_all_are_ready_ends_the_start_silently(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    supervisor = supervise("worker-1")
    async with running(supervisor, observer) as task:
        second = await programs.started("worker-1")
        supervisor.stop()
        assert await second.heard() == "SIGTERM"
        second.tell("exit 0")
        await task
    assert not observer.ready.is_set()


async def test_programs_past_their_time_to_drain_get_a_second_sigterm(
    supervise: Start, programs: StandIns, observer: Observer, clock: ManualClock
) -> None:
    supervisor = supervise("worker-0", "worker-1", drain_s=60)
    async with running(supervisor, observer) as task:
        workers = await programs.ready("worker-0", "worker-1")
        await observer.ready.wait()
        supervisor.stop()
        for run in workers:
            assert await run.heard() == "SIGTERM"
        clock.now_s += 60 + HURRY_AFTER_S
        supervisor.wake()
        for run in workers:
            assert await run.heard() == "SIGTERM"
            run.tell("exit 0")
        await task


async def test_a_program_that_ignores_sigterm_is_killed(
    supervise: Start,
    programs: StandIns,
    observer: Observer,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor_module, "MARGIN_S", 0.0)
    supervisor = supervise("worker-0", drain_s=60)
    async with running(supervisor, observer) as task:
        (first,) = await programs.ready("worker-0")
        await observer.ready.wait()
        supervisor.stop()
        assert await first.heard() == "SIGTERM"
        clock.now_s += 60 + HURRY_AFTER_S
        supervisor.wake()
        await task
        # It may have been told once more to hurry, before it was killed.
        assert await first.heard() in ("SIGTERM", "")
        assert await first.heard() == ""


async def test_a_second_stop_ends_everything_at_once(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    supervisor = supervise("worker-0", "worker-1")
    async with running(supervisor, observer) as task:
        first, _ = await programs.ready("worker-0", "worker-1")
        await observer.ready.wait()
        supervisor.stop()
        assert await first.heard() == "SIGTERM"
        supervisor.stop()
        await task


async def test_a_reload_waits_for_programs_that_are_not_ready(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    supervisor = supervise("worker-0", "worker-1")
    async with running(supervisor, observer):
        (first,) = await programs.ready("worker-0")
        second = await programs.started("worker-1")
        await second.write("")
        supervisor.reload()
        assert await first.heard() == "SIGHUP"
        await _pong(second)
        second.tell('write "READY\\n"')
        assert sorted([await second.heard(), await second.heard()]) == ["SIGHUP", "done"]


async def test_a_signal_of_the_terminal_does_not_reach_programs(
    supervise: Start, programs: StandIns, observer: Observer
) -> None:
    async with running(supervise("worker-1"), observer):
        second = await programs.started("worker-1")
        assert os.getpgid(second.pid) == second.pid != os.getpgrp()


async def test_programs_learn_that_their_supervisor_was_killed(programs: StandIns) -> None:
    argv = programs.program("worker-1").argv
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", _SUPERVISOR, *argv)
    (second,) = await programs.ready("worker-1")
    parent.send_signal(signal.SIGKILL)
    assert await second.heard() == "orphaned"
    await parent.wait()
