"""`gateway models`, `gateway chat` and `gateway reload`, against a gateway that runs."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.gateway import environ_of, without_notice
from tests.e2e.processes import Running, command

SETTINGS = """\
[discovery]
enabled = false

[sandbox]
enabled = true
"""
FAST = '[[models]]\nname = "fast"\nprovider = "sandbox"\nupstream = "echo"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("running")
    (made / "gateway.toml").write_text(without_notice(SETTINGS))
    return made


@pytest.fixture(scope="module")
def process(folder: Path) -> Iterator[Running]:
    arguments = [command("gateway"), "up", "--workers", "1"]
    with Running(arguments, environ=environ_of(folder), folder=folder, is_forked=True) as started:
        started.wait_for("listens on")
        yield started


def run(
    folder: Path, *arguments: str, environ: Mapping[str, str] | None = None, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command as an operator does, in the folder of a gateway."""
    return subprocess.run(
        [command("gateway"), *arguments],
        capture_output=True,
        text=True,
        input=text,
        cwd=folder,
        # The port is another one than the gateway's, which its lock file names.
        env={**environ_of(folder, 1), "GATEWAY_KEY": "", "GATEWAY_URL": "", **(environ or {})},
    )


def test_models_are_listed(process: Running, folder: Path) -> None:
    result = run(folder, "models")
    assert result.returncode == 0, result.stderr
    head, *rows = result.stdout.splitlines()
    assert head.split()[:3] == ["NAME", "PROVIDER", "CONTEXT"]
    assert "sandbox/echo" in [row.split()[0] for row in rows]


def test_a_model_answers_on_the_terminal(process: Running, folder: Path) -> None:
    result = run(folder, "chat", "sandbox/echo", "Hello there")
    assert (result.returncode, result.stderr) == (0, "")
    assert 'you said "Hello there"' in result.stdout
    piped = run(folder, "chat", "sandbox/echo", text="From a pipe")
    assert 'you said "From a pipe"' in piped.stdout


@pytest.mark.parametrize(
    ("model", "environ", "words"),
    [
        ("sandbox/cut", {}, ""),
        ("sandbox/echo", {"GATEWAY_KEY": "sk-other"}, "looks like a key of OpenAI"),
        ("sandbox/echo", {"GATEWAY_URL": "http://127.0.0.1:1", "GATEWAY_KEY": "k"}, "refused"),
        ("sandbox/echo", {"GATEWAY_URL": "127.0.0.1"}, "GATEWAY_URL: must begin with http://"),
    ],
)
def test_a_failure_is_one_message(
    process: Running, folder: Path, model: str, environ: dict[str, str], words: str
) -> None:
    result = run(folder, "chat", model, "Hello", environ=environ)
    assert result.returncode != 0
    assert result.stderr.startswith("gateway: ")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_reload_reads_the_settings_again(process: Running, folder: Path) -> None:
    assert "unknown model 'fast'" in run(folder, "chat", "fast", "Hello").stderr
    (folder / "gateway.toml").write_text("[server]\nprot = 1\n")
    wrong = run(folder, "reload")
    assert wrong.returncode == 2
    assert "server.prot: unknown key; did you mean port?" in wrong.stderr
    (folder / "gateway.toml").write_text(SETTINGS + FAST)
    result = run(folder, "reload")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"process {process.pid}" in result.stdout
    process.wait_for("settings reloaded")
    assert 'you said "Hello"' in run(folder, "chat", "fast", "Hello").stdout
