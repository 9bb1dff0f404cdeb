"""`gateway memory`, over a SQLite database of its own."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message
from services import cli
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Memory, Storage
from services.common.storage.database import open_engine, writing
from services.common.storage.migrations.runner import migrate
from services.memory.assembly import open_locks, open_queue
from services.memory.jobs.stores import Stores
from services.memory.jobs.windows import Windows
from services.memory.profile.facts import ExtractedFact
from services.memory.storage.stored_turns import StoredTurn
from services.memory.turns.opened_memory import OpenedMemory

AT_MS = 1_793_232_000_000


def _turn(number: int, text: str) -> StoredTurn:
    message = Message(role=conversation.ROLE_USER, blocks=[Block(text=text)])
    return StoredTurn(number, (message,), AT_MS, open=False, first_message=number - 1)


async def _fill(folder: Path) -> None:
    """Make the users ada, who has two memories and a profile, and bob, who has one."""
    engine = open_engine(Storage(data_dir=folder))
    await migrate(engine)
    accounts = AccountRepository(engine)
    clock = Clock(now=lambda: AT_MS / 1000)
    stores = Stores.open(engine, clock, open_queue(engine, clock))
    locks = open_locks(engine, clock, Memory())
    for user, memory_id, count in (
        ("ada", "trip/oslo", 3),
        ("ada", "a\u202eb", 1),
        ("bob", "b", 1),
    ):
        await accounts.create_key(user)
        owner_id = (await accounts.caller_named(user)).user_id
        memory = OpenedMemory(stores, owner_id, memory_id, 10, Windows())
        async with (
            locks.opened(memory) as lock,
            locks.committing(lock) as (connection, current),
        ):
            turns = [_turn(number, f"{user} {number}") for number in range(1, count + 1)]
            await stores.repository.append(connection, current, turns)
        async with writing(engine) as connection:
            extracted = [ExtractedFact("work", "employer", f"{user}'s\nemployer")]
            await stores.facts.put(connection, owner_id, extracted, None, AT_MS)
    await locks.close()
    await engine.dispose()


@pytest.fixture(autouse=True)
def filled(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path))


def run(folder: Path, *arguments: str, status: int = 0) -> str:
    environ = {"GATEWAY_DATA_DIR": str(folder), "GATEWAY_DATABASE_URL": None}
    result = CliRunner().invoke(cli.app, ["memory", *arguments], env=environ, prog_name="gateway")
    assert result.exit_code == status, result.output
    return result.output


def test_a_users_memories_and_profile_are_shown(tmp_path: Path) -> None:
    memories, profile = run(tmp_path, "show", "--user", "ada").split("\n\n")
    heading, *lines = memories.splitlines()
    assert heading.split()[:5] == ["MEMORY", "TURNS", "SUMMARISED", "PENDING", "STATE"]
    columns = {line.split()[0]: line.split()[1:] for line in lines}
    day = "2026-10-29T00:00:00Z"
    assert columns == {
        "trip/oslo": ["3", "0", "0", "idle", day, day],
        r"a\u202eb": ["1", "0", "0", "idle", day, day],
    }
    assert re.search(r"work +employer +2026-\S+ +ada's\\u000aemployer$", profile.strip())


def test_one_memory_is_shown_with_its_summary(tmp_path: Path) -> None:
    shown = run(tmp_path, "show", "--user", "ada", "--memory", "trip/oslo").splitlines()
    assert shown[1].split()[:2] == ["trip/oslo", "3"]
    assert shown[-1] == "No summary yet."


def test_memories_are_exported_a_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.commands.memory._PAGE", 1)
    profile, *memories = map(json.loads, run(tmp_path, "export", "--user", "ada").splitlines())
    assert [fact["value"] for fact in profile["profile"]] == ["ada's\nemployer"]
    exported = {
        memory["memory_id"]: [turn["messages"][0]["blocks"] for turn in memory["turns"]]
        for memory in memories
    }
    assert exported == {
        "trip/oslo": [[{"text": f"ada {number}"}] for number in (1, 2, 3)],
        "a\u202eb": [[{"text": "ada 1"}]],
    }
    (alone,) = run(tmp_path, "export", "--user", "bob", "--memory", "b").splitlines()
    assert json.loads(alone)["memory_id"] == "b"


def test_one_memory_is_forgotten(tmp_path: Path) -> None:
    run(tmp_path, "rm", "--user", "ada", "--memory", "trip/oslo")
    assert "trip/oslo" not in run(tmp_path, "show", "--user", "ada")
    assert "employer" in run(tmp_path, "show", "--user", "ada")
    run(tmp_path, "show", "--user", "ada", "--memory", "trip/oslo", status=1)


def test_rm_deletes_everything_of_one_user_only(tmp_path: Path) -> None:
    run(tmp_path, "rm", "--user", "ada")
    assert run(tmp_path, "export", "--user", "ada") == '{"profile":[]}\n'
    assert len(run(tmp_path, "export", "--user", "bob").splitlines()) == 2


def test_another_users_memory_is_as_none(tmp_path: Path) -> None:
    for command in ("show", "export", "rm"):
        message = run(tmp_path, command, "--user", "bob", "--memory", "trip/oslo", status=1)
        assert "no such memory" in message
    assert "trip/oslo" in run(tmp_path, "show", "--user", "ada")
