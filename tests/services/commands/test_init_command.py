"""`gateway init`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from services.commands import init
from services.inference.models import discovery
from tests.services.gateway_command import Command


@pytest.fixture
def local_models(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return the models of the local servers of this machine: none, until a test sets them."""
    listed: dict[str, list[str]] = {}

    async def learn(client: object, providers: Mapping[str, object]) -> dict[str, list[str]]:
        return {name: names for name, names in listed.items() if name in providers}

    monkeypatch.setattr(discovery, "learn", learn)
    return listed


@pytest.fixture
def gateway(tmp_path: Path, local_models: dict[str, list[str]]) -> Command:
    made = Command(tmp_path)
    made.config.unlink()
    return made


def written(gateway: Command) -> dict[str, Any]:
    return tomllib.loads(gateway.config.read_text())


def test_keys_of_the_environment_are_found(gateway: Command) -> None:
    gateway.environ |= {"GROQ_API_KEY": "gsk_secret", "GOOGLE_API_KEY": "AIza-secret"}
    output, errors = gateway("init --yes")
    assert "with the providers gemini, groq" in output
    assert errors == ""
    providers = written(gateway)["providers"]
    assert providers["groq"] == {
        "kind": "openai",
        "base_url": "https://api.groq.com/openai/v1",
        "api_key_env": "GROQ_API_KEY",
    }
    assert providers["gemini"]["api_key_env"] == "GOOGLE_API_KEY"
    assert "secret" not in gateway.config.read_text()
    assert "configured providers: gemini, groq" in gateway("config check")[0]


def test_local_servers_are_found(gateway: Command, local_models: dict[str, list[str]]) -> None:
    local_models["ollama"] = ["llama3", "qwen3"]
    gateway.environ["OPENAI_API_KEY"] = "k"
    gateway("init --yes")
    assert written(gateway)["providers"]["ollama"] == {
        "kind": "openai",
        "base_url": "http://127.0.0.1:11434/v1",
    }
    text = gateway.config.read_text()
    assert "# A local server with 2 models." in text
    assert '# fallbacks = ["ollama/llama3"]' in text


def test_without_anything_the_file_is_valid_too(gateway: Command) -> None:
    output, _ = gateway("init --yes")
    assert "no provider, for the sandbox" in output
    assert written(gateway) == {}
    assert "sandbox: present" in gateway("config check")[0]


def test_flags_choose_what_is_written(gateway: Command) -> None:
    gateway.environ["GROQ_API_KEY"] = "k"
    _, errors = gateway("init --provider mistral --port 9000 --sandbox")
    content = written(gateway)
    assert [*content["providers"]] == ["mistral"]
    assert content["server"] == {"port": 9000}
    assert content["sandbox"] == {"enabled": True}
    assert "the variable MISTRAL_API_KEY is not set" in errors


def test_an_unknown_provider_is_refused(gateway: Command) -> None:
    assert "--provider acme: unknown; one of openai," in gateway.refused(
        "init --provider acme", status=2
    )
    assert "set AZURE_OPENAI_ENDPOINT" in gateway.refused("init --provider azure", status=2)
    assert not gateway.config.exists()


def test_a_file_is_overwritten_only_with_force(gateway: Command) -> None:
    gateway.config.write_text("[server]\nport = 1\n")
    assert "overwrite it with --force" in gateway.refused("init --yes", status=2)
    assert written(gateway) == {"server": {"port": 1}}
    gateway("init --yes --force")
    assert written(gateway) == {}


def test_a_terminal_is_asked(gateway: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "is_terminal", lambda: True)
    gateway.environ |= {"OPENAI_API_KEY": "k-o", "GROQ_API_KEY": "k-g"}
    output, _ = gateway("init", answers="n\n\n9100\ny\n")
    assert "Add openai? The key is in OPENAI_API_KEY. [Y/n]" in output
    content = written(gateway)
    assert [*content["providers"]] == ["groq"]
    assert content["server"] == {"port": 9100}
    assert content["sandbox"] == {"enabled": True}
