"""`gateway import litellm`."""

import tomllib
from typing import Any

import yaml

from services.common.settings import parse
from services.config_files.litellm import translate
from tests.grid import each_row
from tests.services.commands.litellm_examples import HOME, TEAM
from tests.services.commands.litellm_leaves import lost_leaves


def translated(text: str, **environ: str) -> tuple[dict[str, Any], str, str]:
    """Return the settings, what is unsupported, and what remains to be done."""
    config = yaml.safe_load(text)
    assert lost_leaves(config) == []
    translation = translate(config, environ)
    content = tomllib.loads(translation.text("config.yaml"))
    parse(content, "the test")  # the gateway accepts it
    report = translation.report
    return content, "\n".join(report.unsupported), "\n".join(report.steps)


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
        {
            "provider": "azure",
            "upstream": "gpt-4o-eu",
            "weight": 3,
            "limits": {"requests_per_minute": 600},
        },
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
        *("model_list[].model_info.base_model (gpt-4o)", "cache_params.type: redis", "langfuse"),
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
        (
            "model: huggingface/together/org/x",
            "https://router.huggingface.co/v1",
            "org/x:together",
        ),
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
        ("model: vertex_ai/gemini-3", "write [providers.vertex] with the project"),
        ("model: bedrock/amazon.nova", "write [providers.bedrock] with the region"),
        ("model: sagemaker/x", "no provider 'sagemaker' here"),
        ("model: openai_like/x", "needs api_base"),
        ("model: openai/x, api_base: your_api_base", "'your_api_base' is no address"),
        ("model: openai/x, api_base: 'https://${HOST}/v1'", "'https://${HOST}/v1' is no address"),
        ("model: os.environ/MODEL", "no litellm_params.model, or one in a variable that is not"),
        ("model: [x]", "no litellm_params.model"),
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


def test_an_address_in_a_variable_is_replaced_by_its_value() -> None:
    entry = """model_list: [{model_name: os.environ/NAME, litellm_params:
        {model: os.environ/MODEL, api_base: os.environ/VLLM_URL, api_key: os.environ/KEY}}]"""
    content, _, steps = translated(
        entry, NAME="m", MODEL="openai/x", VLLM_URL="http://h:1/v1", KEY="secret"
    )
    assert content["providers"]["openai"] == {
        "kind": "openai",
        "base_url": "http://h:1/v1",
        "api_key_env": "KEY",
    }
    assert (models_of(content)["m"]["upstream"], steps) == ("x", "")
    _, _, steps = one_model("model: openai/x, api_base: os.environ/VLLM_URL")
    assert "providers.openai: VLLM_URL, which has the address, is not set; write its" in steps


def test_a_provider_at_the_port_of_the_gateway_moves_it() -> None:
    content, _, steps = one_model('model: openai/x, api_base: "http://0.0.0.0:8080"')
    assert content["server"] == {"port": 4000}
    assert "it listens on port 4000 instead" in steps


def test_a_key_of_a_maker_is_not_sent_to_another_server() -> None:
    content, _, _ = one_model('model: openai/x, api_base: "http://h:1/v1"')
    assert "api_key_env" not in content["providers"]["openai"]


@each_row(
    ("parameters", "base_url", "kind"),
    [
        (
            "model: azure_ai/claude, api_base: https://a.services.ai.azure.com/anthropic",
            "https://a.services.ai.azure.com/anthropic",
            "anthropic",
        ),
        (
            "model: azure/x, api_base: 'https://a.openai.azure.com/openai/deployments/x/chat?v=1'",
            "https://a.openai.azure.com/openai/v1",
            "openai",
        ),
        (
            "model: azure_ai/x, api_base: https://a.eastus.models.ai.azure.com",
            "https://a.eastus.models.ai.azure.com/v1",
            "openai",
        ),
        (
            "model: minimax/x, api_base: https://api.minimax.io/anthropic/v1/messages",
            "https://api.minimax.io/anthropic",
            "anthropic",
        ),
        (
            "model: anthropic/x, api_base: https://api.anthropic.com/v1/messages",
            "https://api.anthropic.com",
            "anthropic",
        ),
        ("model: azure/x", "https://azure-api-base.invalid/openai/v1", "openai"),
    ],
)
def test_addresses_are_those_of_the_api(parameters: str, base_url: str, kind: str) -> None:
    content, _, _ = one_model(parameters)
    (provider,) = content["providers"].values()
    assert (provider["base_url"], provider["kind"]) == (base_url, kind)


def test_features_of_public_configurations_are_kept() -> None:
    content, unsupported, steps = translated(HOME)
    models = models_of(content)
    assert [(one["provider"], one.get("weight")) for one in models["chat"]["deployments"]] == [
        ("nvidia", None),
        ("ollama-api-base-invalid", 0),
        ("cohere", 0),
    ]
    assert models["chat"]["fallbacks"] == ["azure-claude", "groq/llama"]
    assert models["chat"]["context_window"] == 128_000
    assert models["router"]["inputs"] == ["text", "image", "pdf"]
    assert models["local"]["upstream"] == "qwen3"
    assert content["providers"]["azure"]["headers"] == {"anthropic-beta": "context-1m"}
    assert content["limits"] == {"step_timeout_s": 90}
    assert content["response_cache"] == {"enabled": True}
    for line in (
        "model_list[3] (chat): a second deployment at cohere (command-r)",
        "model_list[].model_info.max_input_tokens (chat): differs from that of an entry before",
        "model_list[].litellm_params.extra_headers.x-tenant (azure-claude): a variable",
        "model_list[].litellm_params.tpm (groq/*): of a wildcard of a provider",
        "model_list[].model_info.input_cost_per_token (tuned): is no price",
        "litellm_settings.drop_params",
        "litellm_settings.request_timeout: router_settings.timeout is used",
        "litellm_settings.cache_params.ttl: is no number",
        "litellm_settings.fallbacks: router: a fallback with a request of its own",
        "litellm_settings.fallbacks: 'nothing' is not in model_list",
        "litellm_settings.internal_user_budget_duration: of a budget that is not set",
        "router_settings.model_group_alias.chat: is a name of model_list itself",
    ):
        assert line in unsupported
    assert "gateway model-groups set free --model 'chat'" in steps
    assert "gateway limits set --team lab --spend-per-month 5 --requests-per-minute 10" in steps


def test_limits_of_an_entry_are_those_of_its_deployment() -> None:
    content, unsupported, _ = one_model(
        "model: gpt-4o, rpm: 60, tpm: '9000', max_parallel_requests: 0", "    rpm: 70\n"
    )
    assert models_of(content)["m"]["deployments"] == [
        {
            "provider": "openai",
            "upstream": "gpt-4o",
            "limits": {"requests_per_minute": 60, "tokens_per_minute": 9000},
        }
    ]
    assert "litellm_params.max_parallel_requests (m): is no number in its range" in unsupported
    assert "model_list[].rpm (m): that of litellm_params is used" in unsupported


def test_deployments_beyond_the_most_of_a_model_are_listed() -> None:
    entries = ", ".join(
        f"{{model_name: m, litellm_params: {{model: openai/x{number}}}}}" for number in range(66)
    )
    result = translate(yaml.safe_load(f"model_list: [{entries}]"), {})
    assert len(result.content["models"][0]["deployments"]) == 64
    assert len(result.report.unsupported) == 2


def test_a_configuration_without_models_is_one() -> None:
    content, unsupported, steps = translated("general_settings: {store_model_in_db: true}")
    assert content == {}
    assert "models in LiteLLM's database are not read" in unsupported
    assert "model_list: is missing or empty" in steps


def test_values_of_the_helm_chart_are_one() -> None:
    content, unsupported, _ = translated(
        "replicaCount: 2\nproxy_config: {model_list: [{model_name: m, litellm_params: "
        "{model: gpt-4o}}]}"
    )
    assert [*models_of(content)] == ["m"]
    assert "replicaCount: of LiteLLM's Helm chart" in unsupported


def test_many_entries_with_one_key_share_a_line() -> None:
    entries = ", ".join(
        f"{{model_name: m{number}, litellm_params: {{model: gpt-4o, seed: 9}}}}"
        for number in range(7)
    )
    _, unsupported, _ = translated(f"model_list: [{entries}]")
    (line,) = unsupported.splitlines()
    assert "litellm_params.seed (m0, m1, m2, m3, m4 and 2 others)" in line


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
        "model_list: null\nlitellm_settings: [1]\nrouter_settings: 7\ngeneral_settings: null",
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
