"""Sections of the settings on providers and their models."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from services.common.presets import PRESETS
from services.common.settings.base import Name, Section, without_variables

_CREDENTIAL_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})

# At the end of a model's name: every name that begins so.
WILDCARD = "*"

Input = Literal["text", "image", "pdf", "audio", "video"]


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

    @field_validator("base_url", "api_key", "api_key_env", "api_key_file", "headers", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.kind != "sandbox" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url: an http:// or https:// address is needed")
        if self.responses and self.kind != "openai":
            raise ValueError("responses: only a provider of kind openai has the endpoint")
        return self

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the provider's key, or "" where it takes none."""
        return self.api_key.get_secret_value() or environ.get(self.api_key_env, "")

    def missing_key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the variable that the key was to be in and is not, or "" where none is missing.

        Headers of the operator's may hold the credentials instead.
        """
        if self.key(environ) or _CREDENTIAL_HEADERS & {name.lower() for name in self.headers}:
            return ""
        return self.api_key_env


class Model(Section):
    """A model under the name that callers write, or a wildcard (`claude-*`) for many names."""

    name: Name
    provider: Name
    upstream: str = ""
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

    @model_validator(mode="after")
    def _has_wildcard_at_the_end(self) -> Self:
        if WILDCARD in self.name[:-1] or WILDCARD in self.upstream:
            raise ValueError(f"name: takes one {WILDCARD}, at its end; upstream takes none")
        return self

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for every name that begins like its own."""
        return self.name.endswith(WILDCARD)


def with_preset(name: str, section: Any) -> Any:
    """Return the section of a provider with the defaults of the preset of that name."""
    preset = PRESETS.get(name)
    if preset is None or not isinstance(section, dict) or "base_url" in section:
        return section
    if section.get("kind", preset.kind) != preset.kind:
        return section  # the address is not one of that kind
    known: dict[str, Any] = {"kind": preset.kind}
    if url := preset.address({}):
        known["base_url"] = url
    if "api_key" not in section:
        known["api_key_env"] = preset.key_variable
    return known | section
