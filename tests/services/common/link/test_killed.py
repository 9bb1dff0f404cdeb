"""`kill -9` of the process at either end of a link, with calls of every kind in flight."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from services.accounts.repository import AccountRepository
from services.common.channels import open_channel
from services.common.database import migrate, open_engine
from services.common.settings import Storage
from tests.e2e.processes import ROOT
from tests.faults import acts
from tests.faults.upstream import FaultUpstream, fault_upstream
from tests.services.common.link.caller import MAX_MESSAGE, Caller
from tests.services.common.link.carriers import soon
from tests.services.common.link.test_left_behind import held
from tests.services.processes import serving
from tests.waiting import until

CODE = grpc.StatusCode
OF_EACH = 8


@dataclass
class Setting:
    """Data that processes serve, and the provider that they ask."""

    folder: Path
    key: str
    upstream: FaultUpstream

    def serving(self):
        settings = (
            f'[providers.openai]\nkind = "openai"\nbase_url = "{self.upstream.url}/v1"\n'
            'api_key = "k"\n'
        )
        return serving(self.folder, ["inference", "memory"], settings=settings)

    async def until_asked(self) -> None:
        """Wait until the provider has every call that it is to leave without an answer."""
        await until(lambda: self.upstream.busy == 2 * OF_EACH)


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    # A socket's path is short.
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        engine = open_engine(Storage(data_dir=folder))
        await migrate(engine)
        key = await AccountRepository(engine).create_key("ada", plan="enterprise")
        await engine.dispose()
        async with fault_upstream() as upstream:
            upstream.plays("quick", acts.answers())
            upstream.plays("silent", acts.says_nothing())
            upstream.plays("half", acts.stalls())
            yield Setting(folder, key, upstream)


async def talk(caller: Caller) -> CODE:
    """Ask one thing after the other until one fails; give how."""
    while True:
        try:
            await caller.ask("quick")
        except grpc.aio.AioRpcError as error:
            return error.code()


async def kill_servers(setting: Setting, times: int) -> None:
    at_first, tasks = held(), len(asyncio.all_tasks())
    async with open_channel(f"unix:{setting.folder}/s", max_message=MAX_MESSAGE) as channel:
        next_one = asyncio.create_task(Caller(channel, setting.key).ask("quick", is_patient=True))
        for _ in range(times):
            async with setting.serving() as (process, _):
                assert (await soon(next_one)).choices
                caller = Caller(channel, setting.key)
                await soon(caller.hold(OF_EACH))
                await setting.until_asked()
                talking = [asyncio.create_task(talk(caller)) for _ in range(4)]
                # Its end is in the middle of what they say.
                assert (await soon(caller.ask("quick"))).choices
                process.kill()
                await process.wait()
                assert await soon(caller.outcomes()) == {CODE.UNAVAILABLE}
                assert set(await soon(asyncio.gather(*talking))) == {CODE.UNAVAILABLE}
                # It waits for the server that comes next, while others are told at once.
                next_one = asyncio.create_task(caller.ask("quick", is_patient=True))
                assert await soon(talk(caller)) is CODE.UNAVAILABLE
        next_one.cancel()
        del caller, talking, next_one
        await until(lambda: held() <= at_first)
    await until(lambda: len(asyncio.all_tasks()) <= tasks)


async def kill_callers(setting: Setting, times: int) -> None:
    async with (
        setting.serving() as (_, address),
        open_channel(address, max_message=MAX_MESSAGE) as channel,
    ):
        for _ in range(times):
            async with calling(setting, address) as process:
                await setting.until_asked()
                process.kill()
                await process.wait()
            await until(lambda: not setting.upstream.busy)
            # A turn of a memory is free at once for who comes next, on whatever link.
            after = Caller(channel, setting.key)
            await soon(after.hold(OF_EACH, "held"))
            await setting.until_asked()
            after.let_go()
            await until(lambda: not setting.upstream.busy)


@asynccontextmanager
async def calling(setting: Setting, address: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process that holds calls, from when all are in flight."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.services.common.link.caller", address, setting.key, str(OF_EACH)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await soon(process.stdout.readline()) == b"READY\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_calls_end_when_their_server_is_killed_and_the_next_ones_are_served(setting):
    await kill_servers(setting, 3)


async def test_a_server_drops_the_calls_of_a_killed_caller(setting):
    await kill_callers(setting, 3)


@pytest.mark.soak
async def test_no_call_hangs_however_often_its_server_is_killed(setting):
    await kill_servers(setting, 60)


@pytest.mark.soak
async def test_no_call_is_left_however_many_callers_are_killed(setting):
    await kill_callers(setting, 60)
