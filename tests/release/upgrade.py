"""Data of the last release, served by the new one.

The last release is the newest tag `v…` before this commit. Until there is one, the data are those
of this version in the columns that a database of an earlier step of the migrations has.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from services.common.storage.database import SQLITE_FILE
from tests.documents import ROOT
from tests.release import installation, stored

# The first step with tables for all that `stored` stores.
_STEP = "0013"
_MAKE = f"""
import sys
from pathlib import Path
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from services.common.storage import migrations

with create_engine("sqlite:///" + sys.argv[1]).begin() as connection:
    config = Config(attributes={{"connection": connection}})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    command.upgrade(config, "{_STEP}")
"""
# The step of a database, which is not that of the rows.
_OF_STEPS = "alembic_version"


def check(programs: Path, root: Path) -> None:
    """Check that the new release serves the data of the last one, with the keys made there.

    Raises:
        AssertionError: it does not start on them, refuses a key, or reads something else.
    """
    folder = root / "old"
    tag = _last_release()
    last = _install(tag, root / "last") if tag else programs
    with installation.running(last, folder) as (url, key):
        caller = stored.Caller(url, key)
        names = caller.store()
        before = caller.read(names)
    used = stored.usage(last, folder)
    assert used, "no usage was recorded"
    if not tag:
        _downgrade(programs, folder / "var" / SQLITE_FILE)
    with installation.running(programs, folder) as (url, printed):
        assert printed == key
        caller = stored.Caller(url, key)
        _compare(before, caller.read(names))
        _compare(used, stored.usage(programs, folder))
        assert "again" in installation.ask(url, key, "sandbox/echo", "again")[0]
    print(f"  from {tag or f'step {_STEP} of the migrations: there is no release yet'}")


def _compare(before: Any, after: Any) -> None:
    assert after == before, f"before the upgrade: {before}\nafter it: {after}"


def _last_release() -> str:
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _install(tag: str, environment: Path) -> Path:
    """Install a release from the index; return the folder of its programs."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", str(environment)], check=True)
    requirement = f"sluicegate[media]=={tag.removeprefix('v')}"
    python = str(environment / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, requirement], check=True)
    return environment / "bin"


def _downgrade(programs: Path, database: Path) -> None:
    """Replace a database by one of an earlier step, with the rows of the tables that it has."""
    current = database.with_suffix(".current")
    for name in ("", "-wal", "-shm"):
        file = database.with_name(database.name + name)
        if file.exists():
            shutil.move(file, current.with_name(current.name + name))
    subprocess.run(
        [str(programs / "python"), "-c", _MAKE, str(database)],
        cwd=database.parent,
        env={**os.environ, "PYTHONPATH": ""},
        check=True,
    )
    with closing(sqlite3.connect(database)) as old:
        old.execute("ATTACH ? AS current", [str(current)])
        for table in _tables(old, "main") & _tables(old, "current") - {_OF_STEPS}:
            shared = _columns(old, "main", table) & _columns(old, "current", table)
            names = ", ".join(f'"{name}"' for name in sorted(shared))
            old.execute(f'DELETE FROM main."{table}"')
            old.execute(
                f'INSERT INTO main."{table}" ({names}) SELECT {names} FROM current."{table}"'
            )
        old.commit()


def _tables(database: sqlite3.Connection, schema: str) -> set[str]:
    rows = database.execute(f"SELECT name FROM {schema}.sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows if not name.startswith("sqlite_")}


def _columns(database: sqlite3.Connection, schema: str, table: str) -> set[str]:
    return {row[1] for row in database.execute(f'PRAGMA {schema}.table_info("{table}")')}
