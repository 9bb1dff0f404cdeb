"""All settings of a gateway, and their loading from a file and the environment."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, field_validator, model_validator

from services.common.settings.articles import Articles
from services.common.settings.base import Name, Section, SettingsError, setting
from services.common.settings.batches import Batches
from services.common.settings.budgets import Budgets
from services.common.settings.console import Console
from services.common.settings.effective_providers import SANDBOX, missing_sandbox
from services.common.settings.environment import CONFIG_VARIABLE, ENVIRONMENT, advice_for
from services.common.settings.limits import Grpc, Limits
from services.common.settings.memory import Memory
from services.common.settings.messages import words
from services.common.settings.providers import Deployment, Model, Provider, with_preset
from services.common.settings.proxy import Envoy
from services.common.settings.request_log import RequestLog
from services.common.settings.secret_files import with_secrets
from services.common.settings.sections import (
    Adaptation,
    Admin,
    Discovery,
    ResponseCache,
    Roles,
    Sandbox,
    Server,
    Storage,
    Telemetry,
    Usage,
)
from services.common.settings.stored_providers import StoredProviders
from services.common.settings.tools import Tools
from services.common.settings.vector_stores import VectorStores

DEFAULT_FILE = Path("gateway.toml")
_NOTHING: Mapping[tuple[int | str, ...], tuple[str, str]] = {}


class Settings(Section):
    """All settings of a gateway."""

    server: Server = setting(Server(), "addresses that the gateway listens on")
    storage: Storage = setting(Storage(), "where data are stored")
    discovery: Discovery = setting(Discovery(), "providers that this file does not name")
    sandbox: Sandbox = setting(
        Sandbox(), "models for development, such as sandbox/echo, that need no provider"
    )
    providers: dict[Name, Provider] = setting(
        {},
        "an example; the providers listed by `gateway providers` need no base_url",
        example={
            "openai": {
                "kind": "openai",
                "base_url": "https://api.openai.com/v1",
                "api_key_env": "OPENAI_API_KEY",
            }
        },
    )
    stored_providers: StoredProviders = setting(
        StoredProviders(),
        "providers that administrators add while the gateway runs (docs/stored-providers.md)",
    )
    models: list[Model] = setting(
        [],
        "an example",
        example=[
            {
                "name": "fast",
                "provider": "openai",
                "upstream": "gpt-4o-mini",
                "inputs": ["text", "image"],
                "context_window": 128_000,
                "max_output_tokens": 16_384,
            }
        ],
    )
    roles: Roles = setting(Roles(), "models for auxiliary tasks; empty: built-in method, or none")
    limits: Limits = setting(
        Limits(), "limits of requests, answers, connections and files (docs/limits.md)"
    )
    grpc: Grpc = setting(Grpc(), "gRPC callers over TCP (server.grpc, `gateway serve services`)")
    admin: Admin = setting(
        Admin(),
        "keys for /admin/v1, which exists only if a key is set here or made by `gateway "
        "admin-key create`",
    )
    console: Console = setting(
        Console(), "the console: how people sign in, and for how long (docs/sign-in.md)"
    )
    articles: Articles = setting(Articles(), "document editing")
    memory: Memory = setting(Memory(), "stored conversations")
    tools: Tools = setting(Tools(), "tools that the gateway runs for models")
    adaptation: Adaptation = setting(
        Adaptation(), "cache of media converted for models that cannot read them"
    )
    telemetry: Telemetry = setting(Telemetry(), "traces and metrics for an OpenTelemetry collector")
    response_cache: ResponseCache = setting(
        ResponseCache(), "cache of answers to equal requests (docs/response-cache.md)"
    )
    usage: Usage = setting(Usage(), "records of usage and cost, for `gateway usage`")
    batches: Batches = setting(
        Batches(), "batches of requests, which workers run in the background (docs/batches.md)"
    )
    vector_stores: VectorStores = setting(
        VectorStores(),
        "vector stores: files that models and callers search (docs/vector-stores.md)",
    )
    budgets: Budgets = setting(
        Budgets(), "the webhook that is told about budgets (docs/budgets.md)"
    )
    request_log: RequestLog = setting(
        RequestLog(), "log of requests, for GET /admin/v1/requests (docs/request-log.md)"
    )
    envoy: Envoy = setting(
        Envoy(), "the Envoy in front: `gateway envoy config` and `gateway envoy run`"
    )

    @field_validator("providers", mode="before")
    @classmethod
    def _with_presets(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: with_preset(name, section) for name, section in value.items()}

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        seen_names: set[str] = set()
        for index, model in enumerate(self.models):
            if model.name in seen_names:
                raise ValueError(f"models[{index}].name: duplicate name {model.name!r}")
            seen_names.add(model.name)
        for path, place in self.deployments():
            # Whether the sandbox is present depends on the environment too: `load` checks it.
            if place.provider not in self.providers and place.provider != SANDBOX:
                raise ValueError(f"{path}: no section [providers.{place.provider}]")
        return self

    @model_validator(mode="after")
    def _calls_others(self) -> Self:
        called = {f"providers.{name}.base_url": p.base_url for name, p in self.providers.items()}
        called["tools.web_search.url"] = self.tools.web_search.url
        called["request_log.webhook.url"] = self.request_log.webhook.url
        called["console.oidc.issuer"] = self.console.oidc.issuer
        called["budgets.webhook_url"] = self.budgets.webhook_url
        for path, url in called.items():
            if self.server.is_at(url):
                raise ValueError(f"{path}: {url} is the gateway's own address")
        return self

    def deployments(self) -> Iterator[tuple[str, Deployment]]:
        """Yield each deployment of each model, with the path of its key `provider`."""
        for index, model in enumerate(self.models):
            for number, deployment in enumerate(model.served_by):
                place = f"deployments[{number}]." if model.deployments else ""
                yield f"models[{index}].{place}provider", deployment


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Load the settings of this process.

    The file is the one that GATEWAY_CONFIG names, or else `./gateway.toml` if it exists. Files with
    secrets are read too.

    Raises:
        SettingsError: the file is missing, not TOML, or has an unknown key or an invalid value; a
            file with a secret cannot be used; or a model is the sandbox's, which is absent.
    """
    named_path = environ.get(CONFIG_VARIABLE)
    path = Path(named_path) if named_path else DEFAULT_FILE
    content: dict[str, Any] = {}
    if named_path or path.exists():
        try:
            content = tomllib.loads(path.read_text())
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: not TOML: {error}") from error
    overriding: dict[tuple[int | str, ...], tuple[str, str]] = {}
    for variable, (section, key) in ENVIRONMENT.items():
        if value := environ.get(variable):
            content.setdefault(section, {})[key] = value
            overriding[section, key] = variable, advice_for(variable, value)
    settings = parse(with_secrets(content, environ, str(path)), str(path), overriding)
    if problems := missing_sandbox(settings, environ):
        raise SettingsError("\n".join(f"{path}: {problem}" for problem in problems))
    return settings


def parse(
    content: Mapping[str, Any],
    source: str,
    overriding: Mapping[tuple[int | str, ...], tuple[str, str]] = _NOTHING,
) -> Settings:
    """Validate settings that were read from `source`.

    Args:
        content: the tables.
        source: the name of the file, for messages.
        overriding: environment variables with advice for messages, by the keys that they set.

    Raises:
        SettingsError: a key is unknown or a value is invalid.
    """
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        lines = []
        for item in error.errors(include_input=False, include_url=False):
            message = words(item, Settings)
            if item["loc"] in overriding:
                variable, advice = overriding[item["loc"]]
                lines.append(f"{variable}: {message}{advice}")
            else:
                # Errors of validators for several keys name the keys themselves.
                parts = (source, ".".join(map(str, item["loc"])), message)
                lines.append(": ".join(filter(None, parts)))
        raise SettingsError("\n".join(lines)) from error
