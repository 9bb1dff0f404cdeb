"""Data of the last release, served by the new one.

The last release is the newest tag `v…` before this commit. Until there is one, the data are a
database of the first step of the migrations.
"""

import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

from services.common.storage.database import SQLITE_FILE
from tests.documents import ROOT
from tests.release import installation

_FIRST_STEP = """
import sys
from pathlib import Path
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from services.common.storage import migrations

with create_engine("sqlite:///" + sys.argv[1]).begin() as connection:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    command.upgrade(config, "0001")
"""


def check(programs: Path, root: Path) -> None:
    """Check that the new release serves the data of the last one, with the keys made there.

    Raises:
        AssertionError: it does not start on them, or refuses a key.
    """
    folder = root / "old"
    folder.mkdir()
    tag = _last_release()
    key = _write_with(tag, root, folder) if tag else _write_first_step(programs, folder)
    with installation.running(programs, folder) as (url, printed):
        assert printed == (key or printed)
        headers = {"Authorization": f"Bearer {printed}"}
        with urlopen(Request(f"{url}/v1/files", headers=headers)) as answer:
            assert answer.status == 200
        assert "again" in installation.ask(url, printed, "sandbox/echo", "again")[0]
    print(f"  from {tag or 'the first step of the migrations: there is no release yet'}")


def _last_release() -> str:
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _write_with(tag: str, root: Path, folder: Path) -> str:
    """Install a release from the index, and serve some requests; return its key."""
    programs = root / "last" / "bin"
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", str(programs.parent)], check=True)
    requirement = f"sluicegate[media]=={tag.removeprefix('v')}"
    python = str(programs / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, requirement], check=True)
    with installation.running(programs, folder) as (url, key):
        installation.ask(url, key, "sandbox/echo", "Hello")
    return key


def _write_first_step(programs: Path, folder: Path) -> str:
    """Make a database of the first step; there is no key yet."""
    data = folder / "var"
    data.mkdir(mode=0o700)
    subprocess.run(
        [str(programs / "python"), "-c", _FIRST_STEP, str(data / SQLITE_FILE)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ""},
        check=True,
    )
    return ""
