"""Translation of a LiteLLM proxy's `config.yaml` to settings of this gateway. Pure.

Source: LiteLLM's documentation of `config.yaml` (docs.litellm.ai/docs/proxy/configs). What has no
counterpart is listed, so that nothing is lost without a word.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from services.config_files import toml
from services.config_files.litellm_models import Imported, add_models
from services.config_files.litellm_values import named, tables

_STRATEGIES = {
    "simple-shuffle": "weighted",
    "least-busy": "least_busy",
    "latency-based-routing": "fastest",
}
# Settings whose effect this gateway has without any setting.
_BUILT_IN = frozenset({"drop_params", "modify_params", "json_logs", "enable_pre_call_checks"})
_OF_LOGS = frozenset({"set_verbose", "turn_off_message_logging", "redact_user_api_key_info"})
_FALLBACKS = ("fallbacks", "context_window_fallbacks", "default_fallbacks")
_TIMEOUTS = ("request_timeout", "timeout")
_SECTIONS = frozenset(
    {
        *("model_list", "litellm_settings", "router_settings", "general_settings"),
        *("environment_variables", "credential_list"),
    }
)


@dataclass
class Translation:
    """The result of a translation.

    Attributes:
        content: tables of a settings file.
        unsupported: lines about what has no counterpart.
        steps: lines about what remains to be done, such as commands.
    """

    content: dict[str, Any] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    @property
    def has_keys(self) -> bool:
        """Whether the settings contain keys themselves."""
        return any("api_key" in one for one in self.content.get("providers", {}).values())

    def text(self, source: str) -> str:
        """Return the settings file, with comments about what it leaves out."""
        parts: list[list[str]] = [
            [
                *toml.comment(f"Made from {source} by `gateway import litellm`."),
                *toml.comment("`gateway config example` explains every key."),
            ]
        ]
        if self.unsupported:
            lines = ["Without a counterpart here:", *(f"- {one}" for one in self.unsupported)]
            parts.append([*toml.comment("\n".join(lines))])
        if self.steps:
            lines = ["Still to be done:", *(f"- {one}" for one in self.steps)]
            parts.append([*toml.comment("\n".join(lines))])
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


def translate(config: Mapping[str, Any]) -> Translation:
    """Return the settings for a parsed `config.yaml`.

    Raises:
        ValueError: it is no configuration of LiteLLM's proxy.
    """
    if not isinstance(config.get("model_list"), list):
        raise ValueError("no list `model_list`: this is no config.yaml of LiteLLM's proxy")
    result = Translation()
    imported = Imported(result.unsupported, result.steps)
    add_models(imported, config)
    litellm, router = tables(config, "litellm_settings"), tables(config, "router_settings")
    _add_fallbacks(imported, litellm, router, result)
    _add_strategy(imported, router, result)
    _add_aliases(imported, router, result)
    result.content["providers"] = imported.providers
    result.content["models"] = list(imported.models.values())
    _add_timeout(litellm, router, result)
    _add_cache(litellm, result)
    _list_budgets(litellm, result)
    _list_general(tables(config, "general_settings"), result)
    _list_rest(config, litellm, router, result)
    result.content = {name: value for name, value in result.content.items() if value}
    return result


def _add_aliases(imported: Imported, router: Mapping[str, Any], result: Translation) -> None:
    for alias, target in tables(router, "model_group_alias").items():
        name = target.get("model") if isinstance(target, dict) else target
        model = imported.models.get(str(name))
        if model is None:
            result.unsupported.append(
                f"router_settings.model_group_alias.{alias}: {name!r} is not in model_list"
            )
        elif str(alias) not in imported.models:
            copied = {key: value for key, value in model.items() if key != "name"}
            if not copied.get("upstream") and not copied.get("deployments"):
                copied["upstream"] = model["name"]
            imported.models[str(alias)] = {"name": str(alias), **copied}


def _add_fallbacks(
    imported: Imported, litellm: Mapping[str, Any], router: Mapping[str, Any], result: Translation
) -> None:
    chains, defaults = _chains(litellm, router, result)
    for name in chains:
        if name not in imported.models:
            result.unsupported.append(f"fallbacks: {name!r} is not in model_list")
    for name, model in imported.models.items():
        following = dict.fromkeys(chains.get(name) or defaults)
        usable = [one for one in following if one != name and one in imported.models]
        if usable and not name.endswith("*"):
            model["fallbacks"] = usable
        for one in following:
            if one not in imported.models:
                result.unsupported.append(f"fallbacks: {name}: {one!r} is not in model_list")


def _chains(
    litellm: Mapping[str, Any], router: Mapping[str, Any], result: Translation
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the fallbacks of each model, and those of all models without any."""
    chains: dict[str, list[str]] = {}
    defaults: list[str] = []
    for source in (litellm, router):
        defaults += named(source.get("default_fallbacks"))
        for setting in ("fallbacks", "context_window_fallbacks"):
            value = source.get(setting)
            pairs = [
                pair
                for item in (value if isinstance(value, list) else ())
                if isinstance(item, dict)
                for pair in item.items()
            ]
            for model, followers in pairs:
                chain = defaults if model == "*" else chains.setdefault(str(model), [])
                chain += named(followers)
                if isinstance(followers, list) and not all(map(_is_text, followers)):
                    result.unsupported.append(
                        f"{setting}: {model}: a fallback with a request of its own"
                    )
    return chains, defaults


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _add_strategy(imported: Imported, router: Mapping[str, Any], result: Translation) -> None:
    strategy = router.get("routing_strategy")
    if strategy is None:
        return
    balance = _STRATEGIES.get(str(strategy))
    if balance is None:
        result.unsupported.append(
            f"router_settings.routing_strategy: {strategy} (deployments are balanced by weight)"
        )
    elif balance != "weighted":
        for model in imported.models.values():
            if "deployments" in model:
                model["balance"] = balance


def _add_timeout(
    litellm: Mapping[str, Any], router: Mapping[str, Any], result: Translation
) -> None:
    seconds = [
        source[name]
        for source, name in ((router, "timeout"), (litellm, "request_timeout"))
        if isinstance(source.get(name), int | float) and source[name] > 0
    ]
    if seconds:
        result.content["limits"] = {"step_timeout_s": seconds[0]}


def _add_cache(litellm: Mapping[str, Any], result: Translation) -> None:
    if not litellm.get("cache"):
        return
    parameters = tables(litellm, "cache_params")
    cache: dict[str, Any] = {"enabled": True}
    ttl = parameters.get("ttl")
    if isinstance(ttl, int | float) and 0 < ttl <= 30 * 86_400:
        cache["ttl_s"] = ttl
    result.content["response_cache"] = cache
    kind = parameters.get("type")
    if kind not in (None, "local", "disk"):
        result.unsupported.append(
            f"litellm_settings.cache_params.type: {kind}; answers are cached in data_dir or S3"
        )


def _list_budgets(litellm: Mapping[str, Any], result: Translation) -> None:
    amount = litellm.get("max_budget")
    if amount is not None:
        result.unsupported.append(
            f"litellm_settings.max_budget: {amount} for all callers together; budgets here are of "
            "keys, users and teams"
        )
        result.steps.append(
            "put the users into a team with the budget: gateway limits set --team NAME "
            f"{_spend_option(litellm.get('budget_duration'))} {amount}"
        )
    for name in ("max_internal_user_budget", "max_end_user_budget"):
        if (amount := litellm.get(name)) is not None:
            duration = litellm.get("internal_user_budget_duration")
            result.steps.append(
                f"litellm_settings.{name}: for each user, gateway limits set --user NAME "
                f"{_spend_option(duration)} {amount}"
            )
    for item in litellm.get("default_team_settings") or ():
        if isinstance(item, dict) and item.get("max_budget") is not None:
            result.steps.append(
                f"gateway limits set --team {item.get('team_id', 'NAME')} "
                f"{_spend_option(item.get('budget_duration'))} {item['max_budget']}"
            )


# Options by LiteLLM's durations of a budget.
_CALENDAR: Final = {
    **dict.fromkeys(("1d", "24h", "daily"), "--spend-per-day"),
    **dict.fromkeys(("7d", "1w", "weekly"), "--spend-per-week"),
    **dict.fromkeys(("1mo", "monthly"), "--spend-per-month"),
}


def _spend_option(duration: object) -> str:
    """Return the options for a budget's duration; a budget without one never starts again."""
    text = str(duration)
    if text in _CALENDAR:
        return _CALENDAR[text]
    days = text.removesuffix("d")
    if days != text and days.isascii() and days.isdecimal():
        return f"--period-days {days} --spend-per-period"
    return "--spend-per-period"


def _list_general(general: Mapping[str, Any], result: Translation) -> None:
    if "master_key" in general:
        result.steps.append(
            "general_settings.master_key: `gateway admin-key create` makes a key for "
            "administration, and `gateway keys create --user NAME` one for each caller; LiteLLM's "
            "virtual keys are not valid here"
        )
    for name in general:
        if name == "database_url":
            result.unsupported.append(
                "general_settings.database_url: LiteLLM's tables are not read; "
                "storage.database_url names a database of this gateway's own"
            )
        elif name != "master_key":
            result.unsupported.append(f"general_settings.{name}")


def _list_rest(
    config: Mapping[str, Any],
    litellm: Mapping[str, Any],
    router: Mapping[str, Any],
    result: Translation,
) -> None:
    """List all settings that no other function reads."""
    read = {
        *_FALLBACKS,
        *_TIMEOUTS,
        *_BUILT_IN,
        *_OF_LOGS,
        *("cache", "cache_params", "routing_strategy", "model_group_alias", "max_budget"),
        *("budget_duration", "max_internal_user_budget", "internal_user_budget_duration"),
        *("max_end_user_budget", "default_team_settings"),
    }
    for section, values in (("litellm_settings", litellm), ("router_settings", router)):
        result.unsupported += [
            f"{section}.{name}{_remark(name, values[name])}" for name in values if name not in read
        ]
    variables = tables(config, "environment_variables")
    if variables:
        result.steps.append(
            f"set in the environment of the gateway: {', '.join(map(str, variables))} "
            "(environment_variables)"
        )
    result.unsupported += [f"{name}" for name in config if name not in _SECTIONS]


def _remark(name: str, value: object) -> str:
    """Return what this gateway has instead of a setting, after its name."""
    if name in ("num_retries", "allowed_fails", "cooldown_time", "retry_policy"):
        return ": retries and circuit breakers are built in (limits.breaker_failures)"
    if name.startswith("redis"):
        return ": workers need no Redis; several machines share PostgreSQL"
    if name in ("callbacks", "success_callback", "failure_callback", "service_callbacks"):
        return f": {', '.join(named(value))}; /metrics and [telemetry] are built in"
    return ""
