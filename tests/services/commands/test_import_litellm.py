"""`gateway import litellm`."""

import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.settings import parse
from services.config_files.litellm import translate
from tests.grid import each_row
from tests.services.gateway_command import Command

# A team's proxy: two regions and a spare, a local server, budgets, a cache.
TEAM = """
model_list:
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-eu
      api_base: https://team-eu.openai.azure.com/
      api_key: os.environ/AZURE_EU_KEY
      api_version: "2025-01-01-preview"
      rpm: 600
      weight: 3
    model_info:
      base_model: azure/gpt-4o
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-us
      api_base: https://team-us.openai.azure.com
      api_key: os.environ/AZURE_US_KEY
      weight: 1
  - model_name: gpt-4o
    litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_API_KEY, order: 2}
  - model_name: sonnet
    litellm_params:
      model: anthropic/claude-sonnet-4-5
      api_key: os.environ/ANTHROPIC_API_KEY
    model_info:
      max_input_tokens: 200000
      max_output_tokens: 64000
      input_cost_per_token: 0.000003
      output_cost_per_token: 1.5e-05
      supports_vision: true
  - model_name: llama
    litellm_params: {model: ollama_chat/llama3.1, api_base: "http://gpu.lan:11434"}
  - model_name: embed
    litellm_params: {model: text-embedding-3-small, api_key: os.environ/OPENAI_API_KEY}
    model_info: {mode: embedding}
litellm_settings:
  drop_params: true
  request_timeout: 120
  fallbacks: [{gpt-4o: [sonnet]}, {sonnet: [gpt-4o, llama]}]
  context_window_fallbacks: [{llama: [sonnet]}]
  default_fallbacks: [llama]
  max_budget: 250
  budget_duration: 1d
  cache: true
  cache_params: {type: redis, host: os.environ/REDIS_HOST, ttl: 900}
  max_internal_user_budget: 9
  internal_user_budget_duration: 30d
  success_callback: [langfuse]
router_settings:
  routing_strategy: latency-based-routing
  num_retries: 2
  redis_host: os.environ/REDIS_HOST
  model_group_alias: {gpt-4: gpt-4o, old: {model: sonnet, hidden: true}}
general_settings:
  master_key: os.environ/LITELLM_MASTER_KEY
  database_url: os.environ/DATABASE_URL
  alerting: [slack]
environment_variables:
  REDIS_HOST: redis.lan
guardrails:
  - guardrail_name: pii
"""


def translated(text: str) -> tuple[dict[str, Any], str, str]:
    """Return the settings, what is unsupported, and what remains to be done."""
    translation = translate(yaml.safe_load(text))
    content = tomllib.loads(translation.text("config.yaml"))
    parse(content, "the test")  # the gateway accepts it
    return content, "\n".join(translation.unsupported), "\n".join(translation.steps)


def one_model(parameters: str, more: str = "") -> tuple[dict[str, Any], str, str]:
    return translated(
        f"model_list:\n  - model_name: m\n    litellm_params: {{{parameters}}}\n{more}"
    )


def models_of(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {model["name"]: model for model in content.get("models", [])}


def test_providers_are_told_apart_by_address_and_key() -> None:
    content, _, _ = translated(TEAM)
    assert content["providers"] == {
        "azure": {
            "kind": "openai",
            "base_url": "https://team-eu.openai.azure.com/openai/v1",
            "api_key_env": "AZURE_EU_KEY",
        },
        "azure-2": {
            "kind": "openai",
            "base_url": "https://team-us.openai.azure.com/openai/v1",
            "api_key_env": "AZURE_US_KEY",
        },
        "openai": {
            "kind": "openai",
            "base_url": "https://api.openai.com/v1",
            "api_key_env": "OPENAI_API_KEY",
        },
        "anthropic": {
            "kind": "anthropic",
            "base_url": "https://api.anthropic.com",
            "api_key_env": "ANTHROPIC_API_KEY",
        },
        "gpu-lan": {"kind": "openai", "base_url": "http://gpu.lan:11434/v1"},
    }


def test_entries_of_one_name_are_deployments() -> None:
    models = models_of(translated(TEAM)[0])
    assert models["gpt-4o"]["deployments"] == [
        {"provider": "azure", "upstream": "gpt-4o-eu", "weight": 3},
        {"provider": "azure-2", "upstream": "gpt-4o-us", "weight": 1},
        {"provider": "openai", "upstream": "gpt-4o", "weight": 0},
    ]
    assert models["gpt-4o"]["balance"] == "fastest"
    assert models["embed"]["provider"] == "openai"
    assert models["embed"]["upstream"] == "text-embedding-3-small"


def test_properties_prices_and_fallbacks_are_kept() -> None:
    models = models_of(translated(TEAM)[0])
    sonnet = models["sonnet"]
    assert (sonnet["context_window"], sonnet["max_output_tokens"]) == (200_000, 64_000)
    assert sonnet["price"] == {"input": "3", "output": "15"}
    assert sonnet["inputs"] == ["text", "image"]
    fallbacks = {name: model.get("fallbacks") for name, model in models.items()}
    assert fallbacks == {
        "gpt-4o": ["sonnet"],
        "sonnet": ["gpt-4o", "llama"],
        "llama": ["sonnet"],
        "embed": ["llama"],
        "gpt-4": ["sonnet"],
        "old": ["gpt-4o", "llama"],
    }
    assert models["old"]["upstream"] == "claude-sonnet-4-5"


def test_settings_of_the_proxy_are_kept() -> None:
    content, _, _ = translated(TEAM)
    assert content["limits"] == {"step_timeout_s": 120}
    assert content["response_cache"] == {"enabled": True, "ttl_s": 900}


def test_nothing_is_left_out_without_a_word() -> None:
    _, unsupported, steps = translated(TEAM)
    for name in (
        *("model_list[0] (gpt-4o): litellm_params.rpm", "cache_params.type: redis", "langfuse"),
        *("litellm_settings.max_budget: 250", "router_settings.num_retries: retries and"),
        *("router_settings.redis_host", "general_settings.database_url", "guardrails"),
        "general_settings.alerting",
    ):
        assert name in unsupported
    assert "gateway limits set --team NAME --spend-per-day 250" in steps
    assert "limits set --user NAME --period-days 30 --spend-per-period 9" in steps
    assert "`gateway admin-key create`" in steps
    assert "set in the environment of the gateway: REDIS_HOST" in steps
    assert "redis.lan" not in steps


@each_row(
    ("parameters", "base_url", "upstream"),
    [
        ("model: gpt-4o", "https://api.openai.com/v1", "gpt-4o"),
        ("model: openai/gpt-4o", "https://api.openai.com/v1", "gpt-4o"),
        ("model: claude-haiku-4-5", "https://api.anthropic.com", "claude-haiku-4-5"),
        ("model: groq/llama-3", "https://api.groq.com/openai/v1", "llama-3"),
        ("model: together_ai/org/x", "https://api.together.xyz/v1", "org/x"),
        ("model: openrouter/meta/llama-4", "https://openrouter.ai/api/v1", "meta/llama-4"),
        ("model: ollama/llama3", "http://127.0.0.1:11434/v1", "llama3"),
        ('model: openai/org/x, api_base: "http://h:1/v1/"', "http://h:1/v1", "org/x"),
        ('model: hosted_vllm/org/x, api_base: "http://h:1/v1"', "http://h:1/v1", "org/x"),
        (
            'model: org/x, custom_llm_provider: openai, api_base: "http://h/v1"',
            "http://h/v1",
            "org/x",
        ),
    ],
)
def test_a_prefix_names_the_provider(parameters: str, base_url: str, upstream: str) -> None:
    content, unsupported, _ = one_model(parameters)
    (provider,) = content["providers"].values()
    assert provider["base_url"] == base_url
    assert content["models"][0]["upstream"] == upstream
    assert unsupported == ""


@each_row(
    ("parameters", "words"),
    [
        ("model: vertex_ai/gemini-3", "no provider vertex_ai here"),
        ("model: hosted_vllm/x", "needs api_base"),
        ("model: os.environ/MODEL", "litellm_params.model is missing or in a variable"),
        ("model: 7", "litellm_params.model is missing"),
    ],
)
def test_an_entry_that_cannot_be_translated_is_listed(parameters: str, words: str) -> None:
    content, unsupported, _ = one_model(parameters)
    assert content == {}
    assert f"model_list[0] (m): {words}" in unsupported


def test_endpoints_that_do_not_exist_are_listed() -> None:
    more = "    model_info: {mode: image_generation}\n"
    content, unsupported, _ = one_model("model: dall-e-3", more)
    assert content == {}
    assert "mode image_generation: this gateway has no such endpoint" in unsupported


def test_a_key_in_the_file_is_kept_and_reported() -> None:
    content, _, steps = one_model("model: gpt-4o, api_key: sk-abcdefgh")
    assert content["providers"]["openai"]["api_key"] == "sk-abcdefgh"
    assert "sk-abcdefgh" not in steps
    assert "better use api_key_env or api_key_file" in steps
    local, _, _ = one_model('model: openai/x, api_base: "http://h/v1", api_key: none')
    assert "api_key" not in local["providers"]["openai"]


def test_an_address_in_a_variable_is_to_be_filled_in() -> None:
    _, _, steps = one_model("model: openai/x, api_base: os.environ/VLLM_URL")
    assert "replace the address in base_url by the value of VLLM_URL" in steps


def test_credentials_are_looked_up() -> None:
    more = (
        "credential_list:\n  - credential_name: eu\n    credential_values:\n"
        "      api_key: os.environ/EU_KEY\n      api_base: https://eu.example/v1\n"
    )
    content, _, _ = one_model("model: openai/x, litellm_credential_name: eu", more)
    assert content["providers"]["openai"] == {
        "kind": "openai",
        "base_url": "https://eu.example/v1",
        "api_key_env": "EU_KEY",
    }


@each_row(
    ("name", "model", "expected"),
    [
        ("openai/*", "openai/*", None),
        ("claude-*", "anthropic/claude-*", {"name": "claude-*", "provider": "anthropic"}),
        ("*", "openai/*", {"name": "*", "provider": "openai"}),
    ],
)
def test_a_wildcard_sends_the_requested_name(
    name: str, model: str, expected: dict[str, str] | None
) -> None:
    content, unsupported, _ = translated(
        f'model_list: [{{model_name: "{name}", litellm_params: {{model: "{model}"}}}}]'
    )
    assert content.get("models") == (None if expected is None else [expected])
    assert unsupported == ""


def test_a_wildcard_that_renames_is_listed() -> None:
    content, unsupported, _ = translated(
        'model_list: [{model_name: "my-*", litellm_params: {model: "openai/gpt-*"}}]'
    )
    assert "models" not in content
    assert "sends the requested name unchanged" in unsupported


@each_row(
    "text",
    [
        "model_list: []",
        "model_list: [1, null, {}, {model_name: a}, {model_name: b, litellm_params: 3}]",
        "model_list: []\nlitellm_settings: [1]\nrouter_settings: 7\ngeneral_settings: null",
        "model_list: []\nlitellm_settings: {fallbacks: {a: b}, default_fallbacks: 3}",
        "model_list: []\nlitellm_settings: {fallbacks: [1, {a: null}, {b: [{c: d}]}]}",
        "model_list: []\nlitellm_settings: {request_timeout: soon, cache: true, cache_params: 1}",
        "model_list: []\nlitellm_settings: {default_team_settings: [1]}\ncredential_list: [1]",
        'model_list: [{model_name: "é\\"]\\n", litellm_params: {model: "x\\u0007"}}]',
        "model_list: [{model_name: a, litellm_params: {model: x, weight: -1, order: a}}]",
        "model_list: [{model_name: a, litellm_params: {model: x}, "
        "model_info: {max_tokens: .inf, input_cost_per_token: .nan}}]",
    ],
)
def test_unexpected_values_break_nothing(text: str) -> None:
    translated(text)


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


@pytest.mark.parametrize(
    ("content", "words"),
    [
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
