"""Which providers a gateway has: its settings', its environment's, and the sandbox."""

from typing import Any

import pytest

from services.common.settings import (
    Provider,
    Server,
    Settings,
    SettingsError,
    effective_providers,
    from_environment,
    load,
    parse,
)
from tests.grid import each_row

OPENAI = {"kind": "openai", "base_url": "http://a"}
PLAYED = {"kind": "sandbox"}


def test_a_key_in_the_environment_brings_its_provider():
    providers = from_environment({"OPENAI_API_KEY": "sk-1", "HOME": "/"}, Server())
    assert set(providers) == {"openai"}
    assert providers["openai"].base_url == "https://api.openai.com/v1"
    assert providers["openai"].key({"OPENAI_API_KEY": "sk-1"}) == "sk-1"


def test_a_cloud_joins_where_the_environment_chooses_it():
    project = {"GOOGLE_CLOUD_PROJECT": "p"}
    assert from_environment(project, Server()) == {}
    chosen = from_environment(project | {"GOOGLE_GENAI_USE_VERTEXAI": "True"}, Server())["vertex"]
    assert (chosen.base_url, chosen.region) == ("https://aiplatform.googleapis.com", "global")
    assert (chosen.project, chosen.tokens_of) == ("p", "google")
    claudes = {"ANTHROPIC_VERTEX_PROJECT_ID": "q", "CLOUD_ML_REGION": "eu"}
    chosen = from_environment(claudes, Server())["vertex"]
    assert (chosen.base_url, chosen.project) == ("https://aiplatform.eu.rep.googleapis.com", "q")
    resource = {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"}
    assert from_environment(resource, Server()) == {}
    azure = from_environment(resource | {"AZURE_CLIENT_ID": "c"}, Server())["azure"]
    assert (azure.base_url, azure.tokens_of) == ("https://r.openai.azure.com/openai/v1", "azure")
    assert azure.token_scope == "https://cognitiveservices.azure.com/.default"
    keyed = resource | {"AZURE_CLIENT_ID": "c", "AZURE_OPENAI_API_KEY": "k"}
    assert from_environment(keyed, Server())["azure"].tokens_of == ""


@each_row(
    ("fields", "named"),
    [
        ({"kind": "vertex", "region": "US_EAST", "project": "p"}, "region"),
        ({"kind": "vertex", "project": ""}, "project"),
        ({"kind": "bedrock", "region": "moon"}, "region"),
        ({**OPENAI, "project": "p"}, "project"),
        ({**OPENAI, "guardrail": {"id": "a", "version": "1"}}, "guardrail"),
        ({**OPENAI, "credentials_file": "f", "credentials": "azure"}, "credentials_file"),
        ({"kind": "bedrock", "credentials": "google"}, "credentials"),
        ({"kind": "gemini", "base_url": "http://a", "api_version": "2024-10-21"}, "api_version"),
        ({**OPENAI, "api_version": "2024-10-21/../x"}, "api_version"),
    ],
)
def test_settings_of_another_cloud_are_refused(fields: dict[str, Any], named: str):
    with pytest.raises(SettingsError, match=named):
        parse({"providers": {"one": fields}}, "test")


def test_an_address_in_the_environment_goes_with_its_key():
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://proxy"}
    providers = from_environment(environ, Server())
    assert providers["anthropic"].base_url == "http://proxy"


@pytest.mark.parametrize(
    "environ",
    [
        {"ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_BASE_URL": "http://localhost:8080/coding"},
        {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://127.0.0.1:8080/beta/v1"},
        {"OPENAI_API_KEY": f"gw-{'a' * 43}"},
    ],
)
def test_variables_that_lead_clients_here_name_no_provider(environ):
    assert from_environment(environ, Server()) == {}


def test_google_joins_by_its_own_api_with_either_variable():
    both = {"GEMINI_API_KEY": "k-1", "GOOGLE_API_KEY": "k-2"}
    for environ, key in ((both, "k-1"), ({"GOOGLE_API_KEY": "k-2"}, "k-2")):
        provider = from_environment(environ, Server())["gemini"]
        assert (provider.kind, provider.key(environ)) == ("gemini", key)


@pytest.mark.parametrize(
    ("environ", "name", "url"),
    [
        ({"GROQ_API_KEY": "k"}, "groq", "https://api.groq.com/openai/v1"),
        (
            {"GEMINI_API_KEY": "k"},
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
        ),
        (
            {"GOOGLE_API_KEY": "k"},
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
        ),
        (
            {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/"},
            "azure",
            "https://me.openai.azure.com/openai/v1",
        ),
        (
            {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "eu-west-1"},
            "bedrock",
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
        ),
    ],
)
def test_a_key_is_all_that_a_known_provider_needs(environ, name, url):
    providers = from_environment(environ, Server())
    assert {name: providers[name].base_url} == {name: url}
    assert list(providers) == [name]


def test_a_known_provider_whose_place_is_missing_does_not_join():
    assert from_environment({"AZURE_OPENAI_API_KEY": "k"}, Server()) == {}


def settings_of(enabled: bool | None = None, **sections: Any) -> Settings:
    sandbox = {} if enabled is None else {"enabled": enabled}
    return parse({"sandbox": sandbox, **sections}, "the test")


@each_row(
    ("environ", "sections", "present"),
    [
        # Present by default, always, never.
        ({}, {}, (True, True, False)),
        ({}, {"providers": {"play": PLAYED}}, (True, True, False)),
        ({}, {"providers": {"mine": OPENAI}}, (False, True, False)),
        ({}, {"providers": {"mine": OPENAI, "play": PLAYED}}, (False, True, False)),
        ({"OPENAI_API_KEY": "sk-1"}, {}, (False, True, False)),
        ({"OPENAI_API_KEY": ""}, {}, (True, True, False)),
        # Variables of clients of this gateway.
        ({"OPENAI_API_KEY": f"gw-{'a' * 43}"}, {}, (True, True, False)),
        ({"OPENAI_API_KEY": "sk-1"}, {"discovery": {"enabled": False}}, (True, True, False)),
        # A section of its own.
        ({}, {"providers": {"mine": OPENAI, "sandbox": PLAYED}}, (True, True, True)),
    ],
)
def test_the_sandbox_gives_way_to_a_real_provider(environ, sections, present):
    for enabled, is_present in zip((None, True, False), present, strict=True):
        providers = effective_providers(settings_of(enabled, **sections), environ)
        assert ("sandbox" in providers) == is_present
        assert ("play" in providers) == ("play" in sections.get("providers", {}))
        assert "sandbox" not in providers or providers["sandbox"] == Provider(kind="sandbox")


def test_a_real_provider_may_have_the_sandboxs_name():
    named = settings_of(True, providers={"sandbox": OPENAI})
    assert effective_providers(named, {})["sandbox"].kind == "openai"


def load_text(tmp_path, text: str, **environ: str) -> Settings:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    return load({"GATEWAY_CONFIG": str(path), **environ})


DEMO = "[[models]]\nname = 'demo'\nprovider = 'sandbox'\nupstream = 'echo'\n"
SPARE = (
    "[[models]]\nname = 'spare'\n"
    "deployments = [{provider = 'mine', upstream = 'm'}, {provider = 'sandbox'}]\n"
    "[providers.mine]\nkind = 'openai'\nbase_url = 'http://a'\n"
)


def test_models_of_an_absent_sandbox_are_named(tmp_path):
    with pytest.raises(SettingsError) as refused:
        load_text(tmp_path, DEMO + SPARE)
    first, second = str(refused.value).splitlines()
    assert "gateway.toml: models[0].provider: the sandbox is absent because of" in first
    assert "gateway.toml: models[1].deployments[1].provider: the sandbox is absent" in second
    assert "(mine)" in first and "set `enabled = true` in [sandbox]" in first

    with pytest.raises(SettingsError, match=r"models\[0\].provider: .*\(groq\)"):
        load_text(tmp_path, DEMO, GROQ_API_KEY="k")
    with pytest.raises(SettingsError, match=r"models\[0\].provider: the sandbox is disabled by"):
        load_text(tmp_path, f"{DEMO}[sandbox]\nenabled = false\n")


def test_models_of_a_present_sandbox_are_accepted(tmp_path):
    assert load_text(tmp_path, DEMO).models[0].name == "demo"
    load_text(tmp_path, f"{DEMO}{SPARE}[sandbox]\nenabled = true\n", GROQ_API_KEY="k")
    load_text(tmp_path, f"{DEMO}{SPARE}[providers.sandbox]\nkind = 'sandbox'\n")
