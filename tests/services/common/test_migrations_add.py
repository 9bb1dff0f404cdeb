"""Steps of the database only add, so that workers of versions before serve on beside them.

`OLDEST` says how old such a version may be: no step after it takes away what that version uses.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from alembic import command, op
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage import migrations
from services.common.storage.database import open_engine, reading, writing_alone
from services.common.storage.migrations import HEAD, OLDEST

# What a step has taken away that earlier versions had left unused, as (step, what `faults` says of
# it): the first step of those versions.
UNUSED_SINCE: dict[tuple[str, str], str] = {}
# Checks that a step has made wider, as (step, name): every row that was allowed still is.
WIDENED: frozenset[tuple[str, str]] = frozenset()


class Table(NamedTuple):
    """The columns and rules of a table that workers rely on.

    Attributes:
        columns: by name: type, whether it may be NULL, and whether an INSERT may leave it out.
        rules: checks, unique constraints and foreign keys, as text.
    """

    columns: dict[str, tuple[str, bool, bool]]
    rules: dict[str, str]


def tables_of(connection: Connection) -> dict[str, Table]:
    inspector = inspect(connection)
    return {
        name: Table(
            {
                column["name"]: (
                    str(column["type"]),
                    bool(column["nullable"]),
                    bool(column["nullable"] or column["default"] is not None),
                )
                for column in inspector.get_columns(name)
            },
            {
                str(rule["name"]): str(sorted(rule.items(), key=str))
                for rules in (
                    inspector.get_check_constraints(name),
                    inspector.get_unique_constraints(name),
                    inspector.get_foreign_keys(name),
                )
                for rule in rules
            },
        )
        for name in inspector.get_table_names()
    }


def faults(step: str, before: dict[str, Table], after: dict[str, Table]) -> Iterator[str]:
    """Yield what would stop a worker that knows the tables as they were before a step."""
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield f"{step}: the table {name} is gone"
            continue
        for column, (kind, is_nullable, _) in old.columns.items():
            now = new.columns.get(column)
            if now is None:
                yield f"{step}: {name}.{column} is gone"
            elif now[0] != kind or (is_nullable and not now[1]):
                yield f"{step}: {name}.{column} takes other values"
        for column in new.columns.keys() - old.columns.keys():
            if not new.columns[column][2]:
                yield f"{step}: {name}.{column} is new, and no INSERT may leave it out"
        for rule, content in new.rules.items():
            if old.rules.get(rule) != content and (step, rule) not in WIDENED:
                yield f"{step}: the rule {rule} of {name} is new"


def config_of(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return config


def steps() -> list[str]:
    """Return all steps, the oldest first."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return [one.revision for one in ScriptDirectory.from_config(config).walk_revisions()][::-1]


async def upgraded(engine: AsyncEngine, step: str) -> dict[str, Table]:
    async with writing_alone(engine) as connection:
        await connection.run_sync(lambda one: command.upgrade(config_of(one), step))
    async with reading(engine) as connection:
        return await connection.run_sync(tables_of)


async def test_no_step_takes_anything_away(empty_storage: Storage) -> None:
    engine = open_engine(empty_storage)
    removals: list[str] = []
    before = await upgraded(engine, OLDEST)
    later = [step for step in steps() if step > OLDEST]
    for step in later:
        after = await upgraded(engine, step)
        removals += [
            fault
            for fault in faults(step, before, after)
            # A version without the use has to be as old as the oldest that may start.
            if UNUSED_SINCE.get((step, fault), HEAD) > OLDEST
        ]
        before = after
    await engine.dispose()
    assert OLDEST in steps()
    assert removals == []


CHANGES = [
    (lambda: op.drop_column("files", "filename"), "files.filename is gone"),
    (lambda: op.alter_column("files", "filename", new_column_name="name"), "filename is gone"),
    (lambda: op.drop_table("leases"), "leases is gone"),
    (lambda: op.execute("ALTER TABLE teams ADD COLUMN a TEXT NOT NULL"), "teams.a is new"),
    (lambda: op.alter_column("users", "team_id", nullable=False), "team_id takes other values"),
    (lambda: op.create_unique_constraint("uq_a", "users", ["plan"]), "uq_a of users is new"),
    (lambda: op.create_check_constraint("ck_a", "users", "plan <> 'a'"), "ck_a of users is new"),
]


async def test_a_step_that_takes_away_is_found(postgresql: Any, tmp_path: Path) -> None:
    await postgresql.execute("CREATE DATABASE takes_away")
    storage = Storage(data_dir=tmp_path, database_url=postgresql.named("takes_away"))
    engine = open_engine(storage)
    before = await upgraded(engine, "head")

    def changed(connection: Connection, change: Callable[[], object]) -> list[str]:
        with Operations.context(MigrationContext.configure(connection)):
            change()
        return list(faults("next", before, tables_of(connection)))

    for change, says in CHANGES:
        async with engine.connect() as connection:
            removals = await connection.run_sync(changed, change)
            await connection.rollback()
        assert any(says in one for one in removals), (says, removals)
    await engine.dispose()
