"""Sections of the settings for providers and their models."""

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from services.common.presets import PRESETS
from services.common.settings.base import Name, Section, without_variables

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
    hour. A missing price defaults to that of the more general kind: `cached_input` to `input`, and
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


class Provider(Section):
    """A server that has models."""

    kind: Literal["openai", "anthropic", "gemini", "sandbox"]
    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    api_key_env: str = ""
    api_key_file: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    pass_stateful: bool = False
    fetches_urls: bool | None = None
    responses: bool | None = None
    price: Price | None = None

    @field_validator("base_url", "api_key", "api_key_env", "api_key_file", "headers", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.kind != "sandbox" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url: must begin with http:// or https://")
        if self.responses and self.kind != "openai":
            raise ValueError("responses: allowed only for providers of kind openai")
        return self

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the provider's key, or "" if it has none."""
        return self.api_key.get_secret_value() or environ.get(self.api_key_env, "")

    def missing_key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the configured variable of a missing key, or "" if no key is missing.

        No key is needed if configured headers contain credentials.
        """
        if self.key(environ) or _CREDENTIAL_HEADERS & {name.lower() for name in self.headers}:
            return ""
        return self.api_key_env


class Deployment(Section):
    """A deployment: a provider, and its name for the model."""

    provider: Name
    upstream: str = ""
    weight: Annotated[float, Field(ge=0, le=1_000)] = 1


class Model(Section):
    """A model under the name that callers write, or a wildcard (`claude-*`) for many names."""

    name: Name
    provider: Name | None = None
    upstream: str = ""
    deployments: Annotated[list[Deployment], Field(max_length=MAX_DEPLOYMENTS)] = Field(
        default_factory=list
    )
    balance: Balance = "weighted"
    sticky: bool = True
    inputs: list[Input] | None = None
    context_window: Annotated[int, Field(ge=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    thinking: bool | None = None
    adaptive: bool | None = None
    efforts: list[Name] | None = None
    thinking_off: dict[str, Any] | None = None
    refuses: list[Name] | None = None
    fallbacks: list[Name] = Field(default_factory=list)
    vector_space: Name | None = None
    price: Price | None = None

    @model_validator(mode="after")
    def _has_wildcard_at_the_end(self) -> Self:
        upstreams = [self.upstream, *(one.upstream for one in self.deployments)]
        if WILDCARD in self.name[:-1] or any(WILDCARD in upstream for upstream in upstreams):
            raise ValueError(
                f"name: may contain one {WILDCARD}, at the end; upstream must not contain any"
            )
        return self

    @model_validator(mode="after")
    def _is_served_somewhere(self) -> Self:
        if (self.provider is None) == (not self.deployments):
            raise ValueError("provider: exactly one of provider and deployments is required")
        places = [(one.provider, one.upstream) for one in self.served_by]
        for index, place in enumerate(places):
            if place in places[:index]:
                raise ValueError(f"deployments[{index}]: duplicate deployment")
        if self.deployments and not any(one.weight for one in self.deployments):
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
            one if one.upstream else one.model_copy(update={"upstream": self.upstream})
            for one in self.deployments
        ]

    @property
    def is_wildcard(self) -> bool:
        """Whether it matches every name with its prefix."""
        return self.name.endswith(WILDCARD)


def with_preset(name: str, section: Any) -> Any:
    """Return a provider's section, completed with the preset of that name."""
    preset = PRESETS.get(name)
    if preset is None or not isinstance(section, dict) or "base_url" in section:
        return section
    if section.get("kind", preset.kind) != preset.kind:
        return section  # the preset's address has another kind
    known: dict[str, Any] = {"kind": preset.kind}
    if url := preset.address({}):
        known["base_url"] = url
    if "api_key" not in section:
        known["api_key_env"] = preset.key_variable
    return known | section
