"""Secrets that files hold, and what is said when one cannot be read."""

from pathlib import Path

import pytest

from services.common import settings
from services.common.settings import Settings, SettingsError

SECRET = "sk-hush"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


def load(tmp_path: Path, text: str = "", **environ: str) -> Settings:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    return settings.load({"GATEWAY_CONFIG": str(path), **environ})


def test_a_provider_s_key_comes_from_its_file(tmp_path, secret):
    loaded = load(tmp_path, f"[providers.openai]\napi_key_file = '{secret}'")
    assert loaded.providers["openai"].key({}) == SECRET
    assert loaded.providers["openai"].missing_key({}) == ""
    assert SECRET not in repr(loaded)


def test_the_database_and_searches_have_files_too(tmp_path, secret):
    text = f"[storage]\ndatabase_url_file = '{secret}'\nreports_url_file = '{secret}'\n"
    text += f"[tools.web_search]\nbackend = 'brave'\napi_key_file = '{secret}'"
    loaded = load(tmp_path, text)
    assert loaded.storage.database_url == loaded.storage.reports_url == SECRET
    assert loaded.tools.web_search.key({}) == SECRET


def test_a_variable_names_the_file_of_the_database(tmp_path, secret):
    loaded = load(tmp_path, GATEWAY_DATABASE_URL_FILE=str(secret))
    assert loaded.storage.database_url == SECRET


def test_a_variable_names_the_file_of_a_section_s_key(tmp_path, secret):
    text = "[providers.a]\nkind = 'openai'\nbase_url = 'http://a'\napi_key_env = 'A_KEY'"
    assert load(tmp_path, text, A_KEY_FILE=str(secret)).providers["a"].key({}) == SECRET
    # The variable itself goes before.
    both = load(tmp_path, text, A_KEY_FILE=str(secret), A_KEY="sk-own")
    assert both.providers["a"].key({"A_KEY": "sk-own"}) == "sk-own"


def test_a_provider_whose_file_is_named_joins_by_itself(tmp_path, secret):
    environ = {"OPENAI_API_KEY_FILE": str(secret), "OPENAI_BASE_URL": "http://proxy"}
    loaded = load(tmp_path, **environ)
    assert loaded.providers["openai"].key({}) == SECRET
    assert loaded.providers["openai"].base_url == "http://proxy"
    assert not load(tmp_path, "[discovery]\nenabled = false", **environ).providers


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[providers.openai]\napi_key_file = '{folder}/none'", "No such file"),
        ("[providers.openai]\napi_key_file = '{folder}/empty'", "is empty"),
        ("[providers.openai]\napi_key_file = '{folder}/long'", "is too long"),
        ("[providers.openai]\napi_key_file = '{folder}/bytes'", "is not UTF-8 text"),
        ("[providers.openai]\napi_key_file = '{folder}'", "Is a directory"),
        ("[providers.openai]\napi_key = 'a'\napi_key_file = '{folder}/none'", "remove one of them"),
        ("[storage]\ndatabase_url_file = '{folder}/none'", "storage.database_url_file"),
        ("[tools.web_search]\napi_key_file = '{folder}/none'", "tools.web_search.api_key_file"),
        ("[providers.openai]\napi_key_file = 7", "providers.openai.api_key_file"),
        ("providers = 7", "providers"),
    ],
)
def test_a_file_that_will_not_do_is_named(tmp_path, text, named):
    for name, held in (("empty", b" \n"), ("long", b"x" * 70_000), ("bytes", b"\xff")):
        (tmp_path / name).write_bytes(held)
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, text.format(folder=tmp_path))
    assert named in str(refused.value)
    assert "api_key_file" in str(refused.value) or "providers.openai" not in text
