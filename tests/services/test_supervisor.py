import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from services import supervisor as module
from services.supervisor import Program, StartError, Supervisor, backoff_s
from tests.services.stand_ins import PATIENCE_S, StandIn, StandIns, stand_ins

_PARENT = """
import asyncio, os, sys
from services.supervisor import Program, Supervisor
program = Program("services", sys.argv[1:])
asyncio.run(Supervisor([[program]], environ=os.environ, drain_s=0).run(lambda: None))
"""


@pytest.fixture
async def programs() -> AsyncIterator[StandIns]:
    async with stand_ins() as programs:
        yield programs


class Notes:
    """What a supervisor tells while it runs."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.ended: asyncio.Queue[int] = asyncio.Queue()
        self.deaths: asyncio.Queue[int] = asyncio.Queue()
        self.wait_s = 0.0

    def backoff_s(self, deaths: int) -> float:
        self.deaths.put_nowait(deaths)
        return self.wait_s


@pytest.fixture
def notes() -> Notes:
    return Notes()


Start = Callable[..., Supervisor]


@pytest.fixture
def supervise(programs: StandIns, notes: Notes) -> Start:
    """Gives a supervisor of stages of programs, each stage named as words in a string."""

    def make(*stages: str, drain_s: float = 60) -> Supervisor:
        return Supervisor(
            [[programs.program(name) for name in stage.split()] for stage in stages],
            environ=os.environ,
            drain_s=drain_s,
            backoff_s=notes.backoff_s,
            on_end=notes.ended.put_nowait,
        )

    return make


@asynccontextmanager
async def running(supervisor: Supervisor, notes: Notes) -> AsyncIterator["asyncio.Task[None]"]:
    """Run a supervisor; end it at once at the end of the context."""
    task = asyncio.create_task(supervisor.run(notes.ready.set))
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
    async with running(supervise("facade", "services"), notes):
        (facade,) = await programs.ready("facade")
        services = await programs.started("services")
        await services.write("something else\n")
        await _pong(facade)
        assert not notes.ready.is_set()
        await services.ready()
        await notes.ready.wait()


async def test_ready_may_come_in_pieces(supervise: Start, programs: StandIns, notes: Notes) -> None:
    async with running(supervise("services"), notes):
        services = await programs.started("services")
        for piece in ("a line\nREA", "DY", "\nanother"):
            await services.write(piece)
        await notes.ready.wait()


async def test_what_programs_write_goes_to_standard_error(
    supervise: Start, programs: StandIns, notes: Notes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(supervise("services"), notes):
        services = await programs.started("services")
        await services.write("one\ntwo\n")
        await services.ready()
        await notes.ready.wait()
    captured = capsys.readouterr()
    assert captured.err.splitlines()[:2] == ["one", "two"]
    assert "READY" not in captured.err
    assert captured.out == ""


async def test_a_program_that_dies_is_started_again_and_the_others_stay(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("facade", "services"), notes) as task:
        facade, services = await programs.ready("facade", "services")
        services.tell("die")
        again = await programs.started("services")
        assert again.pid != services.pid
        assert await notes.ended.get() == services.pid
        await _pong(facade)
        assert not task.done()


async def test_what_a_dead_program_leaves_behind_does_not_hide_its_death(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("services"), notes):
        (services,) = await programs.ready("services")
        services.tell("leave 1")
        await programs.started("services")


async def test_a_program_that_keeps_dying_waits_ever_longer(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("services"), notes):
        (services,) = await programs.ready("services")
        for deaths in (1, 2, 3):
            services.tell("exit 1")
            assert await notes.deaths.get() == deaths
            services = await programs.started("services")


async def test_a_program_that_ran_for_long_starts_again_at_once(
    supervise: Start, programs: StandIns, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(supervise("services"), notes):
        (services,) = await programs.ready("services")
        services.tell("exit 1")
        assert await notes.deaths.get() == 1
        services = await programs.started("services")
        monkeypatch.setattr(module, "STEADY_S", 0.0)
        services.tell("exit 1")
        assert await notes.deaths.get() == 0
        await programs.started("services")


def test_the_wait_doubles_up_to_a_bound() -> None:
    assert backoff_s(0) == 0
    assert [backoff_s(deaths) for deaths in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert backoff_s(1000) == 10


async def test_a_program_that_dies_before_it_is_ready_ends_the_start(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("facade", "services"), notes) as task:
        facade = await programs.started("facade")
        services = await programs.started("services")
        services.tell("exit 3")
        assert await facade.heard() == "SIGTERM"
        facade.tell("exit 0")
        with pytest.raises(StartError, match=r"^services: ended before .* \(exit status 3\)$"):
            await task
    assert not notes.ready.is_set()


async def test_a_program_that_cannot_be_started_ends_the_start() -> None:
    program = Program("facade", ["/nowhere/python"])
    with pytest.raises(StartError, match=r"facade: .*No such file"):
        await Supervisor([[program]], environ={}, drain_s=0).run(lambda: None)


async def test_programs_that_are_not_ready_in_time_end_the_start(supervise: Start) -> None:
    start = supervise("facade", "services", drain_s=0).run(lambda: None, ready_within_s=0)
    with pytest.raises(StartError, match=r"^facade, services: not ready"):
        await start


async def test_each_stage_ends_before_the_next_is_told_to(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("facade-0 facade-1", "services")
    async with running(supervisor, notes) as task:
        *facades, services = await programs.ready("facade-0", "facade-1", "services")
        await notes.ready.wait()
        supervisor.stop()
        for facade in facades:
            assert await facade.heard() == "SIGTERM"
        facades[0].tell("exit 0")
        assert await notes.ended.get() == facades[0].pid
        await _pong(services)
        facades[1].tell("exit 0")
        assert await services.heard() == "SIGTERM"
        services.tell("exit 0")
        await task


async def test_a_program_that_crashes_while_it_ends_is_not_started_again(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("services")
    async with running(supervisor, notes) as task:
        (services,) = await programs.ready("services")
        await notes.ready.wait()
        supervisor.stop()
        assert await services.heard() == "SIGTERM"
        services.tell("die")
        await task
        assert notes.deaths.empty()


async def test_a_stop_while_a_start_is_put_off_starts_nothing(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    notes.wait_s = 600
    supervisor = supervise("services")
    async with running(supervisor, notes) as task:
        (services,) = await programs.ready("services")
        await notes.ready.wait()
        services.tell("die")
        await notes.deaths.get()
        supervisor.stop()
        await task


async def test_a_stop_before_all_are_ready_says_nothing_and_ends(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("services")
    async with running(supervisor, notes) as task:
        services = await programs.started("services")
        supervisor.stop()
        assert await services.heard() == "SIGTERM"
        services.tell("exit 0")
        await task
    assert not notes.ready.is_set()


async def test_the_stages_share_the_time_to_drain(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("facade", "services", drain_s=0.05)
    async with running(supervisor, notes) as task:
        facade, services = await programs.ready("facade", "services")
        await notes.ready.wait()
        supervisor.stop()
        # A program whose time is over is told to hurry, whichever stage used it up.
        for run in (facade, services):
            for _ in range(2):
                assert await run.heard() == "SIGTERM"
            run.tell("exit 0")
        await task


async def test_a_program_that_outstays_its_time_is_killed(
    supervise: Start, programs: StandIns, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MARGIN_S", 0.0)
    supervisor = supervise("facade", drain_s=0.05)
    async with running(supervisor, notes) as task:
        (facade,) = await programs.ready("facade")
        await notes.ready.wait()
        supervisor.stop()
        assert await facade.heard() == "SIGTERM"
        await task
        # It may have been told once more to hurry, before it was killed.
        assert await facade.heard() in ("SIGTERM", "")
        assert await facade.heard() == ""


async def test_a_second_stop_ends_everything_at_once(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("facade", "services")
    async with running(supervisor, notes) as task:
        facade, _ = await programs.ready("facade", "services")
        await notes.ready.wait()
        supervisor.stop()
        assert await facade.heard() == "SIGTERM"
        supervisor.stop()
        await task


async def test_a_reload_reaches_who_is_ready_now_and_who_is_not_later(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    supervisor = supervise("facade services")
    async with running(supervisor, notes):
        (facade,) = await programs.ready("facade")
        services = await programs.started("services")
        await services.write("")
        supervisor.reload()
        assert await facade.heard() == "SIGHUP"
        await _pong(services)
        services.tell('write "READY\\n"')
        assert sorted([await services.heard(), await services.heard()]) == ["SIGHUP", "done"]


async def test_a_signal_of_the_terminal_does_not_reach_programs(
    supervise: Start, programs: StandIns, notes: Notes
) -> None:
    async with running(supervise("services"), notes):
        services = await programs.started("services")
        assert os.getpgid(services.pid) == services.pid != os.getpgrp()


async def test_programs_learn_that_their_supervisor_was_killed(programs: StandIns) -> None:
    argv = programs.program("services").argv
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", _PARENT, *argv)
    (services,) = await programs.ready("services")
    parent.send_signal(signal.SIGKILL)
    assert await services.heard() == "orphaned"
    await parent.wait()
