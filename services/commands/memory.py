"""`gateway memory`: show, export and delete the memories and the profile of a user."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from services.commands.shared import FLAGS, on_database, print_table, time_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.memory.v1.memory_pb2 import Memory
    from services.common.settings import Settings
    from services.memory.management import MemoryManagement

Result = TypeVar("Result")

# Rows per transaction.
_PAGE = 1000

_UserOption = Annotated[str, typer.Option("--user", metavar="NAME", help="Name of the user.")]
_MemoryOption = Annotated[
    str | None, typer.Option("--memory", metavar="ID", help="Only this memory, by its memory_id.")
]

app = typer.Typer(help="Show, export and delete a user's memories and profile.", **FLAGS)


class _Remembered(NamedTuple):
    """The memories and the profile of one user."""

    management: "MemoryManagement"
    owner_id: str

    async def names(self, memory: str | None) -> list[str]:
        """Return the name of the chosen memory, or of all memories."""
        if memory is not None:
            return [memory]
        return [one.memory_id async for one in self.memories()]

    async def memories(self) -> "AsyncIterator[Memory]":
        token, more = "", True
        while more:
            page = await self.management.page(self.owner_id, _PAGE, token)
            for one in page.memories:
                yield one
            token = page.next_page_token
            more = bool(token)


@app.command("show")
def show(user: _UserOption, memory: _MemoryOption = None) -> None:
    """List the memories and the facts about the user; with --memory, show its summary."""

    async def work(remembered: _Remembered) -> None:
        if memory is not None:
            one = await remembered.management.get(remembered.owner_id, memory)
            print_table([_HEADING, _row(one)])
            lines = one.summary.splitlines() or ["No summary yet."]
            typer.echo("\n".join(["", *map(_safe, lines)]))
            return
        print_table([_HEADING, *[_row(one) async for one in remembered.memories()]])
        user_profile = await remembered.management.profile(remembered.owner_id)
        typer.echo()
        print_table(
            [
                ("TOPIC", "SUB-TOPIC", "UPDATED", "VALUE"),
                *(
                    (
                        fact.topic,
                        fact.sub_topic,
                        time_of(fact.updated_at_ms // 1000),
                        _safe(fact.value),
                    )
                    for fact in user_profile.facts
                ),
            ]
        )

    _for_user(user, work)


@app.command("export")
def export(user: _UserOption, memory: _MemoryOption = None) -> None:
    """Print memories as JSON, one per line; without --memory, after the user's profile."""

    async def work(remembered: _Remembered) -> None:
        management, owner_id = remembered
        if memory is None:
            user_profile = await management.profile(owner_id)
            _print_json({"profile": [_as_dict(fact) for fact in user_profile.facts]})
        for name in await remembered.names(memory):
            described = _as_dict(await management.get(owner_id, name))
            described["turns"] = turns = []
            token, more = "", True
            while more:
                page = await management.turns(owner_id, name, _PAGE, token)
                turns += [_as_dict(turn) for turn in page.turns]
                token = page.next_page_token
                more = bool(token)
            turns.reverse()
            _print_json(described)

    _for_user(user, work)


@app.command("rm")
def remove(user: _UserOption, memory: _MemoryOption = None) -> None:
    """Delete one memory; without --memory, all memories and the user's profile."""

    async def work(remembered: _Remembered) -> None:
        for name in await remembered.names(memory):
            await remembered.management.delete(remembered.owner_id, name)
            typer.echo(f"Deleted the memory {_safe(name)}.", err=True)
        if memory is None:
            await remembered.management.delete_profile(remembered.owner_id)
            typer.echo("Deleted the profile.", err=True)

    _for_user(user, work)


_HEADING = ("MEMORY", "TURNS", "SUMMARISED", "PENDING", "STATE", "CREATED", "UPDATED")


def _row(memory: "Memory") -> tuple[str, ...]:
    return (
        _safe(memory.memory_id),
        str(memory.turns),
        str(memory.summarised),
        str(memory.pending),
        type(memory).State.Name(memory.state).removeprefix("STATE_").lower(),
        time_of(memory.created_at_ms // 1000),
        time_of(memory.updated_at_ms // 1000),
    )


def _safe(text: str) -> str:
    # Control characters and bidirectional marks must not reach the terminal.
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def _as_dict(message: Any) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message, preserving_proto_field_name=True)


def _print_json(value: dict[str, Any]) -> None:
    import orjson

    typer.echo(orjson.dumps(value).decode())


def _for_user(user: str, work: "Callable[[_Remembered], Awaitable[Result]]") -> "Result":
    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.repository import AccountRepository
        from services.common.clock import Clock
        from services.common.process.byte_budget import open_budget
        from services.memory.assembly import open_locks, open_queue
        from services.memory.jobs.stores import Stores
        from services.memory.management import MemoryManagement

        owner = await AccountRepository(engine).caller_named(user)
        clock = Clock()
        locks = open_locks(engine, clock, settings.memory)
        stores = Stores.open(engine, clock, open_queue(engine, clock))
        budget = open_budget(settings.limits)
        management = MemoryManagement(engine, stores, locks, _no_vector, budget, clock)
        try:
            return await work(_Remembered(management, owner.user_id))
        finally:
            await locks.close()

    return on_database(run)


async def _no_vector(owner_id: str, question: str) -> None:
    """Return None: these commands do not search."""
