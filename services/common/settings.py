"""What an operator can set: a TOML file, a few environment variables over it.

`load` reads both; an unknown key or a wrong value raises `SettingsError`, which
names it. `gateway config example` prints `EXAMPLE`, which a test keeps in step
with the types below.
"""

import ipaddress
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
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
from pydantic_core import ErrorDetails

from services.common.presets import PRESETS

DEFAULT_FILE = Path("gateway.toml")

# Environment variables over the file, with the key each one sets.
ENVIRONMENT = {
    "GATEWAY_HOST": ("server", "host"),
    "GATEWAY_PORT": ("server", "port"),
    "GATEWAY_METRICS_PORT": ("server", "metrics_port"),
    "GATEWAY_DATA_DIR": ("storage", "data_dir"),
    "GATEWAY_DATABASE_URL": ("storage", "database_url"),
    "GATEWAY_BLOB_URL": ("storage", "blob_url"),
}
CONFIG_VARIABLE = "GATEWAY_CONFIG"

MAX_FILE_LIFETIME_S = 31_536_000

Input = Literal["text", "image", "pdf", "audio", "video"]
Name = Annotated[str, Field(min_length=1, max_length=256)]


class SettingsError(Exception):
    """The settings are wrong; the text names the key and what it takes."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Server(_Section):
    """Where the facades listen."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    metrics_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 9464
    access_log_per_s: Annotated[int, Field(ge=0)] = 50

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

    kind: Literal["openai", "anthropic", "sandbox"]
    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    api_key_env: str = ""
    headers: dict[str, str] = {}
    pass_stateful: bool = False
    fetches_urls: bool | None = None

    @field_validator("base_url", "api_key", "api_key_env", "headers", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        for text in value.values() if isinstance(value, dict) else (value,):
            if isinstance(text, str) and "${" in text:
                raise ValueError(
                    "variables are not expanded here; for a key write "
                    'api_key_env = "NAME_OF_THE_VARIABLE"'
                )
        return value

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.kind != "sandbox" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url: an http:// or https:// address is needed")
        return self

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Give the provider's key, or "" where it takes none."""
        return self.api_key.get_secret_value() or environ.get(self.api_key_env, "")


class Model(_Section):
    """A model under the name that callers write."""

    name: Name
    provider: Name
    upstream: str = ""
    inputs: list[Input] | None = None
    context_window: Annotated[int, Field(ge=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    fallbacks: list[Name] = []


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
    stream_idle_s: Annotated[float, Field(gt=0)] = 30
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
    storage: StorageLimits = StorageLimits()


class Grpc(_Section):
    """Bounds of the gRPC door on a TCP port; calls over a Unix socket have none of them."""

    max_connections: Annotated[int, Field(ge=1)] = 1000
    max_calls_per_connection: Annotated[int, Field(ge=1)] = 1000
    max_metadata_bytes: Annotated[int, Field(ge=1024)] = 16 << 10
    handshake_timeout_s: Annotated[float, Field(gt=0)] = 10
    idle_connection_s: Annotated[float, Field(gt=0)] = 300
    connection_age_s: Annotated[float, Field(gt=0)] = 3600
    read_timeout_s: Annotated[float, Field(gt=0)] = 60
    max_reads_per_user: Annotated[int, Field(ge=1)] = 2
    max_held_bytes_per_user: Annotated[int, Field(ge=1024)] = 160 << 20


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
    readers: Annotated[int, Field(ge=1)] = 5
    inject_tokens: Annotated[int, Field(ge=0)] = 4000
    retrieve: Annotated[int, Field(ge=0, le=100)] = 8
    retrieve_tokens: Annotated[int, Field(ge=0)] = 2000
    embed_wait_s: Annotated[float, Field(gt=0)] = 2
    job_poll_s: Annotated[float, Field(gt=0)] = 2
    quota: MemoryQuota = MemoryQuota()
    storage: MemoryStorage = MemoryStorage()


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
        for name, provider in self.providers.items():
            if self.server.is_at(provider.base_url):
                raise ValueError(
                    f"providers.{name}.base_url: {provider.base_url} is the gateway's own address"
                )
        return self


def _with_preset(name: str, section: Any) -> Any:
    """Return the section of a provider with what its name says of it already."""
    preset = PRESETS.get(name)
    if preset is None or not isinstance(section, dict) or "base_url" in section:
        return section
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
                f"{source}: {'.'.join(map(str, item['loc']))}: {_words(item)}"
                for item in error.errors(include_input=False, include_url=False)
            )
        ) from error


def _words(item: ErrorDetails) -> str:
    """Return what is wrong in the words of an operator."""
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] != "extra_forbidden":
        return item["msg"]
    *path, name = item["loc"]
    close = get_close_matches(str(name), _keys_at(path), n=1)
    return "there is no such key" + (f"; did you mean {close[0]}?" if close else "")


def _keys_at(path: Sequence[int | str]) -> Iterable[str]:
    """Return the keys that the section at `path` takes."""
    section: Any = Settings
    for step in path:
        if isinstance(section, type) and issubclass(section, BaseModel):
            section = section.model_fields[str(step)].annotation
        else:
            section = get_args(section)[-1]  # of a list's items or a table's values
    fields: Mapping[str, Any] = section.model_fields
    return fields


EXAMPLE = """\
# Settings of the gateway. Every key is optional; what stands here is the default
# unless it is marked as an example. Environment over this file: GATEWAY_HOST,
# GATEWAY_PORT, GATEWAY_METRICS_PORT, GATEWAY_DATA_DIR, GATEWAY_DATABASE_URL,
# GATEWAY_BLOB_URL; GATEWAY_CONFIG names the file. SIGHUP makes a running gateway read it
# again (providers, models, roles).

[server]
host = "127.0.0.1"
port = 8080
metrics_host = "127.0.0.1"    # where /metrics and /readyz?verbose are served: an address of
metrics_port = 9464           # this machine, and a port of its own; 0: any free one
access_log_per_s = 50         # requests of a second with a line in the log; server errors always

[storage]
data_dir = "var"
database_url = ""             # postgresql://… to scale out; empty: SQLite in data_dir
blob_url = ""                 # s3://bucket/prefix; empty: files in data_dir
min_free_bytes = 268435456    # free space on the disk of data_dir below which uploads, edits and
                              # memory writes are refused; 0: never

[discovery]
enabled = true                # providers whose key is in the environment (`gateway providers`
                              # lists them) and local servers that answer (Ollama, llama-server,
                              # vLLM) join by themselves

[providers.openai]            # an example; names of `gateway providers` need no address
kind = "openai"               # openai (any compatible server) | anthropic | sandbox
base_url = "https://api.openai.com/v1"
api_key_env = "OPENAI_API_KEY"    # or api_key = "…"
headers = {}                  # sent along with every request, e.g. for a proxy
pass_stateful = false         # let callers name things kept at the provider
# fetches_urls = true         # the provider fetches media by address; default: the official ones

[[models]]                    # an example
name = "fast"                 # what callers write
provider = "openai"
upstream = "gpt-4o-mini"      # default: name
inputs = ["text", "image"]    # of text image pdf audio video; default: as known, else all
context_window = 128000
max_output_tokens = 16384
fallbacks = []                # what `auto` may try, in order

[roles]                       # which model does a side job; empty: the embedded way, or none
describe_image = ""
transcribe_audio = ""
summarise = ""
embed = ""

[limits]
max_head_bytes = 65536        # bytes of a request line and its header fields
max_header_fields = 128       # header fields of a request
head_timeout_s = 10           # until a request's head is complete, and a first one after connecting
idle_connection_s = 75        # how long a connection may wait for its next request
stalled_reader_s = 60         # after which a caller that reads nothing of its answer is cut off
max_stalled_readers = 50      # callers of one process that read nothing, before the longest is cut
max_connections = 0           # of one process; 0: 4/5 of its file descriptors, at most 10000
reserved_connections = 0.5    # share of them for connections that came with a good key
max_body = 67108864           # bytes of a chat or messages body
max_body_values = 1000000     # JSON values in a body, at any depth
max_parallel_parses = 1       # bodies that take long to read are read by so many processes
max_buffered_bytes = 536870912    # bytes of bodies that a process reads at once
max_buffered_bytes_per_user = 134217728   # of them those of one user
body_idle_s = 60              # how long a client may send nothing of a body or file
min_body_rate = 8192          # bytes a second that a body or file comes with, beyond body_idle_s
max_message = 83886080        # bytes of a message between processes
max_answer = 83886080         # bytes of a provider's answer, as it comes and unpacked
max_answer_parts = 10000      # blocks and tool calls of an answer, and pieces that wait for others
max_answer_values = 1000000   # JSON values in an answer, or in one event of it
max_recovered = 4194304       # characters of an answer that broke off with which another goes on
max_sse_line = 33554432       # bytes of one event of a provider's stream
upstream_idle_s = 30          # after which an unused connection to a provider is closed
max_idle_upstream_connections = 256   # of a process; more are closed as soon as they are unused
connect_timeout_s = 10
step_timeout_s = 600          # one model: until its first content, or a whole answer
stream_idle_s = 30            # silence in a stream that has begun
hedge_after_s = 10            # silence after which `auto` asks the next model too; 0: never
breaker_failures = 5          # failures in a row after which a model is left alone for a while
keepalive_s = 10              # between keep-alives to a waiting caller, at most 15
hold_headers_s = 15           # how long a failure still becomes an HTTP status, at most 15
drain_s = 30                  # what running streams get when the gateway stops
identify_cache_s = 30         # how long a key is believed without looking, at most 30
max_file = 52428800           # bytes of a file
default_file_lifetime_s = 2592000   # of a file that does not say, at most 31536000
sweep_every_s = 60            # how often expired files are cleared away
orphan_grace_s = 3600         # how old bytes without a file must be to be cleared away

[limits.storage]              # bytes that an owner's files may have together, by plan
personal_free = 1073741824
personal_pro = 5368709120
team_pro = 53687091200
enterprise = 53687091200

[grpc]                        # gRPC callers over TCP (`gateway serve --listen host:port`)
max_connections = 1000        # at a time; one more is closed at once
max_calls_per_connection = 1000   # at a time; one more waits at its caller
max_metadata_bytes = 16384    # of one call
handshake_timeout_s = 10      # how long a connection may take to begin with HTTP/2
idle_connection_s = 300       # how long a connection stays without a call
connection_age_s = 3600       # after which a connection takes no more calls; its last ones end
read_timeout_s = 60           # how long the message of a call may take to come
max_reads_per_user = 2        # messages of one user that are received at a time; others wait
max_held_bytes_per_user = 167772160   # of the messages of one user's calls together

[articles]                    # document editing
require_grant = false         # only for users with `gateway grants add`
session_s = 600               # how long a session lasts without a call
session_remembered_s = 86400  # how long a caller is told that a session expired
keep_deleted_s = 2592000      # how long a deleted document can be brought back, if the quota
                              # has room for it
max_sessions = 1000           # sessions that a user may have open at once
cache_bytes = 134217728       # of memory, about, that open documents are held in

[articles.quota]              # bytes that a user's documents may have together, by plan: every
                              # operation with what undoes it, and some hundred bytes for each
personal_free = 268435456
personal_pro = 1073741824
team_pro = 10737418240
enterprise = 10737418240

[articles.documents]          # documents that a user may have, by plan
personal_free = 1000
personal_pro = 5000
team_pro = 10000
enterprise = 10000

[memory]                      # conversations that the server remembers
lock_wait_s = 10              # how long a request waits for the one before it, or for a place
lock_lease_s = 25             # after which a memory is free whose holder is gone, at most 30
sync_wait_s = 30              # how long a request waits for a model's summary of older turns
leave_drain_s = 120           # how long an answer is read to its end for a client that left
readers = 5                   # requests that may read one memory at once
inject_tokens = 4000          # of profile, summary and found turns in a request; a quarter of what
                              # its model reads where that is less
retrieve = 8                  # older turns that are found for a request
retrieve_tokens = 2000        # of them together
embed_wait_s = 2              # how long a request waits for the vector of its question
job_poll_s = 2                # how often summaries and facts that wait are looked for

[memory.quota]                # memories that one user may have, by plan
personal_free = 10
personal_pro = 50
team_pro = 100
enterprise = 100

[memory.storage]              # bytes that a user's memories may have together, by plan: what was
                              # said, twice, as the index of it takes about as much again
personal_free = 268435456
personal_pro = 1073741824
team_pro = 10737418240
enterprise = 10737418240
"""
