"""Sections of the settings for providers and their models."""

import os
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from yarl import URL

from services.common.settings.base import Name, Section, VariableName, setting, without_variables
from services.common.settings.clouds import (
    BEDROCK,
    BEDROCK_KEY,
    VERTEX,
    ApiVersion,
    Credentials,
    Project,
    Region,
    azure_scope,
    complete_section,
)
from services.common.settings.presets import PRESETS

# Settings of some kinds of providers alone.
_KINDS_OF: Mapping[str, Sequence[str]] = {
    "region": (BEDROCK, VERTEX),
    "profile": (BEDROCK,),
    "guardrail": (BEDROCK,),
    "project": (VERTEX,),
    "api_version": ("openai",),
    "native_tools": ("gemini", VERTEX),
    "batches": ("openai", "anthropic", "gemini"),
    "credentials": ("openai", "anthropic", "gemini", VERTEX),
}
_CREDENTIAL_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})

# At the end of a model's name: matches every name with that prefix.
WILDCARD = "*"

Input = Literal["text", "image", "pdf", "audio", "video"]
# Load balancing method for the deployments of a model.
Balance = Literal["weighted", "least_busy", "fastest"]
MAX_DEPLOYMENTS = 64


# A price in dollars. With six decimals, the price of a token is a whole number of picodollars.
Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000, decimal_places=6)]


class Price(Section):
    """The price of a model in US dollars, as a number or as text.

    Prices are per million tokens; `web_search` and `request` are per thousand, `audio_hour` is per
    hour, `image` per image that is made, and `character` per million characters that are spoken. A
    missing price defaults to that of the more general kind: `cached_input` to `input`, and
    so on.
    """

    input: Dollars | None = None
    output: Dollars | None = None
    cached_input: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    reasoning: Dollars | None = None
    input_audio: Dollars | None = None
    input_image: Dollars | None = None
    input_video: Dollars | None = None
    cached_audio: Dollars | None = None
    cached_image: Dollars | None = None
    output_audio: Dollars | None = None
    output_image: Dollars | None = None
    output_video: Dollars | None = None
    web_search: Dollars | None = None
    request: Dollars | None = None
    audio_hour: Dollars | None = None
    image: Dollars | None = None
    character: Dollars | None = None


# An amount of calls or tokens.
Amount = Annotated[int, Field(ge=1, le=10**12)]


class CallLimits(Section):
    """Limits on the calls of a provider or of a deployment, by all workers together.

    Tokens are those of input and output.
    """

    requests_per_minute: Amount | None = None
    tokens_per_minute: Amount | None = None
    concurrent_requests: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class Guardrail(Section):
    """A guardrail of Bedrock."""

    id: Annotated[str, Field(pattern=r"^(([a-z0-9]+)|(arn:aws[a-z-]*:bedrock:[a-z0-9-:/]+))$")]
    version: Annotated[str, Field(pattern=r"^([1-9][0-9]{0,7}|DRAFT)$")]


class Provider(Section):
    """A server that has models."""

    kind: Annotated[
        Literal["openai", "anthropic", "gemini", "bedrock", "vertex", "sandbox"],
        Field(
            description="openai (any compatible server) | anthropic | gemini | bedrock | vertex | "
            "sandbox"
        ),
    ]
    base_url: str = setting(
        "", "address of the API; the providers that `gateway providers` lists need none"
    )
    api_key: SecretStr = setting(SecretStr(""), "the key itself", example="…")
    api_key_env: VariableName = setting("", "variable with the key")
    api_key_file: str = setting(
        "",
        "file with the key, reloaded on SIGHUP; the variable OPENAI_API_KEY_FILE also sets "
        "its path",
        example="/run/secrets/openai",
    )
    region: Region = setting(
        "",
        "bedrock: the AWS region; default: AWS_REGION, AWS_DEFAULT_REGION or us-east-1. vertex: "
        "the location, also global, us or eu; default: GOOGLE_CLOUD_LOCATION, CLOUD_ML_REGION or "
        "global",
        example="eu-central-1",
    )
    project: Project = setting(
        "",
        "vertex only: the Google Cloud project; default: GOOGLE_CLOUD_PROJECT or "
        "ANTHROPIC_VERTEX_PROJECT_ID",
        example="my-project",
    )
    credentials: Credentials = setting(
        "",
        "whose access tokens requests have in place of an API key: azure (Microsoft Entra ID) or "
        "google; default: google for vertex without a key",
        example="azure",
    )
    credentials_file: str = setting(
        "",
        "google only: the file of a service account or of a workload identity, in place of the "
        "usual credentials",
        example="/run/secrets/google.json",
    )
    api_version: ApiVersion = setting(
        "",
        "Azure only: call deployments (…/openai/deployments/NAME) with this version of its older "
        "API; default: its v1 API",
        example="2024-10-21",
    )
    guardrail: Guardrail | None = setting(
        None,
        "bedrock only: the guardrail of all requests, by its id or ARN and its version",
        example={"id": "gr1abcd2efgh", "version": "1"},
    )
    profile: str = setting(
        "",
        "bedrock only: a profile of the shared AWS files, in place of the usual credentials",
        example="production",
    )
    headers: dict[str, str] = setting({}, "sent with every request, for example for a proxy")
    pass_stateful: bool = setting(
        False,
        "let callers refer to what is stored at the provider (files, …), in the one account "
        "that they share there",
    )
    fetches_urls: bool | None = setting(
        None,
        "send image URLs to the provider, which fetches them; default: false for servers on "
        "the operator's own network, else true",
        example=True,
    )
    native_tools: bool | None = setting(
        None,
        "gemini and vertex only: run the web searches, page fetches and programs of callers of "
        "other APIs with Google's own tools, which cost extra (docs/web-search.md); default: those "
        "that the gateway has no tool for",
        example=True,
    )
    responses: bool | None = setting(
        None,
        "the server supports OpenAI's /responses; default: true for OpenAI and for Azure at "
        "…/openai/v1. Other servers, and those that answer 404, get chat completions",
        example=True,
    )
    batches: bool | None = setting(
        None,
        "openai, anthropic and gemini only: send the requests of batches to the server's own batch "
        "service (docs/batches.md); default: true for OpenAI, Anthropic and Google themselves",
        example=False,
    )
    batch_price_factor: Annotated[float, Field(ge=0, le=1)] = setting(
        0.5, "what tokens cost in that service, as a part of their usual price"
    )
    health_check_every_s: Annotated[float, Field(ge=0)] = setting(
        0,
        "interval at which each worker asks for the list of models, or for one token if there is "
        "none, while models of the provider are skipped; they are called again once it answers; "
        "0: never",
    )
    health_check_timeout_s: Annotated[float, Field(gt=0, le=60)] = setting(
        5, "time for the answer of a health check, at most 60"
    )
    limits: CallLimits | None = setting(
        None,
        "on calls of the provider by all workers together (docs/load-balancing.md): "
        "requests_per_minute, tokens_per_minute, concurrent_requests. When one is reached, other "
        "deployments and fallbacks are called; without any, the caller gets 429",
        example={"requests_per_minute": 500, "concurrent_requests": 50},
    )
    price: Price | None = setting(
        None,
        "for its models without a price of their own; a self-hosted server costs nothing per token",
        example={"input": 0, "output": 0},
    )

    @field_validator("base_url", "api_key", "api_key_env", "api_key_file", "headers", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @model_validator(mode="before")
    @classmethod
    def _of_region(cls, fields: Any) -> Any:
        """Add the address of a cloud in a region."""
        return complete_section(fields, os.environ) if isinstance(fields, dict) else fields

    @model_validator(mode="after")
    def _is_of_its_cloud(self) -> Self:
        """Check that the settings of a cloud are those of a provider there."""
        for name, kinds in _KINDS_OF.items():
            if getattr(self, name) and self.kind not in kinds:
                allowed = " or ".join(kinds)
                raise ValueError(f"{name}: allowed only for providers of kind {allowed}")
        if self.credentials_file and self.tokens_of != "google":
            raise ValueError('credentials_file: allowed only with credentials = "google"')
        return self

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.kind == BEDROCK and URL(self.base_url).path.rstrip("/").endswith("/openai/v1"):
            raise ValueError(
                'base_url: is the OpenAI-compatible endpoint of Bedrock; set kind = "openai", or '
                "leave base_url out"
            )
        if self.kind != "sandbox" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url: must begin with http:// or https://")
        if self.responses and self.kind != "openai":
            raise ValueError("responses: allowed only for providers of kind openai")
        return self

    @property
    def tokens_of(self) -> Credentials:
        """Whose access tokens requests have; "" for those with a key, and for others."""
        if self.has_credential_headers:
            return ""
        if self.kind == VERTEX and not (self.api_key.get_secret_value() or self.api_key_env):
            return "google"
        return self.credentials

    @property
    def token_scope(self) -> str:
        """The scope of Entra ID's tokens."""
        return azure_scope(self.base_url)

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the provider's key, or "" if it has none."""
        if self.profile or self.credentials:
            return ""
        return self.api_key.get_secret_value() or environ.get(self.api_key_env, "")

    def missing_key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the configured variable of a missing key, or "" if no key is missing.

        No key is needed if configured headers contain credentials.
        """
        if self.kind == BEDROCK and (self.profile or self.api_key_env == BEDROCK_KEY):
            return ""  # without a key, requests are signed
        if self.tokens_of:
            return ""
        return "" if self.key(environ) or self.has_credential_headers else self.api_key_env

    @property
    def has_credential_headers(self) -> bool:
        """Whether the configured headers contain credentials."""
        return bool(_CREDENTIAL_HEADERS & {name.lower() for name in self.headers})


class Deployment(Section):
    """A deployment: a provider, its name for the model, its share and its limits."""

    provider: Name
    upstream: str = ""
    weight: Annotated[float, Field(ge=0, le=1_000)] = 1
    limits: CallLimits | None = None


class Model(Section):
    """A model under the name that callers write, or a wildcard (`claude-*`) for many names."""

    name: Annotated[
        Name,
        Field(
            description='name that callers use; "claude-*" matches every name with that prefix. '
            "Full names take precedence, then longer wildcards"
        ),
    ]
    provider: Name | None = setting(None, "name of the provider's section")
    upstream: str = setting("", "the provider's name for the model; default: the requested name")
    deployments: Annotated[list[Deployment], Field(max_length=MAX_DEPLOYMENTS)] = setting(
        [],
        "instead of provider: several deployments of the model (docs/load-balancing.md); one "
        "of weight 0 is used only if no other is available. Each may have an `upstream` of "
        "its own, and `limits`, as a provider",
        example=[{"provider": "azure", "weight": 3}, {"provider": "openai", "weight": 0}],
    )
    balance: Balance = setting(
        "weighted",
        "weighted | least_busy (fewest running calls of this process) | fastest (shortest "
        "time to the first content)",
    )
    sticky: bool = setting(True, "keep a conversation at one deployment, for the provider's cache")
    inputs: list[Input] | None = setting(
        None, "of text image pdf audio video; default: from the catalogue, or all"
    )
    context_window: Annotated[int, Field(ge=1)] | None = setting(
        None, "tokens; default: from the catalogue, as the next"
    )
    max_output_tokens: Annotated[int, Field(ge=1)] | None = setting(None, "tokens of an answer")
    thinking: bool | None = setting(
        None,
        "the model can think; for kind openai: it thinks by default. This and the next four "
        "override the built-in catalogue",
        example=True,
    )
    adaptive: bool | None = setting(
        None, "Anthropic only; true: thinking is set by an effort, not by a budget", example=False
    )
    efforts: list[Name] | None = setting(
        None, "supported efforts, weakest first", example=["low", "high"]
    )
    thinking_off: dict[str, Any] | None = setting(
        None, "fields that disable thinking", example={"reasoning_effort": "none"}
    )
    refuses: list[Name] | None = setting(
        None,
        "fields that are never sent; for max_tokens or max_completion_tokens, the other one "
        'is sent. "prefill": a final assistant message; "reasoning_content": thinking of '
        "earlier turns",
        example=["temperature"],
    )
    fallbacks: list[Name] = setting(
        [],
        "models that `auto` may try, in order; for embeddings, only those with the same "
        "vector_space",
    )
    deprecated_at: date | None = setting(
        None,
        "when the model was or will be deprecated, for lists of models; default: as its provider "
        "says, as the next",
        example="2026-01-31",
    )
    retires_at: date | None = setting(
        None, "when the model is or will be removed", example="2026-12-31"
    )
    vector_space: Name | None = setting(
        None,
        "for embedding models: models with the same name here return the same vectors for a "
        "text, such as one model at two providers, and can replace each other; default: no "
        "replacement",
        example="te3-small",
    )
    price: Price | None = setting(
        None,
        "dollars per million tokens; also cache_write, cache_write_1h, reasoning, "
        "input_audio, input_image, input_video, cached_audio, cached_image, output_audio, "
        "output_image, output_video; web_search and request per thousand, audio_hour per "
        "hour, image per image, character per million characters; default: the published "
        "price, if known",
        example={"input": 0.15, "output": "0.6", "cached_input": 0.075},
    )

    @model_validator(mode="after")
    def _has_wildcard_at_the_end(self) -> Self:
        upstreams = [self.upstream, *(deployment.upstream for deployment in self.deployments)]
        if WILDCARD in self.name[:-1] or any(WILDCARD in upstream for upstream in upstreams):
            raise ValueError(
                f"name: may contain one {WILDCARD}, at the end; upstream must not contain any"
            )
        return self

    @model_validator(mode="after")
    def _is_served_somewhere(self) -> Self:
        if (self.provider is None) == (not self.deployments):
            raise ValueError("provider: exactly one of provider and deployments is required")
        places = [(deployment.provider, deployment.upstream) for deployment in self.served_by]
        for index, place in enumerate(places):
            if place in places[:index]:
                raise ValueError(f"deployments[{index}]: duplicate deployment")
        if self.deployments and not any(deployment.weight for deployment in self.deployments):
            raise ValueError("deployments: at least one must have a weight above 0")
        return self

    @property
    def served_by(self) -> Sequence[Deployment]:
        """The deployments; without configured ones, a single one of the model's provider.

        A deployment without an `upstream` of its own has that of the model.
        """
        if self.provider is not None:
            return (Deployment(provider=self.provider, upstream=self.upstream),)
        return [
            deployment
            if deployment.upstream
            else deployment.model_copy(update={"upstream": self.upstream})
            for deployment in self.deployments
        ]

    @property
    def is_wildcard(self) -> bool:
        """Whether it matches every name with its prefix."""
        return self.name.endswith(WILDCARD)


def with_preset(name: str, section: Any) -> Any:
    """Return a provider's section, completed with the preset of that name.

    A section with an address of its own takes the rest only if it has no kind: with one it is a
    server of another maker, which must not be sent the maker's key.
    """
    preset = PRESETS.get(name)
    if preset is None or not isinstance(section, dict):
        return section
    if "base_url" in section and "kind" in section:
        return section
    if section.get("kind", preset.kind) != preset.kind:
        return section  # the preset's address has another kind
    from_preset: dict[str, Any] = {"kind": preset.kind}
    # The address of a cloud follows from the region.
    if preset.kind not in (BEDROCK, VERTEX) and (url := preset.address({})):
        from_preset["base_url"] = url
    if "api_key" not in section and "credentials" not in section and preset.key_variable:
        from_preset["api_key_env"] = preset.key_variable
    return from_preset | section
