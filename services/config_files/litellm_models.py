"""Translation of LiteLLM's `model_list`: providers, their keys, models, deployments. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from services.common.settings.presets import PRESETS
from services.config_files.litellm_values import positive_int, tables, text, variable_of

_OPENAI = "openai"


class _Maker(NamedTuple):
    """What a prefix of LiteLLM's model names stands for.

    Attributes:
        preset: name of the preset here, or "" for a server that has only an address.
        default_url: the address without `api_base`, if there is no preset.
        version: what is appended to `api_base`, unless it ends so.
    """

    preset: str = ""
    default_url: str = ""
    version: str = ""


# By the prefix of `litellm_params.model`.
_MAKERS: Mapping[str, _Maker] = {
    **{
        name: _Maker(name)
        for name in (
            *("openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter"),
            *("perplexity", "xai", "cerebras"),
        )
    },
    "text-completion-openai": _Maker("openai"),
    "azure": _Maker("azure", version="/openai/v1"),
    "azure_ai": _Maker("azure", version="/openai/v1"),
    "together_ai": _Maker("together"),
    "fireworks_ai": _Maker("fireworks"),
    "ollama": _Maker(default_url="http://127.0.0.1:11434", version="/v1"),
    "ollama_chat": _Maker(default_url="http://127.0.0.1:11434", version="/v1"),
    "hosted_vllm": _Maker(),
    "openai_like": _Maker(),
    "custom_openai": _Maker(),
    "lm_studio": _Maker(default_url="http://127.0.0.1:1234", version="/v1"),
    "llamafile": _Maker(default_url="http://127.0.0.1:8080", version="/v1"),
    "litellm_proxy": _Maker(),
}
_ADDRESS_NEEDED = "needs api_base, which is missing or in a variable"
_READ_PARAMETERS = frozenset(
    {
        *("model", "api_key", "api_base", "base_url", "api_version", "weight", "order"),
        *("input_cost_per_token", "output_cost_per_token", "litellm_credential_name"),
        *("extra_headers", "custom_llm_provider", "drop_params", "max_retries", "num_retries"),
        *("cache_read_input_token_cost", "cache_creation_input_token_cost"),
    }
)
_READ_INFO = frozenset(
    {
        *("mode", "id", "db_model", "base_model", "max_tokens", "max_input_tokens"),
        *("max_output_tokens", "input_cost_per_token", "output_cost_per_token"),
        *("supports_vision", "supports_function_calling", "description", "metadata"),
        *("supports_pdf_input", "supports_audio_input", "supports_parallel_function_calling"),
        *("cache_read_input_token_cost", "cache_creation_input_token_cost"),
    }
)
_MODES = frozenset({"chat", "completion", "embedding", "responses"})
_PRICES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached_input",
    "cache_creation_input_token_cost": "cache_write",
}
_MAX_PRICE = 1_000_000


class _Refusal(Exception):
    """Error raised for an entry that cannot be translated; the message says why."""


@dataclass
class Imported:
    """What has been translated so far.

    Attributes:
        unsupported: lines about what has no counterpart.
        steps: lines about what remains to be done.
        providers: sections of providers by name.
        models: models by name.
    """

    unsupported: list[str]
    steps: list[str]
    providers: dict[str, dict[str, Any]] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)


def add_models(imported: Imported, config: Mapping[str, Any]) -> None:
    """Add the models and providers of `model_list`."""
    credentials = {
        str(item.get("credential_name")): tables(item, "credential_values")
        for item in config.get("credential_list") or ()
        if isinstance(item, dict)
    }
    places: dict[str, list[dict[str, Any]]] = {}
    for index, entry in enumerate(config["model_list"]):
        path = f"model_list[{index}]"
        name = entry.get("model_name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            imported.unsupported.append(f"{path}: has no model_name")
            continue
        path = f"{path} ({name})"
        try:
            place = _place(imported, path, name, entry, credentials)
        except _Refusal as error:
            imported.unsupported.append(f"{path}: {error}")
        else:
            places.setdefault(name, []).append(place)
    for name, places_of_model in places.items():
        if model := _model(imported, name, places_of_model):
            imported.models[name] = model


def _place(
    imported: Imported,
    path: str,
    name: str,
    entry: Mapping[str, Any],
    credentials: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the deployment of an entry, with properties of the model."""
    parameters, info = tables(entry, "litellm_params"), tables(entry, "model_info")
    credential = credentials.get(str(parameters.get("litellm_credential_name")), {})
    parameters = {**credential, **parameters}
    model = text(parameters.get("model"))
    if not model:
        raise _Refusal("litellm_params.model is missing or in a variable")
    mode = info.get("mode")
    if mode is not None and mode not in _MODES:
        raise _Refusal(f"mode {mode}: this gateway has no such endpoint")
    prefix, upstream = _split(model, text(parameters.get("custom_llm_provider")))
    provider = _provider(imported, path, prefix, parameters)
    _check_wildcards(name, prefix, upstream)
    place: dict[str, Any] = {"provider": provider, "upstream": upstream}
    order = positive_int(parameters.get("order") or entry.get("order"))
    weight = parameters.get("weight", entry.get("weight"))
    if order is not None and order > 1:
        place["weight"] = 0
    elif isinstance(weight, int | float) and not isinstance(weight, bool) and weight >= 0:
        place["weight"] = min(weight, 1000)
    place["properties"] = _properties(parameters, info)
    for name_of_other in sorted({*parameters} - _READ_PARAMETERS):
        imported.unsupported.append(f"{path}: litellm_params.{name_of_other}")
    for name_of_other in sorted({*info} - _READ_INFO):
        imported.unsupported.append(f"{path}: model_info.{name_of_other}")
    return place


def _split(model: str, provider: str) -> tuple[str, str]:
    """Return the prefix of a model's name, and the provider's own name for the model."""
    prefix, slash, upstream = model.partition("/")
    if provider:
        return provider, upstream if slash and prefix == provider else model
    if slash and prefix in _MAKERS:
        return prefix, upstream
    if slash and "." not in prefix and prefix.islower():
        return prefix, upstream
    for beginning, maker in (("claude", "anthropic"), ("gemini", "gemini")):
        if model.startswith(beginning):
            return maker, model
    return _OPENAI, model


def _check_wildcards(name: str, prefix: str, upstream: str) -> None:
    """Reject a wildcard that changes names: here, what it matches is sent unchanged."""
    if "*" not in name and "*" not in upstream:
        return
    if name.count("*") != 1 or not name.endswith("*"):
        raise _Refusal("a wildcard here is one `*` at the end of the name")
    if upstream not in (name, "*") and f"{prefix}/{upstream}" != name:
        raise _Refusal("a wildcard here sends the requested name unchanged")


def _provider(imported: Imported, path: str, prefix: str, parameters: Mapping[str, Any]) -> str:
    """Return the name of the provider of an entry; add it if it is new."""
    maker = _MAKERS.get(prefix)
    if maker is None:
        raise _Refusal(f"no provider {prefix} here; its OpenAI-compatible address may be one")
    section = _section(imported, path, maker, parameters)
    for name, existing in imported.providers.items():
        if existing == section:
            return name
    base = maker.preset or _name_of(section["base_url"], prefix)
    name, number = base, 1
    while name in imported.providers:
        number += 1
        name = f"{base}-{number}"
    imported.providers[name] = section
    return name


def _section(
    imported: Imported, path: str, maker: _Maker, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    preset = PRESETS.get(maker.preset)
    address = parameters.get("api_base") or parameters.get("base_url")
    url = text(address)
    if variable := variable_of(address):
        if preset is None or variable not in (preset.address_variable, preset.place_variable):
            imported.steps.append(
                f"{path}: replace the address in base_url by the value of {variable}, which "
                "settings cannot read from the environment"
            )
        url = f"https://{variable.lower().replace('_', '-')}.invalid"
    if not url:
        url = maker.default_url or (preset.address({}) if preset else "")
    if not url:
        raise _Refusal(_ADDRESS_NEEDED)
    url = url.rstrip("/")
    if maker.version and urlsplit(url).path.strip("/") == "":
        url += maker.version
    section: dict[str, Any] = {"kind": preset.kind if preset else "openai", "base_url": url}
    key = parameters.get("api_key")
    if variable := variable_of(key):
        section["api_key_env"] = variable
    elif literal := text(key):
        if not _is_dummy(literal):
            section["api_key"] = literal
            imported.steps.append(
                f"{path}: the key stands in the file; better use api_key_env or api_key_file"
            )
    elif preset is not None:
        section["api_key_env"] = preset.key_variable
    headers = parameters.get("extra_headers")
    if isinstance(headers, dict):
        section["headers"] = {str(name): str(value) for name, value in headers.items()}
    return section


def _is_dummy(key: str) -> bool:
    """Return whether a key is what servers without keys are given."""
    return key.lower() in ("none", "dummy", "fake", "fake-key", "anything", "empty", "not-needed")


def _name_of(url: str, prefix: str) -> str:
    """Return a name for the provider at an address."""
    host = urlsplit(url).hostname or ""
    return prefix if host in ("127.0.0.1", "localhost", "") else host.replace(".", "-")


def _properties(parameters: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a model that its entry states."""
    context = positive_int(info.get("max_input_tokens"))
    output = positive_int(info.get("max_output_tokens")) or positive_int(info.get("max_tokens"))
    properties: dict[str, Any] = {"context_window": context, "max_output_tokens": output}
    inputs = [
        medium
        for medium, flag in (
            ("image", "supports_vision"),
            ("pdf", "supports_pdf_input"),
            ("audio", "supports_audio_input"),
        )
        if info.get(flag) is True
    ]
    if inputs or info.get("supports_vision") is False:
        properties["inputs"] = ["text", *inputs]
    price = {
        name: dollars
        for field_name, name in _PRICES.items()
        if (dollars := _per_million(parameters.get(field_name, info.get(field_name)))) is not None
    }
    properties["price"] = price or None
    return {name: value for name, value in properties.items() if value is not None}


def _per_million(value: object) -> str | None:
    """Return dollars per token as dollars per million tokens, or None without a valid price."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        dollars = (Decimal(str(value)) * 1_000_000).quantize(Decimal("0.000001"))
    except InvalidOperation:
        return None
    if not dollars.is_finite() or not 0 <= dollars <= _MAX_PRICE:
        return None
    return f"{dollars.normalize():f}"


def _model(
    imported: Imported, name: str, places: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the model of all entries with one name; None if it needs no section."""
    properties: dict[str, Any] = {}
    for place in places:
        properties = {**place.pop("properties"), **properties}
    if name.endswith("*"):
        # The name of a provider's models begins with that of its section.
        if len(places) == 1 and name == f"{places[0]['provider']}/*":
            return None
        for place in places:
            place["upstream"] = ""
    distinct: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for place in places:
        at = (place["provider"], place["upstream"])
        if at in seen:
            imported.unsupported.append(f"{name}: a second deployment at {at[0]} ({at[1]})")
            continue
        seen.add(at)
        distinct.append({key: value for key, value in place.items() if value != ""})
    if len(distinct) == 1:
        (only,) = distinct
        only.pop("weight", None)
        upstream = only.get("upstream")
        return {
            "name": name,
            "provider": only["provider"],
            **({"upstream": upstream} if upstream and upstream != name else {}),
            **properties,
        }
    if not any(place.get("weight", 1) for place in distinct):
        distinct[0].pop("weight", None)
    return {"name": name, "deployments": distinct, **properties}
