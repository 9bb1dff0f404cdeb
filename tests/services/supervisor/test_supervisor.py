import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from services.supervisor import supervisor as module
from services.supervisor.supervisor import Program, StartError, Supervisor, backoff_s
from tests.services.supervisor.stand_ins import PATIENCE_S, StandIn, StandIns, stand_ins

_PARENT = """
import asyncio, os, sys
from services.supervisor.supervisor import Program, Supervisor
program = Program("worker-1", sys.argv[1:])
asyncio.run(Supervisor([program], environ=os.environ, drain_s=0).run(print))
"""


@pytest.fixture
async def programs() -> AsyncIterator[StandIns]:
    async with stand_ins() as programs:
        yield programs


class Notes:
    """What a supervisor tells while it runs."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.word = ""
        self.ended: asyncio.Queue[int] = asyncio.Queue()
        self.deaths: asyncio.Queue[int] = asyncio.Queue()
        self.wait_s = 0.0

    def on_ready(self, word: str) -> None:
        self.word = word
        self.ready.set()

    def backoff_s(self, deaths: int) -> float:
        self.deaths.put_nowait(deaths)
        return self.wait_s


@pytest.fixture
def notes() -> Notes:
    return Notes()


Start = Callable[..., Supervisor]


@pytest.fixture
def supervise(programs: StandIns, notes: Notes) -> Start:
    """Return what makes a supervisor of programs of these names."""

    def make(*names: str, drain_s: float = 60) -> Supervisor:
        return Supervisor(
            [programs.program(name) for name in names],
            environ=os.environ,
            drain_s=drain_s,
            backoff_s=notes.backoff_s,
            on_end=notes.ended.put_nowait,
        )

    return make


@asynccontextmanager
async def running(supervisor: Supervisor, notes: Notes) -> AsyncIterator["asyncio.Task[None]"]:
    """Run a supervisor; end it at once at the end of the context."""
    task = asyncio.create_task(supervisor.run(notes.on_ready))
    try:
        yield task
    finally:
        supervisor.stop()
        supervisor.stop()
        _, late = await asyncio.wait([task], timeout=PATIENCE_S)
        task.cancel()
        assert not late


async def _pong(stand_in: StandIn) -> None:
    """Make sure that nothing has come since: what it says next answers this."""
    await stand_in.write("")


async def test_it_is_ready_once_every_program_is(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("worker-0", "worker-1"), notes):
        (first,) = await programs.ready("worker-0")
        second = await programs.started("worker-1")
        await second.write("something else\n")
        await _pong(first)
        assert not notes.ready.is_set()
        await second.ready()
        await notes.ready.wait()


async def test_ready_may_come_in_pieces(supervise: Start, programs: StandIns, notes: Notes) -> None:
    async with running(supervise("worker-1"), notes):
        second = await programs.started("worker-1")
        for piece in ("a line\nREA", "DY", "\nanother"):
            await second.write(piece)
        await notes.ready.wait()
        assert notes.word == ""


async def test_the_first_word_said_with_ready_is_handed_on(
    supervise: Start, programs: StandIns, notes: Notes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(supervise("worker-0", "worker-1", "worker-2"), notes):
        for name, line in [("worker-0", "READY"), ("worker-1", "READY a"), ("worker-2", "READY b")]:
            await (await programs.started(name)).write(f"{line}\n")
        await notes.ready.wait()
        assert notes.word == "a"
    assert "READY" not in capsys.readouterr().err


async def test_what_programs_write_goes_to_standard_error(
    supervise: Start, programs: StandIns, notes: Notes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(supervise("worker-1"), notes):
        second = await programs.started("worker-1")
        await second.write("one\ntwo\n")
        await second.ready()
        await notes.ready.wait()
    captured = capsys.readouterr()
    assert captured.err.splitlines()[:2] == ["one", "two"]
    assert "READY" not in captured.err
    assert captured.out == ""


async def test_a_program_that_dies_is_started_again_and_the_others_stay(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("worker-0", "worker-1"), notes) as task:
        first, second = await programs.ready("worker-0", "worker-1")
        second.tell("die")
        again = await programs.started("worker-1")
        assert again.pid != second.pid
        assert await notes.ended.get() == second.pid
        await _pong(first)
        assert not task.done()


async def test_what_a_dead_program_leaves_behind_does_not_hide_its_death(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("worker-1"), notes):
        (second,) = await programs.ready("worker-1")
        second.tell("leave 1")
        await programs.started("worker-1")


async def test_a_program_that_keeps_dying_waits_ever_longer(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("worker-1"), notes):
        (second,) = await programs.ready("worker-1")
        for deaths in (1, 2, 3):
            second.tell("exit 1")
            assert await notes.deaths.get() == deaths
            second = await programs.started("worker-1")


async def test_a_program_that_ran_for_long_starts_again_at_once(
    supervise: Start, programs: StandIns, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(supervise("worker-1"), notes):
        (second,) = await programs.ready("worker-1")
        second.tell("exit 1")
        assert await notes.deaths.get() == 1
        second = await programs.started("worker-1")
        monkeypatch.setattr(module, "STEADY_S", 0.0)
        second.tell("exit 1")
        assert await notes.deaths.get() == 0
        await programs.started("worker-1")


def test_the_wait_doubles_up_to_a_bound() -> None:
    assert backoff_s(0) == 0
    assert [backoff_s(deaths) for deaths in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert backoff_s(1000) == 10


async def test_a_program_that_dies_before_it_is_ready_ends_the_start(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("worker-0", "worker-1"), notes) as task:
        first = await programs.started("worker-0")
        second = await programs.started("worker-1")
        second.tell("exit 3")
        assert await first.heard() == "SIGTERM"
        first.tell("exit 0")
        with pytest.raises(StartError, match=r"^worker-1: ended before .* \(exit status 3\)$"):
            await task
    assert not notes.ready.is_set()


async def test_why_a_program_does_not_come_up_is_told_in_its_own_words(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("worker-0"), notes) as task:
        program = await programs.started("worker-0")
        await program.write("FAILED the disk is full\n")
        program.tell("exit 1")
        with pytest.raises(StartError, match=r"^the disk is full$"):
            await task


async def test_a_program_that_cannot_be_started_ends_the_start() -> None:
    program = Program("worker-0", ["/nowhere/python"])
    with pytest.raises(StartError, match=r"worker-0: .*No such file"):
        await Supervisor([program], environ={}, drain_s=0).run(print)


async def test_programs_that_are_not_ready_in_time_end_the_start(supervise: Start) -> None:
    start = supervise("worker-0", "worker-1", drain_s=0).run(print, ready_within_s=0)
    with pytest.raises(StartError, match=r"^worker-0, worker-1: not ready"):
        await start


async def test_all_programs_are_told_to_end_together(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("worker-0", "worker-1")
    async with running(supervisor, notes) as task:
        workers = await programs.ready("worker-0", "worker-1")
        await notes.ready.wait()
        supervisor.stop()
        for worker in workers:
            assert await worker.heard() == "SIGTERM"
        workers[0].tell("exit 0")
        assert await notes.ended.get() == workers[0].pid
        assert not task.done()
        workers[1].tell("exit 0")
        await task


async def test_a_program_that_crashes_while_it_ends_is_not_started_again(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("worker-1")
    async with running(supervisor, notes) as task:
        (second,) = await programs.ready("worker-1")
        await notes.ready.wait()
        supervisor.stop()
        assert await second.heard() == "SIGTERM"
        second.tell("die")
        await task
        assert notes.deaths.empty()


async def test_a_stop_while_a_start_is_put_off_starts_nothing(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    notes.wait_s = 600
    supervisor = supervise("worker-1")
    async with running(supervisor, notes) as task:
        (second,) = await programs.ready("worker-1")
        await notes.ready.wait()
        second.tell("die")
        await notes.deaths.get()
        supervisor.stop()
        await task


async def test_a_stop_before_all_are_ready_says_nothing_and_ends(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("worker-1")
    async with running(supervisor, notes) as task:
        second = await programs.started("worker-1")
        supervisor.stop()
        assert await second.heard() == "SIGTERM"
        second.tell("exit 0")
        await task
    assert not notes.ready.is_set()


async def test_programs_whose_time_to_drain_is_over_are_told_to_hurry(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("worker-0", "worker-1", drain_s=0.05)
    async with running(supervisor, notes) as task:
        workers = await programs.ready("worker-0", "worker-1")
        await notes.ready.wait()
        supervisor.stop()
        for run in workers:
            for _ in range(2):
                assert await run.heard() == "SIGTERM"
            run.tell("exit 0")
        await task


async def test_a_program_that_outstays_its_time_is_killed(
    supervise: Start, programs: StandIns, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MARGIN_S", 0.0)
    supervisor = supervise("worker-0", drain_s=0.05)
    async with running(supervisor, notes) as task:
        (first,) = await programs.ready("worker-0")
        await notes.ready.wait()
        supervisor.stop()
        assert await first.heard() == "SIGTERM"
        await task
        # It may have been told once more to hurry, before it was killed.
        assert await first.heard() in ("SIGTERM", "")
        assert await first.heard() == ""


async def test_a_second_stop_ends_everything_at_once(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("worker-0", "worker-1")
    async with running(supervisor, notes) as task:
        first, _ = await programs.ready("worker-0", "worker-1")
        await notes.ready.wait()
        supervisor.stop()
        assert await first.heard() == "SIGTERM"
        supervisor.stop()
        await task


async def test_a_reload_reaches_who_is_ready_now_and_who_is_not_later(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("worker-0", "worker-1")
    async with running(supervisor, notes):
        (first,) = await programs.ready("worker-0")
        second = await programs.started("worker-1")
        await second.write("")
        supervisor.reload()
        assert await first.heard() == "SIGHUP"
        await _pong(second)
        second.tell('write "READY\\n"')
        assert sorted([await second.heard(), await second.heard()]) == ["SIGHUP", "done"]


async def test_a_signal_of_the_terminal_does_not_reach_programs(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("worker-1"), notes):
        second = await programs.started("worker-1")
        assert os.getpgid(second.pid) == second.pid != os.getpgrp()


async def test_programs_learn_that_their_supervisor_was_killed(programs: StandIns) -> None:
    argv = programs.program("worker-1").argv
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", _PARENT, *argv)
    (second,) = await programs.ready("worker-1")
    parent.send_signal(signal.SIGKILL)
    assert await second.heard() == "orphaned"
    await parent.wait()
