"""Translation of an entry of LiteLLM's `model_list`: a deployment, with properties. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from services.config_files.litellm_providers import ImportedProviders, Refusal, split
from services.config_files.litellm_values import Report, Section

_RETRIES = "retries are built in"
_NO_DEFAULTS = "requests are sent with their own parameters only"
_PARAMETERS: Final = {
    **dict.fromkeys(("rpm", "tpm", "max_parallel_requests"), "of a wildcard of a provider"),
    **dict.fromkeys(
        ("timeout", "stream_timeout"),
        "limits.step_timeout_s is for all models; a request sets its own in fallback_config",
    ),
    **dict.fromkeys(
        ("max_tokens", "temperature", "top_p", "top_k", "extra_body", "reasoning_effort"),
        _NO_DEFAULTS,
    ),
    **dict.fromkeys(("thinking", "seed", "stop", "stream", "user"), _NO_DEFAULTS),
    "cooldown_time": "circuit breakers are built in (limits.breaker_failures)",
}
_PARAMETERS_BUILT_IN: Final = {
    "drop_params": "always so",
    "api_version": "Azure's v1 API needs none",
    "max_retries": _RETRIES,
    "num_retries": _RETRIES,
}
_INFO: Final = {
    "base_model": "set context_window, inputs and price of the model, where they are not known",
    "description": "models have none",
}
_ASSUMED = "assumed, or known of the model"
_INFO_BUILT_IN: Final = dict.fromkeys(
    (
        *("supports_function_calling", "supports_parallel_function_calling"),
        *("supports_response_schema", "supports_system_messages", "supports_tool_choice"),
        *("supports_reasoning", "supports_prompt_caching", "supports_native_streaming"),
    ),
    _ASSUMED,
)
_MODES = frozenset({"chat", "completion", "embedding", "responses"})
_PRICES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached_input",
    "cache_creation_input_token_cost": "cache_write",
}
_MEDIA = {"supports_vision": "image", "supports_pdf_input": "pdf", "supports_audio_input": "audio"}
_LIMITS = {
    "rpm": "requests_per_minute",
    "tpm": "tokens_per_minute",
    "max_parallel_requests": "concurrent_requests",
}
_MAX_LIMITS = {
    "requests_per_minute": 10**12,
    "tokens_per_minute": 10**12,
    "concurrent_requests": 10**6,
}
_MAX_PRICE = 1_000_000
_MAX_WEIGHT = 1_000


@dataclass
class EntryPlace:
    """A deployment: where an entry of `model_list` is served.

    Attributes:
        path: of the entry.
        provider: name of the provider's section.
        upstream: the provider's name for the model.
        weight: its share, or None.
        order: 1 for the entries that are used first.
        limits: on its calls.
        properties: of the model, with the path of the key that each is from.
    """

    path: str
    provider: str
    upstream: str
    weight: float | None
    order: float
    limits: dict[str, int] = field(default_factory=dict)
    properties: dict[str, tuple[Any, str]] = field(default_factory=dict)


class EntryReader:
    """Reader of one entry of `model_list`.

    Attributes:
        groups: its access groups.
    """

    def __init__(
        self,
        report: Report,
        providers: ImportedProviders,
        credentials: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.groups: list[str] = []
        self._report = report
        self._providers = providers
        self._credentials = credentials

    def read(self, path: str, name: str, values: dict[Any, Any]) -> EntryPlace | None:
        """Return the deployment of an entry; None if it needs no section.

        Raises:
            Refusal: it has no counterpart.
        """
        entry = Section(values, "model_list[]", self._report, model=name)
        entry.take("model_name")
        parameters = self._parameters(entry)
        info = entry.section("model_info")
        model = self._providers.resolved(parameters.text("model"))
        if not model:
            raise Refusal("no litellm_params.model, or one in a variable that is not set")
        mode = info.text("mode")
        if mode and mode not in _MODES:
            raise Refusal(f"mode {mode}: this gateway has no such endpoint")
        prefix, upstream = split(model, parameters.text("custom_llm_provider"))
        place: EntryPlace | None = None
        if name == model == "*":
            entry.needless("litellm_params", "PROVIDER/MODEL needs no entry, once its key is set")
        else:
            provider = self._providers.name_of(prefix, parameters)
            upstream = _of_wildcard(name, prefix, provider, _renamed(prefix, upstream))
            # The names of a provider's models begin with that of its section.
            if name != f"{provider}/*":
                place = EntryPlace(path, provider, upstream, *self._shares(entry, parameters))
                place.limits = _limits(parameters, entry)
                place.properties = _properties(parameters, info)
        self.groups = [one for one in info.items("access_groups") if isinstance(one, str)]
        for section, remarks, built_in in (
            (parameters, _PARAMETERS, _PARAMETERS_BUILT_IN),
            (info, _INFO, _INFO_BUILT_IN),
            (entry, _PARAMETERS, {}),
        ):
            section.list_unread(remarks, built_in)
        return place

    def _parameters(self, entry: Section) -> Section:
        """Return `litellm_params`, with the values of the credential that they name."""
        values = entry.values.get("litellm_params")
        own = entry.section("litellm_params")
        name = own.text("litellm_credential_name")
        credential = self._credentials.get(name, {})
        if name and not credential:
            raise Refusal(f"no credential {name!r} in credential_list")
        if not credential:
            return own
        merged = {**credential, **(values if isinstance(values, dict) else {})}
        merged.pop("litellm_credential_name", None)
        return Section(merged, own.path, self._report, model=str(entry.values["model_name"]))

    def _shares(self, entry: Section, parameters: Section) -> tuple[float | None, float]:
        """Return the weight and the order of an entry."""
        weight = parameters.number("weight", 0)
        order = parameters.number("order", 0)
        if weight is None:
            weight = entry.number("weight", 0)
        if order is None:
            order = entry.number("order", 0)
        if weight is not None:
            weight = min(weight, _MAX_WEIGHT)
        return weight, 1 if order is None else order


def _renamed(prefix: str, upstream: str) -> str:
    """Return the provider's name for a model, where LiteLLM writes it otherwise."""
    inference, _, model = upstream.partition("/")
    if prefix == "huggingface" and "/" in model:
        return f"{model}:{inference}"  # the provider of inference is a suffix there
    return upstream


def _limits(parameters: Section, entry: Section) -> dict[str, int]:
    """Return the limits of a deployment; `litellm_params` precede the entry."""
    limits: dict[str, int] = {}
    for section in (parameters, entry):
        for name, ours in _LIMITS.items():
            if (amount := section.number(name, 1, _MAX_LIMITS[ours])) is not None:
                if limits.setdefault(ours, int(amount)) != int(amount):
                    section.unsupported(name, "that of litellm_params is used")
    return limits


def _of_wildcard(name: str, prefix: str, provider: str, upstream: str) -> str:
    """Return the upstream of a model; "" for a wildcard, whose names are sent unchanged.

    Raises:
        Refusal: it is a wildcard that changes names, or none that exists here.
    """
    if "*" not in name and "*" not in upstream:
        return upstream
    if name.count("*") != 1 or not name.endswith("*"):
        raise Refusal("a wildcard here is one `*` at the end of the name")
    if name == f"{prefix}/{upstream}":
        if prefix != provider:
            raise Refusal(f"a wildcard of {prefix}; its models here are {provider}/NAME")
        if upstream == "*":
            return ""
        raise Refusal(f"all models of a provider are {provider}/NAME here, without a wildcard")
    if upstream not in (name, "*") or "/" in name:
        raise Refusal("a wildcard here sends the requested name unchanged")
    return ""


def _properties(parameters: Section, info: Section) -> dict[str, tuple[Any, str]]:
    """Return the properties of a model that its entry states, with the path of each."""
    properties: dict[str, tuple[Any, str]] = {}
    if context := info.whole("max_input_tokens"):
        properties["context_window"] = context, f"{info.path}.max_input_tokens"
    for name in ("max_output_tokens", "max_tokens"):
        if "max_output_tokens" in properties:
            if name in info.values:
                info.unsupported(name, "max_output_tokens is used")
        elif output := info.whole(name):
            properties["max_output_tokens"] = output, f"{info.path}.{name}"
    flags = {name: info.take(name) for name in _MEDIA if name in info.values}
    if True in flags.values() or flags.get("supports_vision") is False:
        inputs = [_MEDIA[name] for name, value in flags.items() if value is True]
        properties["inputs"] = ["text", *inputs], f"{info.path}.supports_vision"
    for name, value in flags.items():
        if not isinstance(value, bool):
            info.unsupported(name, "is neither true nor false")
        elif not value and name != "supports_vision" and "inputs" not in properties:
            info.unsupported(name)
    if price := _price(parameters, info):
        properties["price"] = price, f"{info.path}.input_cost_per_token"
    return properties


def _price(parameters: Section, info: Section) -> dict[str, str]:
    """Return the price per million tokens; `litellm_params` precede `model_info`."""
    price: dict[str, str] = {}
    for section in (parameters, info):
        for name, ours in _PRICES.items():
            if name not in section.values:
                continue
            dollars = _per_million(section.take(name))
            if dollars is None:
                section.unsupported(name, "is no price")
            elif price.setdefault(ours, dollars) != dollars:
                section.unsupported(name, "that of litellm_params is used")
    return price


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
