"""The Dockerfile: its rules, and its steps run in a folder, as far as no Docker is needed.

The lock file is not installed again: the step that does so needs a network.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.e2e.processes import Running, command, free_port

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions with their arguments, those of several lines as one."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [
        (words[0], words[1].strip())
        for line in text.splitlines()
        if len(words := line.split(None, 1)) == 2
    ]


def stages() -> list[list[tuple[str, str]]]:
    stages_read: list[list[tuple[str, str]]] = []
    for name, argument in instructions(DOCKERFILE):
        if name == "FROM":
            stages_read.append([])
        stages_read[-1].append((name, argument))
    return stages_read


# What the image is made of: the console, the installation, and what runs.
CONSOLE, BUILD, _ = range(3)


def test_hadolint_finds_no_fault() -> None:
    checked = subprocess.run(
        [command("hadolint"), str(ROOT / "Dockerfile")], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_image_runs_without_root_and_stops_on_sigterm() -> None:
    last = dict(stages()[-1])
    assert last["USER"] == "10001:10001"
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert last["ENTRYPOINT"] == '["gateway"]'
    assert "readyz" in last["HEALTHCHECK"]
    # Nothing of the build stage but the installation, and no compiler.
    assert [argument for name, argument in stages()[-1] if name == "COPY"] == [
        "--from=build /opt/gateway /opt/gateway"
    ]
    assert "apt" not in DOCKERFILE


def test_only_what_the_image_needs_is_sent_to_docker() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert ignored[0] == "*"
    assert kept == {*copied(BUILD)}
    assert all((ROOT / name).exists() for name in kept)
    # What is built there is not sent.
    assert {"facade/console/node_modules", "facade/console/dist"} <= {*ignored}
    assert all(source.startswith("facade/console") for source in copied(CONSOLE))


def copied(stage: int) -> Iterator[str]:
    """Return what a stage copies of the sources."""
    for name, argument in stages()[stage]:
        if name == "COPY" and not argument.startswith("--from"):
            yield from argument.split()[:-1]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that the build stage makes as /opt/gateway."""
    root = tmp_path_factory.mktemp("image")
    folder, made = root / "src", root / "opt"
    folder.mkdir()
    for name, argument in stages()[BUILD]:
        if name == "COPY" and argument.startswith("--from=console"):
            # As `make console` built it, which takes the same steps as the image.
            target = argument.split()[-1]
            shutil.copytree(ROOT / target, folder / target)
        elif name == "COPY":
            *sources, _ = argument.split()
            for source in sources:
                copy(ROOT / source, folder / source)
        elif name == "RUN" and "requirements-run.lock" in argument:
            # What it installs is here already.
            (packages,) = made.glob("lib/python*/site-packages")
            here = [path for path in sys.path if path.endswith("site-packages")]
            (packages / "here.pth").write_text("\n".join(here))
        elif name == "RUN":
            line = argument.replace("/opt/gateway", str(made))
            line = re.sub(r"^python ", f"{sys.executable} ", line)
            done = subprocess.run(["sh", "-ec", line], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    # An installation that can be edited would be found there first.
    shutil.rmtree(folder)
    yield made


UNSENT = ("__pycache__", "node_modules", "dist")


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*UNSENT))
    else:
        shutil.copy(source, target)


@pytest.mark.soak
def test_the_installation_serves_and_writes_its_data_alone(image: Path, tmp_path: Path) -> None:
    before = files_below(image)
    port = free_port()
    environ = {
        "PATH": f"{image / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GATEWAY_CONFIG": "",
        "GATEWAY_DATABASE_URL": "",
        "GATEWAY_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "GATEWAY_METRICS_PORT": str(free_port()),
        "GATEWAY_DATA_DIR": str(tmp_path / "data"),
    }
    up = [str(image / "bin/gateway"), "up", "--workers", "1"]
    with Running(up, environ=environ, folder=tmp_path) as process:
        process.wait_for("The gateway listens on")
        # The health check of the image, as Docker runs it.
        check = dict(stages()[-1])["HEALTHCHECK"].partition("CMD ")[2]
        python, *arguments = json.loads(check)
        healthy = subprocess.run(
            [str(image / "bin" / python), *arguments],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
        )
        assert healthy.returncode == 0, healthy.stderr
        with urlopen(f"http://127.0.0.1:{port}/console") as page:
            assert b"/console/assets/" in page.read()
        source = subprocess.run(
            [str(image / "bin/python"), "-P", "-c", "import services; print(services.__file__)"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert source.stdout.startswith(str(image)), source
        assert process.stop() == 0
    assert files_below(image) == before
    assert {one.name for one in tmp_path.iterdir()} == {"data"}


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
