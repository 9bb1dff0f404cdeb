"""All settings of a gateway, and how they are read from a file and the environment."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from services.common.settings.base import Name, Section, SettingsError
from services.common.settings.messages import words
from services.common.settings.providers import Model, Provider, with_preset
from services.common.settings.sections import (
    Adaptation,
    Admin,
    Articles,
    Discovery,
    Grpc,
    Limits,
    Memory,
    Roles,
    Server,
    Storage,
    Usage,
)
from services.common.settings.tools import Tools

DEFAULT_FILE = Path("gateway.toml")

# Environment variables over the file, with the key each one sets.
ENVIRONMENT = {
    "GATEWAY_HOST": ("server", "host"),
    "GATEWAY_PORT": ("server", "port"),
    "GATEWAY_METRICS_PORT": ("server", "metrics_port"),
    "GATEWAY_GRPC": ("server", "grpc"),
    "GATEWAY_DATA_DIR": ("storage", "data_dir"),
    "GATEWAY_DATABASE_URL": ("storage", "database_url"),
    "GATEWAY_BLOB_URL": ("storage", "blob_url"),
}
CONFIG_VARIABLE = "GATEWAY_CONFIG"


class Settings(Section):
    """All settings of a gateway."""

    server: Server = Server()
    storage: Storage = Storage()
    providers: dict[Name, Provider] = Field(default_factory=dict)
    models: list[Model] = Field(default_factory=list)
    roles: Roles = Roles()
    discovery: Discovery = Discovery()
    limits: Limits = Limits()
    grpc: Grpc = Grpc()
    admin: Admin = Admin()
    articles: Articles = Articles()
    memory: Memory = Memory()
    tools: Tools = Tools()
    adaptation: Adaptation = Adaptation()
    usage: Usage = Usage()

    @field_validator("providers", mode="before")
    @classmethod
    def _with_presets(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: with_preset(name, section) for name, section in value.items()}

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        seen: set[str] = set()
        for index, model in enumerate(self.models):
            if model.name in seen:
                raise ValueError(f"models[{index}].name: {model.name!r} is there twice")
            if model.provider not in self.providers and model.provider != "sandbox":
                raise ValueError(
                    f"models[{index}].provider: there is no [providers.{model.provider}]"
                )
            seen.add(model.name)
        return self

    @model_validator(mode="after")
    def _calls_others(self) -> Self:
        called = {f"providers.{name}.base_url": p.base_url for name, p in self.providers.items()}
        called["tools.web_search.url"] = self.tools.web_search.url
        for path, url in called.items():
            if self.server.is_at(url):
                raise ValueError(f"{path}: {url} is the gateway's own address")
        return self


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings of this process.

    The file is the one GATEWAY_CONFIG names, else `./gateway.toml` if it is there.

    Raises:
        SettingsError: the file is missing, no TOML, or holds a key or value that is wrong.
    """
    named = environ.get(CONFIG_VARIABLE)
    path = Path(named) if named else DEFAULT_FILE
    content: dict[str, Any] = {}
    if named or path.exists():
        try:
            content = tomllib.loads(path.read_text())
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: not TOML: {error}") from error
    for variable, (section, key) in ENVIRONMENT.items():
        if value := environ.get(variable):
            content.setdefault(section, {})[key] = value
    return parse(content, str(path))


def parse(content: Mapping[str, Any], source: str) -> Settings:
    """Check settings that were read from `source`.

    Raises:
        SettingsError: a key is unknown or a value wrong.
    """
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        raise SettingsError(
            "\n".join(
                ": ".join(
                    # A rule of several keys names them itself.
                    filter(None, (source, ".".join(map(str, item["loc"])), words(item, Settings)))
                )
                for item in error.errors(include_input=False, include_url=False)
            )
        ) from error
