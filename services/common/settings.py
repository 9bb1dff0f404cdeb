"""What an operator can set: a TOML file, a few environment variables over it.

`load` reads both; an unknown key or a wrong value raises `SettingsError`, which
names it. `services.common.settings_example` explains every key.
"""

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from services.common.presets import PRESETS
from services.common.settings_tools import Tools, without_variables
from services.common.settings_words import words

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

_CREDENTIAL_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})

# At the end of a model's name: every name that begins so.
WILDCARD = "*"

MAX_FILE_LIFETIME_S = 31_536_000

_HOST_AND_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")
# As browsers serialize one, in lower case and without a path; apps have schemes of their own.
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")

Input = Literal["text", "image", "pdf", "audio", "video"]
Name = Annotated[str, Field(min_length=1, max_length=256)]


class SettingsError(Exception):
    """The settings are wrong; the text names the key and what it takes."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Server(_Section):
    """Where the gateway listens."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    metrics_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 9464
    grpc: str = ""
    access_log_per_s: Annotated[int, Field(ge=0)] = 50
    cors_origins: list[str] = []
    plain_requests: bool = True

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: list[str]) -> list[str]:
        if not all(_ORIGIN.fullmatch(origin) for origin in value):
            raise ValueError(
                'origins as browsers send them are needed, "https://app.example"; or "*"'
            )
        return value

    @field_validator("grpc")
    @classmethod
    def _is_host_and_port(cls, value: str) -> str:
        if value and not _HOST_AND_PORT.fullmatch(value):
            raise ValueError('an address and a port are needed, "127.0.0.1:50051"; or ""')
        return value

    @field_validator("metrics_host")
    @classmethod
    def _is_address(cls, value: str) -> str:
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise ValueError("an IP address of this machine to listen on is needed") from None
        return value

    def is_at(self, url: str) -> bool:
        """Return whether a URL leads to the facade itself, as far as its text tells."""
        hosts = {self.host, "127.0.0.1", "localhost", "::1", "0.0.0.0"}
        try:
            address = urlsplit(url)
            return address.hostname in hosts and address.port == self.port
        except ValueError:  # no port, or no address at all
            return False


class Storage(_Section):
    """Where everything is kept."""

    data_dir: Path = Path("var")
    database_url: str = ""
    blob_url: str = ""
    min_free_bytes: Annotated[int, Field(ge=0)] = 256 << 20


class Provider(_Section):
    """A server that has models."""

    kind: Literal["openai", "anthropic", "gemini", "sandbox"]
    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    api_key_env: str = ""
    headers: dict[str, str] = {}
    pass_stateful: bool = False
    fetches_urls: bool | None = None

    @field_validator("base_url", "api_key", "api_key_env", "headers", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.kind != "sandbox" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url: an http:// or https:// address is needed")
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


class Model(_Section):
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
    fallbacks: list[Name] = []

    @model_validator(mode="after")
    def _has_wildcard_at_the_end(self) -> Self:
        if WILDCARD in self.name[:-1] or WILDCARD in self.upstream:
            raise ValueError(f"name: takes one {WILDCARD}, at its end; upstream takes none")
        return self

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for every name that begins like its own."""
        return self.name.endswith(WILDCARD)


class Roles(_Section):
    """Which model does a side job; empty: the embedded way, or none."""

    describe_image: str = ""
    transcribe_audio: str = ""
    summarise: str = ""
    embed: str = ""


class Discovery(_Section):
    """Whether providers join that the file does not name."""

    enabled: bool = True


class PlanLimits(_Section):
    """A bound for each plan."""

    personal_free: Annotated[int, Field(ge=0)]
    personal_pro: Annotated[int, Field(ge=0)]
    team_pro: Annotated[int, Field(ge=0)]
    enterprise: Annotated[int, Field(ge=0)]


class StorageLimits(PlanLimits):
    """Bytes that the files of one owner may have together, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 1 << 30
    personal_pro: Annotated[int, Field(ge=0)] = 5 << 30
    team_pro: Annotated[int, Field(ge=0)] = 50 << 30
    enterprise: Annotated[int, Field(ge=0)] = 50 << 30


class Limits(_Section):
    """Bounds that an operator may move."""

    max_head_bytes: Annotated[int, Field(ge=8192)] = 64 << 10
    max_header_fields: Annotated[int, Field(ge=16)] = 128
    head_timeout_s: Annotated[float, Field(gt=0)] = 10
    idle_connection_s: Annotated[float, Field(gt=0)] = 75
    stalled_reader_s: Annotated[float, Field(gt=0)] = 60
    max_stalled_readers: Annotated[int, Field(ge=1)] = 50
    max_connections: Annotated[int, Field(ge=0)] = 0
    reserved_connections: Annotated[float, Field(ge=0, le=0.9)] = 0.5
    max_body: Annotated[int, Field(ge=1024)] = 64 << 20
    max_body_values: Annotated[int, Field(ge=1)] = 1_000_000
    max_parallel_parses: Annotated[int, Field(ge=1)] = 1
    max_buffered_bytes: Annotated[int, Field(ge=1024)] = 512 << 20
    max_buffered_bytes_per_user: Annotated[int, Field(ge=1024)] = 128 << 20
    body_idle_s: Annotated[float, Field(gt=0)] = 60
    min_body_rate: Annotated[int, Field(ge=1)] = 8 << 10
    max_message: Annotated[int, Field(ge=1024)] = 80 << 20
    max_answer: Annotated[int, Field(ge=1 << 16)] = 80 << 20
    max_answer_parts: Annotated[int, Field(ge=16)] = 10_000
    max_answer_values: Annotated[int, Field(ge=1024)] = 1_000_000
    max_recovered: Annotated[int, Field(ge=0)] = 4 << 20
    max_sse_line: Annotated[int, Field(ge=1 << 16)] = 32 << 20
    upstream_idle_s: Annotated[float, Field(gt=0)] = 30
    max_idle_upstream_connections: Annotated[int, Field(ge=0)] = 256
    connect_timeout_s: Annotated[float, Field(gt=0)] = 10
    step_timeout_s: Annotated[float, Field(gt=0)] = 600
    stream_idle_s: Annotated[float, Field(gt=0)] = 300
    hedge_after_s: Annotated[float, Field(ge=0)] = 10
    breaker_failures: Annotated[int, Field(ge=1)] = 5
    keepalive_s: Annotated[float, Field(gt=0, le=15)] = 10
    hold_headers_s: Annotated[float, Field(gt=0, le=15)] = 15
    drain_s: Annotated[float, Field(ge=0)] = 30
    identify_cache_s: Annotated[float, Field(ge=0, le=30)] = 30
    max_file: Annotated[int, Field(ge=1)] = 50 << 20
    default_file_lifetime_s: Annotated[int, Field(ge=1, le=MAX_FILE_LIFETIME_S)] = 30 * 86_400
    sweep_every_s: Annotated[float, Field(gt=0)] = 60
    orphan_grace_s: Annotated[float, Field(gt=0)] = 3600
    max_fetched_bytes: Annotated[int, Field(ge=1024)] = 20 << 20
    max_parallel_fetches: Annotated[int, Field(ge=1)] = 16
    fetch_timeout_s: Annotated[float, Field(gt=0)] = 10
    max_parallel_conversions: Annotated[int, Field(ge=1)] = 2
    max_waiting_conversions: Annotated[int, Field(ge=0)] = 100
    conversion_timeout_s: Annotated[float, Field(gt=0)] = 300
    conversion_memory: Annotated[int, Field(ge=512 << 20)] = 2 << 30
    storage: StorageLimits = StorageLimits()


class Grpc(_Section):
    """The gRPC door on a TCP port: its certificates, and bounds that a Unix socket has not."""

    certificate: str = ""
    private_key: str = ""
    client_ca: str = ""
    max_connections: Annotated[int, Field(ge=1)] = 1000
    max_calls_per_connection: Annotated[int, Field(ge=1)] = 1000
    max_metadata_bytes: Annotated[int, Field(ge=1024)] = 16 << 10
    handshake_timeout_s: Annotated[float, Field(gt=0)] = 10
    idle_connection_s: Annotated[float, Field(gt=0)] = 300
    connection_age_s: Annotated[float, Field(gt=0)] = 3600
    read_timeout_s: Annotated[float, Field(gt=0)] = 60
    max_reads_per_user: Annotated[int, Field(ge=1)] = 2
    max_held_bytes_per_user: Annotated[int, Field(ge=1024)] = 160 << 20

    @model_validator(mode="after")
    def _certificates_go_together(self) -> Self:
        given = [self.certificate, self.private_key, self.client_ca]
        if any(given) and not all(given):
            raise ValueError("certificate, private_key and client_ca go together")
        return self


class ArticleQuota(PlanLimits):
    """Bytes that the documents of one user may have together, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 256 << 20
    personal_pro: Annotated[int, Field(ge=0)] = 1 << 30
    team_pro: Annotated[int, Field(ge=0)] = 10 << 30
    enterprise: Annotated[int, Field(ge=0)] = 10 << 30


class ArticleDocuments(PlanLimits):
    """Documents that one user may have, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 1000
    personal_pro: Annotated[int, Field(ge=0)] = 5000
    team_pro: Annotated[int, Field(ge=0)] = 10_000
    enterprise: Annotated[int, Field(ge=0)] = 10_000


class Articles(_Section):
    """Document editing."""

    require_grant: bool = False
    session_s: Annotated[float, Field(gt=0)] = 600
    session_remembered_s: Annotated[float, Field(gt=0)] = 86_400
    max_sessions: Annotated[int, Field(ge=1)] = 1000
    keep_deleted_s: Annotated[float, Field(gt=0)] = 30 * 86_400
    cache_bytes: Annotated[int, Field(ge=0)] = 128 << 20
    quota: ArticleQuota = ArticleQuota()
    documents: ArticleDocuments = ArticleDocuments()


class MemoryQuota(PlanLimits):
    """Memories that one user may have, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 10
    personal_pro: Annotated[int, Field(ge=0)] = 50
    team_pro: Annotated[int, Field(ge=0)] = 100
    enterprise: Annotated[int, Field(ge=0)] = 100


class MemoryStorage(PlanLimits):
    """Bytes that the memories of one user may have together, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 256 << 20
    personal_pro: Annotated[int, Field(ge=0)] = 1 << 30
    team_pro: Annotated[int, Field(ge=0)] = 10 << 30
    enterprise: Annotated[int, Field(ge=0)] = 10 << 30


class Memory(_Section):
    """Conversations that the server remembers."""

    lock_wait_s: Annotated[float, Field(ge=0)] = 10
    lock_lease_s: Annotated[float, Field(ge=1, le=30)] = 25
    sync_wait_s: Annotated[float, Field(ge=0)] = 30
    leave_drain_s: Annotated[float, Field(ge=0)] = 120
    max_readers: Annotated[int, Field(ge=1)] = 5
    inject_tokens: Annotated[int, Field(ge=0)] = 4000
    retrieve_top_k: Annotated[int, Field(ge=0, le=100)] = 8
    retrieve_tokens: Annotated[int, Field(ge=0)] = 2000
    embed_wait_s: Annotated[float, Field(gt=0)] = 2
    job_poll_s: Annotated[float, Field(gt=0)] = 2
    quota: MemoryQuota = MemoryQuota()
    storage: MemoryStorage = MemoryStorage()


class Adaptation(_Section):
    """What was made of media, kept for later turns."""

    kept_s: Annotated[float, Field(ge=0)] = 7 * 86_400
    kept_bytes: Annotated[int, Field(ge=0)] = 4 << 30
    kept_bytes_per_user: Annotated[int, Field(ge=0)] = 512 << 20


class Settings(_Section):
    """All settings of a gateway."""

    server: Server = Server()
    storage: Storage = Storage()
    providers: dict[Name, Provider] = {}
    models: list[Model] = []
    roles: Roles = Roles()
    discovery: Discovery = Discovery()
    limits: Limits = Limits()
    grpc: Grpc = Grpc()
    articles: Articles = Articles()
    memory: Memory = Memory()
    tools: Tools = Tools()
    adaptation: Adaptation = Adaptation()

    @field_validator("providers", mode="before")
    @classmethod
    def _with_presets(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: _with_preset(name, section) for name, section in value.items()}

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


def _with_preset(name: str, section: Any) -> Any:
    """Return the section of a provider with what its name says of it already."""
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
