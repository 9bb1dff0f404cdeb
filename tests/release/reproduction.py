"""A second build, of a copy of the sources in another folder and of another time."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT

_CONSOLE = "facade/console/dist"


def check(dist: Path, copy: Path) -> None:
    """Build the sources again, and compare the files with those of `dist`.

    Raises:
        AssertionError: a file differs.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    shutil.copytree(ROOT / _CONSOLE, copy / _CONSOLE)
    time = os.environ.get("SOURCE_DATE_EPOCH") or _time_of_commit()
    built = copy / "built"
    subprocess.run(
        [
            *(str(Path(sys.executable).with_name("uv")), "build", "--quiet"),
            *("--no-build-isolation", "--python", sys.executable, "--out-dir", str(built)),
        ],
        cwd=copy,
        env={**os.environ, "SOURCE_DATE_EPOCH": time},
        check=True,
    )
    for path in (*dist.glob("*.whl"), *dist.glob("*.tar.gz")):
        assert _digest(path) == _digest(built / path.name), f"{path.name} differs"


def _time_of_commit() -> str:
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
