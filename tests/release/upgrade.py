"""Data of the last release, served by the new one.

The last release is the newest tag `v…` before this commit. Until there is one, the data are those
of this version, which a second start of it has to serve.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.documents import ROOT
from tests.release import installation, stored


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
    with installation.running(programs, folder) as (url, printed):
        assert printed == key
        caller = stored.Caller(url, key)
        _compare(before, caller.read(names))
        _compare(used, stored.usage(programs, folder))
        assert "again" in installation.ask(url, key, "sandbox/echo", "again")[0]
    print(f"  from {tag or 'this version: there is no release yet'}")


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
