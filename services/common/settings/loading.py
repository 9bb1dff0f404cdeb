"""All settings of a gateway, and their loading from a file and the environment."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from services.common.settings.base import Name, Section, SettingsError
from services.common.settings.messages import words
from services.common.settings.providers import Model, Provider, with_preset
from services.common.settings.proxy import Envoy
from services.common.settings.secret_files import with_secrets
from services.common.settings.sections import (
    Adaptation,
    Admin,
    Articles,
    Discovery,
    Grpc,
    Limits,
    Memory,
    ResponseCache,
    Roles,
    Server,
    Storage,
    Telemetry,
    Usage,
)
from services.common.settings.tools import Tools

DEFAULT_FILE = Path("gateway.toml")

# Environment variables that override the file, with the key that each one sets.
ENVIRONMENT = {
    "GATEWAY_HOST": ("server", "host"),
    "GATEWAY_PORT": ("server", "port"),
    "GATEWAY_METRICS_PORT": ("server", "metrics_port"),
    "GATEWAY_GRPC": ("server", "grpc"),
    "GATEWAY_DATA_DIR": ("storage", "data_dir"),
    "GATEWAY_DATABASE_URL": ("storage", "database_url"),
    "GATEWAY_DATABASE_URL_FILE": ("storage", "database_url_file"),
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
    telemetry: Telemetry = Telemetry()
    response_cache: ResponseCache = ResponseCache()
    usage: Usage = Usage()
    envoy: Envoy = Envoy()

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
                raise ValueError(f"models[{index}].name: duplicate name {model.name!r}")
            for number, one in enumerate(model.served_by):
                if one.provider not in self.providers and one.provider != "sandbox":
                    place = f"deployments[{number}]." if model.deployments else ""
                    raise ValueError(
                        f"models[{index}].{place}provider: no section [providers.{one.provider}]"
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
    """Load the settings of this process.

    The file is the one that GATEWAY_CONFIG names, or else `./gateway.toml` if it exists. Files with
    secrets are read too.

    Raises:
        SettingsError: the file is missing, not TOML, or has an unknown key or an invalid value; or
            a file with a secret cannot be used.
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
    return parse(with_secrets(content, environ, str(path)), str(path))


def parse(content: Mapping[str, Any], source: str) -> Settings:
    """Validate settings that were read from `source`.

    Raises:
        SettingsError: a key is unknown or a value is invalid.
    """
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        raise SettingsError(
            "\n".join(
                ": ".join(
                    # Errors of validators for several keys name the keys themselves.
                    filter(None, (source, ".".join(map(str, item["loc"])), words(item, Settings)))
                )
                for item in error.errors(include_input=False, include_url=False)
            )
        ) from error
