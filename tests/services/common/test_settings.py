import re
import tomllib

import pytest

from services.common import settings
from services.common.settings import PlanLimits, SettingsError
from services.common.settings.base import Section
from services.common.settings_example import settings_example


def load(tmp_path, text: str = "", **environ: str) -> settings.Settings:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    return settings.load({"GATEWAY_CONFIG": str(path), **environ})


def test_the_example_names_every_key_with_its_default():
    text = settings_example()
    example = tomllib.loads(text)
    parsed = settings.parse(example, "the example")
    for name in set(example) - {"providers", "models"}:
        section = getattr(parsed, name)
        assert section == type(section)(), f"[{name}] does not show the defaults"
        keys = type(section).model_fields
        # TOML has no value for a default of None, and a list of tables would not be empty: comments
        # show the keys.
        unset = {key for key, field in keys.items() if field.default is None or field.examples}
        assert set(example[name]) == set(keys) - unset, f"[{name}] leaves keys out"
        shown = (f"\n# {key} = " in text or f"\n# [[{name}.{key}]]" in text for key in unset)
        assert all(shown), f"[{name}] leaves keys out"
    # Providers and models are examples in comments: a gateway would use them.
    assert set(example) == set(settings.Settings.model_fields) - {"providers", "models"}


def test_the_example_shows_every_key_of_providers_and_models():
    text = re.sub("(?m)^# ", "", settings_example())
    for header, section in (
        ("[providers.openai]", settings.Provider),
        ("[[models]]", settings.Model),
    ):
        table = text.partition(header)[2].partition("\n[")[0]
        shown = {line.partition(" = ")[0] for line in table.splitlines()}
        assert set(section.model_fields) <= shown, header


def test_every_key_is_described():
    sections = [settings.Settings, settings.Provider, settings.Model]
    undescribed = []
    for section in sections:
        for name, field in section.model_fields.items():
            if not field.description:
                undescribed.append(f"{section.__name__}.{name}")
            if isinstance(field.default, Section) and not isinstance(field.default, PlanLimits):
                sections.append(type(field.default))
    assert not undescribed


def test_the_example_has_lines_of_at_most_100_characters():
    assert [line for line in settings_example().splitlines() if len(line) > 100] == []


def test_the_environment_goes_over_the_file(tmp_path):
    loaded = load(tmp_path, "[server]\nport = 1\nhost = '::1'", GATEWAY_PORT="2")
    assert (loaded.server.port, loaded.server.host) == (2, "::1")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[server]\nprot = 1", "server.prot"),
        ("[server]\nport = 'x'", "server.port"),
        ("[serve]\n", "serve"),
        ("[server", "not TOML"),
        ("[providers.a]\nkind = 'openai'", "providers.a"),
        ("[providers.gemini]\nkind = 'openai'", "providers.gemini"),
        ("[providers.a]\nkind = 'cohere'\nbase_url = 'http://a'", "providers.a.kind"),
        ("[[models]]\nname = 'a'\nprovider = 'b'", "models[0].provider"),
        ("[server]\nmetrics_host = '10.0.0.0/8'", "server.metrics_host"),
        ("[server]\nmetrics_host = ''", "server.metrics_host"),
        ("[server]\ncors_origins = ['https://app.example/']", "server.cors_origins"),
        ("[server]\ncors_origins = ['https://app.example', 'app.example']", "server.cors_origins"),
        ("[server]\ncors_origins = ['https://*.example']", "server.cors_origins"),
        ("[server]\ncors_origins = ['null']", "server.cors_origins"),
        ("[server]\ncors_origins = '*'", "server.cors_origins"),
        ("[tools.web_serch]", "tools.web_serch: unknown key; did you mean web_search"),
        ("[tools.web_search]\nbackend = 'google'", "tools.web_search.backend"),
        ("[tools.web_search]\nbackend = 'searxng'", "tools.web_search: url: must be the http://"),
        ("[tools.web_search]\nurl = 'http://a'", "tools.web_search: backend: must be searxng"),
        (
            "[tools.web_search]\nbackend = 'brave'\nurl = 'search.brave.com'",
            "tools.web_search: url: must be the http://",
        ),
        (
            "[tools.web_search]\nbackend = 'tavily'\napi_key = '${KEY}'",
            "tools.web_search.api_key: variables are not expanded",
        ),
        (
            "[tools.web_search]\nbackend = 'searxng'\nurl = 'http://127.0.0.1:8080'",
            "tools.web_search.url: http://127.0.0.1:8080 is the gateway's own address",
        ),
        (
            "[[models]]\nname = 'a'\nprovider = 'sandbox'\n"
            "[[models]]\nname = 'a'\nprovider = 'sandbox'",
            "models[1].name",
        ),
        ("[[models]]\nname = 'a*b'\nprovider = 'sandbox'", "name: may contain one *, at the end"),
        (
            "[[models]]\nname = 'a*'\nprovider = 'sandbox'\nupstream = 'b*'",
            "models.0: name: may contain one *, at the end; upstream must not contain any",
        ),
        ("[[models]]\nname = 'a'", "models.0: provider: exactly one of provider and deployments"),
        (
            "[[models]]\nname = 'a'\nprovider = 'sandbox'\ndeployments = [{provider = 'sandbox'}]",
            "models.0: provider: exactly one of provider and deployments is required",
        ),
        (
            "[[models]]\nname = 'a'\ndeployments = [{provider = 'sandbox'}, {provider = 'b'}]",
            "models[0].deployments[1].provider: no section [providers.b]",
        ),
        (
            "[[models]]\nname = 'a'\nupstream = 'u'\n"
            "deployments = [{provider = 'sandbox'}, {provider = 'sandbox', upstream = 'u'}]",
            "models.0: deployments[1]: duplicate deployment",
        ),
        (
            "[[models]]\nname = 'a'\ndeployments = [{provider = 'sandbox', weight = 0}]",
            "models.0: deployments: at least one must have a weight above 0",
        ),
        (
            "[[models]]\nname = 'a'\ndeployments = [{provider = 'sandbox', wait = 0}]",
            "models.0.deployments.0.wait: unknown key",
        ),
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path, text, named):
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, text)
    assert named in str(refused.value)


def test_a_wrong_key_never_shows_the_value_beside_it(tmp_path):
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, "[providers.a]\nkind='openai'\nbase_url='http://a'\napi_key=['sk-hush']")
    assert "sk-hush" not in str(refused.value)


def test_a_wrong_value_of_a_variable_names_the_variable(tmp_path):
    for environ, words in (
        ({"GATEWAY_PORT": "http"}, "GATEWAY_PORT: Input should be a valid integer"),
        ({"GATEWAY_PORT": "99999"}, "GATEWAY_PORT: Input should be less than"),
        ({"GATEWAY_GRPC": "x"}, "GATEWAY_GRPC: must be an address with a port"),
        (
            {"GATEWAY_PORT": "tcp://10.0.0.7:8080"},
            "Kubernetes sets this for a service named gateway: set enableServiceLinks: false",
        ),
    ):
        with pytest.raises(SettingsError) as wrong:
            load(tmp_path, **environ)
        assert words in str(wrong.value)
        assert str(wrong.value).startswith(next(iter(environ)))


PASTED = "sk-proj-SECRETSECRETSECRET1234"


@pytest.mark.parametrize(
    ("text", "path", "instead"),
    [
        ("[providers.openai]\napi_key_env = '{}'", "providers.openai.api_key_env", "api_key_file"),
        ("[providers.openai]\napi_key_file = '{}'", "providers.openai.api_key_file", "api_key"),
        (
            "[tools.web_search]\nbackend = 'brave'\napi_key_env = '{}'",
            "tools.web_search.api_key_env",
            "api_key_file",
        ),
        ("[admin]\nkey_env = '{}'", "admin.key_env", "api_key_file"),
    ],
)
@pytest.mark.parametrize(
    "key", [PASTED, "gsk_SECRETSECRET123", "AIzaSECRETSECRETSECRET1", "0123SECRET0123SECRET0123"]
)
def test_a_pasted_key_is_not_repeated(tmp_path, text, path, instead, key):
    with pytest.raises(SettingsError) as wrong:
        load(tmp_path, text.format(key))
    assert path in str(wrong.value)
    assert "looks like a key" in str(wrong.value)
    assert instead in str(wrong.value)
    assert "SECRET" not in str(wrong.value)


def test_names_of_variables_are_no_keys(tmp_path):
    for name in ("OPENAI_API_KEY", "KEY", "AZURE_OPENAI_KEY_2", "MYVERYLONGVARIABLENAME"):
        loaded = load(tmp_path, f"[providers.openai]\napi_key_env = '{name}'")
        assert loaded.providers["openai"].api_key_env == name
    with pytest.raises(SettingsError, match="letters, digits and _"):
        load(tmp_path, "[providers.openai]\napi_key_env = 'MY-KEY'")


def test_a_preset_with_another_address_keeps_kind_and_key(tmp_path):
    loaded = load(tmp_path, "[providers.groq]\nbase_url = 'https://proxy.example/groq/v1'")
    groq = loaded.providers["groq"]
    assert (groq.kind, groq.base_url) == ("openai", "https://proxy.example/groq/v1")
    assert groq.api_key_env == "GROQ_API_KEY"
    # A section with a kind is a server of its own, which must not be sent the maker's key.
    text = "[providers.openai]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'"
    assert load(tmp_path, text).providers["openai"].api_key_env == ""


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(SettingsError):
        settings.load({"GATEWAY_CONFIG": str(tmp_path / "none.toml")})
