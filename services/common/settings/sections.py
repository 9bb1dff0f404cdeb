"""Sections of the settings: addresses, storage, limits, articles, memory and others."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from services.common.settings.base import Section

MAX_FILE_LIFETIME_S = 31_536_000

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
# A worker beats once a second; see `services.common.heartbeat`.
_MIN_STALL_S = 5
_HOST_AND_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")
# An origin as browsers serialize it: in lower case and without a path; apps have other schemes.
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class Server(Section):
    """Addresses that the gateway listens on, and origins that may call it from browsers."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    tls_certificate: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    metrics_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 9464
    grpc: str = ""
    access_log_per_s: Annotated[int, Field(ge=0)] = 50
    cors_origins: list[str] = Field(default_factory=list)
    plain_requests: bool = True
    worker_stall_s: Annotated[float, Field(ge=0, le=3600)] = 20

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

    data_dir: Path = Path("var")
    database_url: str = ""
    database_url_file: str = ""
    database_connections: Annotated[int, Field(ge=5)] = 15
    blob_url: str = ""
    min_free_bytes: Annotated[int, Field(ge=0)] = 256 << 20


class Roles(Section):
    """Models for tasks of the gateway; "" selects the built-in method, if there is one."""

    describe_image: str = ""
    transcribe_audio: str = ""
    summarise: str = ""
    extract: str = ""
    embed: str = ""

    @property
    def extracts(self) -> str:
        """The model that extracts facts; by default the model for summaries."""
        return self.extract or self.summarise


class Discovery(Section):
    """Whether providers that the settings do not name are discovered."""

    enabled: bool = True


class Sandbox(Section):
    """Whether the built-in sandbox is present; None: while no real provider is configured."""

    enabled: bool | None = None


class PlanLimits(Section):
    """A limit for each plan."""

    personal_free: Annotated[int, Field(ge=0)]
    personal_pro: Annotated[int, Field(ge=0)]
    team_pro: Annotated[int, Field(ge=0)]
    enterprise: Annotated[int, Field(ge=0)]


class StorageLimits(PlanLimits):
    """Maximum total bytes of one owner's files, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 1 << 30
    personal_pro: Annotated[int, Field(ge=0)] = 5 << 30
    team_pro: Annotated[int, Field(ge=0)] = 50 << 30
    enterprise: Annotated[int, Field(ge=0)] = 50 << 30


class Limits(Section):
    """Limits of requests, answers, connections and stored files."""

    max_head_bytes: Annotated[int, Field(ge=8192)] = 64 << 10
    max_header_fields: Annotated[int, Field(ge=16)] = 128
    head_timeout_s: Annotated[float, Field(gt=0)] = 10
    idle_connection_s: Annotated[float, Field(gt=0)] = 75
    stalled_reader_s: Annotated[float, Field(gt=0)] = 60
    max_stalled_readers: Annotated[int, Field(ge=1)] = 50
    max_connections: Annotated[int, Field(ge=0)] = 0
    reserved_connections: Annotated[float, Field(ge=0, le=0.9)] = 0.5
    max_body_bytes: Annotated[int, Field(ge=1024)] = 64 << 20
    max_body_values: Annotated[int, Field(ge=1)] = 1_000_000
    max_parallel_parses: Annotated[int, Field(ge=1)] = 1
    max_background_responses: Annotated[int, Field(ge=1)] = 4
    max_queued_responses: Annotated[int, Field(ge=0)] = 16
    max_buffered_bytes: Annotated[int, Field(ge=1024)] = 512 << 20
    max_buffered_bytes_per_user: Annotated[int, Field(ge=1024)] = 128 << 20
    max_buffer_wait_s: Annotated[float, Field(ge=0)] = 10
    max_parallel_requests_per_user: Annotated[int, Field(ge=1)] = 256
    body_idle_s: Annotated[float, Field(gt=0)] = 60
    min_body_bytes_per_s: Annotated[int, Field(ge=1)] = 8 << 10
    max_message_bytes: Annotated[int, Field(ge=1024)] = 80 << 20
    max_answer_bytes: Annotated[int, Field(ge=1 << 16)] = 80 << 20
    max_answer_parts: Annotated[int, Field(ge=16)] = 10_000
    max_answer_values: Annotated[int, Field(ge=1024)] = 1_000_000
    max_recovered_characters: Annotated[int, Field(ge=0)] = 4 << 20
    max_sse_line_bytes: Annotated[int, Field(ge=1 << 16)] = 32 << 20
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
    lease_every_s: Annotated[float, Field(gt=0, le=10)] = 1
    slot_lease_s: Annotated[float, Field(ge=4)] = 4
    identify_cache_s: Annotated[float, Field(ge=0, le=30)] = 30
    max_file_bytes: Annotated[int, Field(ge=1)] = 50 << 20
    default_file_lifetime_s: Annotated[int, Field(ge=1, le=MAX_FILE_LIFETIME_S)] = 30 * 86_400
    sweep_every_s: Annotated[float, Field(gt=0)] = 60
    orphan_grace_s: Annotated[float, Field(gt=0)] = 3600
    max_fetched_bytes: Annotated[int, Field(ge=1024)] = 20 << 20
    max_parallel_fetches: Annotated[int, Field(ge=1)] = 16
    fetch_timeout_s: Annotated[float, Field(gt=0)] = 10
    max_parallel_conversions: Annotated[int, Field(ge=1)] = 2
    max_waiting_conversions: Annotated[int, Field(ge=0)] = 100
    conversion_timeout_s: Annotated[float, Field(gt=0)] = 300
    conversion_seconds_per_user: Annotated[float, Field(gt=0)] = 1800
    conversion_memory_bytes: Annotated[int, Field(ge=512 << 20)] = 2 << 30
    storage: StorageLimits = StorageLimits()


class Grpc(Section):
    """gRPC on a TCP port: its certificates, and limits that a Unix socket does not have."""

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
            raise ValueError("certificate, private_key and client_ca must be set together")
        return self


class Telemetry(Section):
    """Traces and measurements for an OpenTelemetry collector."""

    otlp_endpoint: str = ""
    service_name: Annotated[str, Field(min_length=1)] = "llm-gateway"
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1
    metrics_every_s: Annotated[float, Field(ge=1)] = 60

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError(
                "must begin with http:// or https://, for example http://127.0.0.1:4318"
            )
        return value


class Admin(Section):
    """Admin key for administration over the network, and the retention of the audit log."""

    key_env: str = ""
    key_file: str = ""
    key_sha256: str = ""
    audit_retention_s: Annotated[float, Field(gt=0)] = 365 * 86_400

    @field_validator("key_sha256")
    @classmethod
    def _is_sha256(cls, value: str) -> str:
        if value and not _SHA256.fullmatch(value):
            raise ValueError("must be 64 hex digits, the SHA-256 of an admin key")
        return value


class ArticleQuota(PlanLimits):
    """Maximum total bytes of one user's documents, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 256 << 20
    personal_pro: Annotated[int, Field(ge=0)] = 1 << 30
    team_pro: Annotated[int, Field(ge=0)] = 10 << 30
    enterprise: Annotated[int, Field(ge=0)] = 10 << 30


class ArticleDocuments(PlanLimits):
    """Maximum number of documents per user, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 1000
    personal_pro: Annotated[int, Field(ge=0)] = 5000
    team_pro: Annotated[int, Field(ge=0)] = 10_000
    enterprise: Annotated[int, Field(ge=0)] = 10_000


class Articles(Section):
    """Document editing."""

    require_grant: bool = False
    session_ttl_s: Annotated[float, Field(gt=0)] = 600
    session_remembered_s: Annotated[float, Field(gt=0)] = 86_400
    max_sessions: Annotated[int, Field(ge=1)] = 1000
    deleted_retention_s: Annotated[float, Field(gt=0)] = 30 * 86_400
    cache_bytes: Annotated[int, Field(ge=0)] = 128 << 20
    quota: ArticleQuota = ArticleQuota()
    documents: ArticleDocuments = ArticleDocuments()


class MemoryQuota(PlanLimits):
    """Maximum number of memories per user, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 10
    personal_pro: Annotated[int, Field(ge=0)] = 50
    team_pro: Annotated[int, Field(ge=0)] = 100
    enterprise: Annotated[int, Field(ge=0)] = 100


class MemoryStorage(PlanLimits):
    """Maximum total bytes of one user's memories and responses, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 256 << 20
    personal_pro: Annotated[int, Field(ge=0)] = 1 << 30
    team_pro: Annotated[int, Field(ge=0)] = 10 << 30
    enterprise: Annotated[int, Field(ge=0)] = 10 << 30


class Memory(Section):
    """Memory: conversations that the server remembers."""

    lock_wait_s: Annotated[float, Field(ge=0)] = 10
    lock_lease_s: Annotated[float, Field(ge=1, le=30)] = 3
    sync_wait_s: Annotated[float, Field(ge=0)] = 30
    leave_drain_s: Annotated[float, Field(ge=0)] = 120
    max_readers: Annotated[int, Field(ge=1)] = 5
    inject_tokens: Annotated[int, Field(ge=0)] = 4000
    retrieve_top_k: Annotated[int, Field(ge=0, le=100)] = 16
    retrieve_tokens: Annotated[int, Field(ge=0)] = 2000
    embed_wait_s: Annotated[float, Field(gt=0)] = 2
    job_poll_s: Annotated[float, Field(gt=0)] = 2
    response_ttl_s: Annotated[float, Field(gt=0)] = 30 * 86_400
    response_lease_s: Annotated[float, Field(ge=1, le=300)] = 15
    max_response_bytes: Annotated[int, Field(ge=1024)] = 64 << 20
    max_conversation: Annotated[int, Field(ge=1)] = 1000
    max_conversation_items: Annotated[int, Field(ge=1)] = 10_000
    quota: MemoryQuota = MemoryQuota()
    storage: MemoryStorage = MemoryStorage()


class ResponseCache(Section):
    """The cache of answers to equal requests."""

    enabled: bool = False
    ttl_s: Annotated[float, Field(gt=0, le=30 * 86_400)] = 3600
    max_bytes: Annotated[int, Field(ge=1 << 20)] = 1 << 30
    max_answer_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = 1 << 20
    scope: Literal["user", "team"] = "user"


class Adaptation(Section):
    """The store of converted media, which later turns reuse."""

    kept_s: Annotated[float, Field(ge=0)] = 7 * 86_400
    kept_bytes: Annotated[int, Field(ge=0)] = 4 << 30
    kept_bytes_per_user: Annotated[int, Field(ge=0)] = 512 << 20


class Usage(Section):
    """Usage records of requests."""

    enabled: bool = True
    write_every_s: Annotated[float, Field(gt=0)] = 2
    max_journal_bytes: Annotated[int, Field(ge=64 << 10)] = 64 << 20
    keep_records_s: Annotated[float, Field(ge=86_400)] = 30 * 86_400
    keep_days_s: Annotated[float, Field(ge=31 * 86_400)] = 731 * 86_400
