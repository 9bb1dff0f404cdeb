"""`gateway import litellm`: the files that it reads and writes."""

import stat
from pathlib import Path

import pytest

from tests.services.commands.litellm_examples import TEAM
from tests.services.gateway_command import Command


def test_the_command_writes_a_file_that_is_valid(tmp_path: Path) -> None:
    gateway = Command(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(TEAM)
    output, errors = gateway(f"import litellm {config} --file {tmp_path / 'new.toml'}")
    assert "5 providers, 6 models" in output
    assert "- guardrails" in errors
    assert "providers.azure.api_key_env: the variable AZURE_EU_KEY is not set" in errors
    text = (tmp_path / "new.toml").read_text()
    assert "# - guardrails" in text
    assert gateway(f"import litellm {config} --file -")[0] == text
    assert "--force" in gateway.refused(
        f"import litellm {config} --file {tmp_path / 'new.toml'}", status=2
    )


def test_a_file_with_keys_is_private(tmp_path: Path) -> None:
    gateway = Command(tmp_path)
    config, file = tmp_path / "config.yaml", tmp_path / "new.toml"
    config.write_text(
        "model_list: [{model_name: m, litellm_params: {model: gpt-4o, api_key: sk-abcdefgh}}]"
    )
    gateway(f"import litellm {config} --file {file}")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_included_files_are_read(tmp_path: Path) -> None:
    gateway = Command(tmp_path)
    (tmp_path / "config.yaml").write_text("include: [models.yaml]\nmodel_list: []")
    models = tmp_path / "models.yaml"
    models.write_text("model_list: [{model_name: m, litellm_params: {model: gpt-4o}}]")
    line = f"import litellm {tmp_path / 'config.yaml'} --file -"
    assert 'name = "m"' in gateway(line)[0]
    models.unlink()
    assert "models.yaml: No such file" in gateway.refused(line, status=2)
    (tmp_path / "config.yaml").write_text("include: models.yaml")
    assert "include: must be a list of files" in gateway.refused(line, status=2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"model_list: {a: 1}", "`model_list` must be a list"),
        (b"- a\n", "must be a mapping"),
        (b"a: 1\n", "no list `model_list`"),
        (b"a: [\n", "not YAML"),
        (b"a: !!python/object/apply:os.getpid []\n", "not YAML"),
        (b"\xff\xfe\xfd", "not YAML"),
        (b"[" * 100_000, "not YAML"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    gateway = Command(tmp_path)
    (tmp_path / "config.yaml").write_bytes(content)
    message = gateway.refused(f"import litellm {tmp_path / 'config.yaml'} --file -", status=2)
    assert words in message
    assert "No such file" in gateway.refused("import litellm none.yaml --file -", status=2)
