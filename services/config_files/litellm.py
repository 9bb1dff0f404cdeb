"""Translation of a LiteLLM proxy's `config.yaml` to settings of this gateway. Pure.

Source: LiteLLM's documentation of `config.yaml` (docs.litellm.ai/docs/proxy/configs). What has no
counterpart is listed, so that nothing is lost without a word.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from services.common.settings.sections import Server
from services.config_files import toml
from services.config_files.litellm_budgets import add_budgets
from services.config_files.litellm_models import ImportedModels
from services.config_files.litellm_providers import ImportedProviders
from services.config_files.litellm_routing import add_aliases, add_fallbacks, add_strategy
from services.config_files.litellm_values import Report, Section, named

_SECTIONS = ("litellm_settings", "router_settings", "general_settings")
_LISTS = ("model_list", "credential_list")
# Where LiteLLM's Helm chart has the configuration.
_CHART = "proxy_config"
_LITELLM_PORT = 4000
_MAX_TTL_S = 30 * 86_400

_BREAKER = "retries and circuit breakers are built in (limits.breaker_failures)"
_REDIS = "workers need no Redis; several machines share PostgreSQL"
_CALLBACKS = "/metrics, [telemetry] and [request_log] are built in"
_REMARKS: Final = {
    **dict.fromkeys(("num_retries", "allowed_fails", "cooldown_time", "retry_policy"), _BREAKER),
    **dict.fromkeys(("retry_after", "allowed_fails_policy", "disable_cooldowns"), _BREAKER),
    **dict.fromkeys(("redis_host", "redis_port", "redis_password", "redis_url"), _REDIS),
    **dict.fromkeys(
        ("callbacks", "success_callback", "failure_callback", "service_callbacks"), _CALLBACKS
    ),
    "content_policy_fallbacks": "a request's fallback_config says what fails a step (fail_on)",
    "database_url": "LiteLLM's tables are not read; storage.database_url names a database of this "
    "gateway's own",
    "store_model_in_db": "models in LiteLLM's database are not read",
    "stream_timeout": "limits.first_byte_timeout_s",
}
_IN_LOGS = "logs contain neither messages nor keys"
_BUILT_IN: Final = {
    "drop_params": "always so; what is left out is named in x-gateway-dropped",
    "modify_params": "always so",
    "json_logs": "logs are JSON, except on a terminal",
    "enable_pre_call_checks": "a model whose context is too small is left out",
    "turn_off_message_logging": _IN_LOGS,
    "redact_user_api_key_info": _IN_LOGS,
}


@dataclass
class Translation:
    """The result of a translation.

    Attributes:
        content: tables of a settings file.
        report: what has no counterpart, needs no setting, or remains to be done.
    """

    content: dict[str, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report)

    @property
    def has_keys(self) -> bool:
        """Whether the settings contain keys themselves."""
        return any("api_key" in one for one in self.content.get("providers", {}).values())

    @property
    def lists(self) -> list[tuple[str, list[str]]]:
        """The lines of the report under their titles."""
        titles = {
            "Without a counterpart here": self.report.unsupported,
            "Needs no setting here": self.report.needless,
            "Still to be done": self.report.steps,
        }
        return [(title, lines) for title, lines in titles.items() if lines]

    def text(self, source: str) -> str:
        """Return the settings file, with comments about what it leaves out."""
        parts: list[list[str]] = [
            [
                *toml.comment(f"Made from {source} by `gateway import litellm`."),
                *toml.comment("`gateway config example` explains every key."),
            ]
        ]
        for title, lines in self.lists:
            parts.append([*toml.comment("\n".join([f"{title}:", *(f"- {one}" for one in lines)]))])
        for name, value in self.content.items():
            if isinstance(value, list):
                parts += [[*toml.table(f"[[{name}]]", item)] for item in value]
            elif name == "providers":
                parts += [
                    [*toml.table(toml.header_of(name, key), item)] for key, item in value.items()
                ]
            else:
                parts.append([*toml.table(f"[{name}]", value)])
        return toml.join(parts)


def translate(config: Mapping[str, Any], environ: Mapping[str, str]) -> Translation:
    """Return the settings for a parsed `config.yaml`.

    Variables in addresses and names of models are replaced by their values, as settings cannot read
    them; variables with keys stay variables.

    Args:
        config: the content of the file.
        environ: values of variables, unless `environment_variables` has them.

    Raises:
        ValueError: it is no configuration of LiteLLM's proxy.
    """
    result = Translation()
    report = result.report
    root = Section(_of_chart(config, report), "", report)
    if not any(name in root.values for name in (*_LISTS, *_SECTIONS)):
        raise ValueError("no list `model_list`: this is no config.yaml of LiteLLM's proxy")
    if not isinstance(root.values.get("model_list") or [], list):
        raise ValueError("`model_list` must be a list")
    if not root.values.get("model_list"):
        report.steps.append(
            "model_list: is missing or empty, so models stand elsewhere (LiteLLM's database?); add "
            "them as [[models]]"
        )
    variables = {**environ, **_variables(root, report)}
    models = ImportedModels(report, ImportedProviders(report, variables))
    models.add(root.items("model_list"), _credentials(root, report))
    litellm, router, general = (root.section(name) for name in _SECTIONS)
    add_fallbacks(models, litellm, router, report)
    add_strategy(models, router)
    add_aliases(models, router)
    result.content["server"] = _server(models, report)
    result.content["providers"] = models.providers.sections
    result.content["models"] = list(models.models.values())
    result.content["limits"] = _limits(litellm, router)
    result.content["response_cache"] = _cache(litellm)
    add_budgets(litellm, report)
    if general.take("master_key") is not None:
        report.steps.append(
            "general_settings.master_key: `gateway admin-key create` makes a key for "
            "administration, and `gateway keys create --user NAME` one for each caller; LiteLLM's "
            "virtual keys are not valid here"
        )
    for section in (litellm, router, general, root):
        section.list_unread(_remarks(section), _BUILT_IN)
    result.content = {name: value for name, value in result.content.items() if value}
    return result


def _of_chart(config: Mapping[str, Any], report: Report) -> Mapping[str, Any]:
    """Return the configuration, also if it is within the values of LiteLLM's Helm chart."""
    within = config.get(_CHART)
    if not isinstance(within, dict):
        return config
    report.unsupported += [
        f"{name}: of LiteLLM's Helm chart; this gateway has its own (deploy/helm)"
        for name in config
        if name != _CHART
    ]
    return within


def _variables(root: Section, report: Report) -> dict[str, str]:
    variables = root.section("environment_variables").values
    if variables:
        report.steps.append(
            f"environment_variables: set in the environment of the gateway: {', '.join(variables)}"
        )
    return {name: str(value) for name, value in variables.items()}


def _credentials(root: Section, report: Report) -> dict[str, Mapping[str, Any]]:
    """Return the values of each credential of `credential_list`."""
    credentials: dict[str, Mapping[str, Any]] = {}
    for index, item in enumerate(root.items("credential_list")):
        credential = Section(item, f"credential_list[{index}]", report)
        name = credential.text("credential_name")
        credentials[name] = credential.section("credential_values").values
        credential.list_unread({}, {})
    return credentials


def _remarks(section: Section) -> dict[str, str]:
    """Return what this gateway has instead of settings, with the names of callbacks."""
    remarks = dict(_REMARKS)
    for name, remark in _REMARKS.items():
        if remark is _CALLBACKS and name in section.values:
            remarks[name] = f"{', '.join(named(section.values[name]))}; {remark}"
    return remarks


def _server(models: ImportedModels, report: Report) -> dict[str, Any]:
    """Return a port that no provider's address has, if one has this gateway's own."""
    urls = [one["base_url"] for one in models.providers.sections.values()]
    if not any(Server().is_at(url) for url in urls):
        return {}
    for port in count(_LITELLM_PORT):
        if not any(Server(port=port).is_at(url) for url in urls):
            break
    report.steps.append(
        f"server: a provider of model_list is at port {Server().port} of this machine, this "
        f"gateway's own; it listens on port {port} instead"
    )
    return {"port": port}


def _limits(litellm: Section, router: Section) -> dict[str, Any]:
    seconds = router.number("timeout", 0.001)
    other = litellm.number("request_timeout", 0.001)
    if seconds is None:
        seconds = other
    elif other is not None and other != seconds:
        litellm.unsupported("request_timeout", "router_settings.timeout is used")
    return {} if seconds is None else {"step_timeout_s": seconds}


def _cache(litellm: Section) -> dict[str, Any]:
    is_on = litellm.take("cache")
    if not is_on:
        if is_on is not None:
            litellm.needless("cache", "off, as here by default")
        return {}
    parameters = litellm.section("cache_params")
    cache: dict[str, Any] = {"enabled": True}
    ttl = parameters.number("ttl", 0.001, _MAX_TTL_S)
    if ttl is not None:
        cache["ttl_s"] = ttl
    if kind := parameters.text("type"):
        remark = f"{kind}; answers are cached in data_dir or S3"
        if kind in ("local", "disk"):
            parameters.needless("type", remark)
        else:
            parameters.unsupported("type", remark)
    parameters.list_unread({}, {})
    return cache
