"""Sections of the settings for limits of HTTP and gRPC."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from services.common.settings.base import PlanLimits, Section, setting

MAX_FILE_LIFETIME_S = 31_536_000


class StorageLimits(PlanLimits):
    """Maximum total bytes of one owner's files, by plan."""

    personal_free: Annotated[int, Field(ge=0)] = 1 << 30
    personal_pro: Annotated[int, Field(ge=0)] = 5 << 30
    team_pro: Annotated[int, Field(ge=0)] = 50 << 30
    enterprise: Annotated[int, Field(ge=0)] = 50 << 30


class Limits(Section):
    """Limits of requests, answers, connections and stored files."""

    max_head_bytes: Annotated[int, Field(ge=8192)] = setting(
        64 << 10, "bytes of a request line and its header fields", seen="431 `head_too_large`"
    )
    max_header_fields: Annotated[int, Field(ge=16)] = setting(
        128, "header fields of a request", seen="431 `too_many_header_fields`"
    )
    head_timeout_s: Annotated[float, Field(gt=0)] = setting(
        10,
        "time to receive a request's head: of the first from connecting, of a later one from "
        "its first byte",
        seen="408 `head_timeout`; if nothing was received, the connection closes without an answer",
    )
    idle_connection_s: Annotated[float, Field(gt=0)] = setting(
        75,
        "time that a connection may wait for its next request",
        seen="the connection closes; not counted",
    )
    max_socket_s: Annotated[float, Field(gt=0, le=86_400)] = setting(
        3600,
        "time that a WebSocket may be open; it is closed after the requests in progress",
        seen="an event with 400 `websocket_connection_limit_reached`, and close code 1001",
    )
    stalled_reader_s: Annotated[float, Field(gt=0)] = setting(
        60,
        "time in which a caller reads nothing of a pending answer; then it is disconnected",
        seen="the connection is reset, and the call to the provider cancelled",
    )
    max_stalled_readers: Annotated[int, Field(ge=1)] = setting(
        50,
        "callers of a process that have read nothing of a pending answer for a second; beyond"
        " it, those that have waited longest are disconnected",
        seen="those that have waited longest are reset, 20 at a time",
    )
    max_connections: Annotated[int, Field(ge=0)] = setting(
        0,
        "connections of a process; 0: 2/5 of its file descriptors, at most 10,000",
        seen="the oldest connection that never sent a valid key is closed, with 503 and "
        "`Retry-After` if a request had begun or is its first; if there is none, the new"
        " connection gets the 503",
    )
    reserved_connections: Annotated[float, Field(ge=0, le=0.9)] = setting(
        0.5,
        "share of the connections that is reserved for those with a valid key",
        seen="the same, counted as `limits.max_connections`",
    )
    max_body_bytes: Annotated[int, Field(ge=1024)] = setting(
        64 << 20,
        "bytes of the body of a chat, messages, responses or embeddings request",
        seen="413 `too_large`, immediately if `Content-Length` is larger",
    )
    max_body_values: Annotated[int, Field(ge=1)] = setting(
        1_000_000,
        "JSON values in a body at any depth, counted before it is parsed",
        seen="413 `too_large`",
    )
    max_parallel_parses: Annotated[int, Field(ge=1)] = setting(
        1,
        "processes that parse large bodies at a time; other bodies wait in order of arrival",
        seen="a later answer",
    )
    max_background_responses: Annotated[int, Field(ge=1)] = setting(
        4,
        "background responses of a user that a process generates at a time",
        seen="further ones stay `queued`",
    )
    max_queued_responses: Annotated[int, Field(ge=0)] = setting(
        16, "queued background responses of a user in a process", seen="429 `rate_limited`"
    )
    max_buffered_bytes: Annotated[int, Field(ge=1024)] = setting(
        512 << 20,
        "bytes of the bodies that a process reads, translates or answers at a time, and of "
        "what the requests name",
        details="see [Named content](#named-content)",
        seen="503 with Retry-After",
    )
    max_buffered_bytes_per_user: Annotated[int, Field(ge=1024)] = setting(
        128 << 20, "the same of one user's requests", seen="429 with Retry-After"
    )
    max_buffer_wait_s: Annotated[float, Field(ge=0)] = setting(
        10,
        "time that a request waits for room for what it names",
        seen="the same, counted as the share or the total that had no room",
    )
    max_parallel_requests_per_user: Annotated[int, Field(ge=1)] = setting(
        256,
        "requests of a user in progress in a process, of all endpoints with an API key",
        seen="429 `rate_limited` with Retry-After",
    )
    body_idle_s: Annotated[float, Field(gt=0)] = setting(
        60,
        "time without data from a client that sends a body or file",
        seen="408 `upload_stalled`, and the connection is closed",
    )
    min_body_bytes_per_s: Annotated[int, Field(ge=1)] = setting(
        8 << 10,
        "minimum average rate of a body or file, after body_idle_s of waiting",
        seen="408 `upload_stalled`, and the connection is closed",
    )
    max_message_bytes: Annotated[int, Field(ge=1024)] = setting(
        80 << 20, "bytes of one gRPC message, in either direction", seen="`RESOURCE_EXHAUSTED`"
    )
    max_answer_bytes: Annotated[int, Field(ge=1 << 16)] = setting(
        80 << 20,
        "bytes of a provider's answer with its head, before and after decompression",
        details="exceeded by at most one socket read",
        seen="502 or an error event, `upstream_error`",
    )
    max_answer_parts: Annotated[int, Field(ge=16)] = setting(
        10_000,
        "blocks and tool calls of an answer, unknown deltas and buffered fragments",
        seen="502 or an error event, `upstream_error`",
    )
    max_answer_values: Annotated[int, Field(ge=1024)] = setting(
        1_000_000,
        "JSON values in an answer, in one event of it, and in all its unknown deltas and "
        "fields together",
        seen="502 or an error event, `upstream_error`",
    )
    max_recovered_characters: Annotated[int, Field(ge=0)] = setting(
        4 << 20,
        "characters already sent of an interrupted answer that another model is to continue",
        details="not counted",
        seen="the error event of the failure",
    )
    max_sse_line_bytes: Annotated[int, Field(ge=1 << 16)] = setting(
        32 << 20,
        "bytes of one event of a provider's stream",
        details="also 262,144 lines",
        seen="502 or an error event, `upstream_error`",
    )
    upstream_idle_s: Annotated[float, Field(gt=0)] = setting(
        30, "time after which an unused connection to a provider is closed", seen="nothing"
    )
    max_idle_upstream_connections: Annotated[int, Field(ge=0)] = setting(
        256,
        "unused connections to providers per process; further ones are closed at once",
        seen="nothing",
    )
    connect_timeout_s: Annotated[float, Field(gt=0)] = setting(10, "time to connect to a provider")
    step_timeout_s: Annotated[float, Field(gt=0)] = setting(
        600,
        "per model: time to the first content of a stream (text, thinking, a tool call), or "
        "to the end of a whole answer",
        details="roles, pings and token counts are not content, so a provider that sends "
        "nothing else times out, later in a stream too",
        seen="504 `upstream_timeout`",
    )
    stream_idle_s: Annotated[float, Field(gt=0)] = setting(
        300,
        "silence of a stream after its first content",
        details="at most the step's `timeout_ms`, and 30 s once the answer has ended; if another "
        "model or deployment can continue the answer, four times the longest silence before that "
        "is usual for the model, at least 15 s, or 30 s for a model of which fewer than five "
        "streams are known; pings end a silence, but a stream of nothing else ends after this time "
        "if another model can continue the answer, and after step_timeout_s otherwise",
        seen="an error event, `upstream_timeout`",
    )
    hedge_after_s: Annotated[float, Field(ge=0)] = setting(
        10, "silence after which `auto` also calls the next model; 0: never"
    )
    breaker_failures: Annotated[int, Field(ge=1)] = setting(
        5, "consecutive failures after which a model is skipped for a while"
    )
    keepalive_s: Annotated[float, Field(gt=0, le=15)] = setting(
        10, "interval of keep-alives to a waiting caller, at most 15"
    )
    hold_headers_s: Annotated[float, Field(gt=0, le=15)] = setting(
        15, "time in which a failure still becomes an HTTP status, at most 15"
    )
    drain_s: Annotated[float, Field(ge=0)] = setting(
        30,
        "time for running requests and background responses when the gateway stops",
        seen="background responses become `failed`; 503 `unavailable` with `Retry-After`; a "
        "stream that has begun ends with an error event",
    )
    lease_every_s: Annotated[float, Field(gt=0, le=10)] = setting(
        1,
        "interval at which a worker claims allowances of keys, users and teams in advance; "
        "increase it for very many workers",
    )
    slot_lease_s: Annotated[float, Field(ge=4)] = setting(
        4,
        "time after which the requests of a dead worker no longer count as in progress; at "
        "least three times lease_every_s is used",
    )
    identify_cache_s: Annotated[float, Field(ge=0, le=30)] = setting(
        30, "time that a key is cached, at most 30; changes end it earlier"
    )
    max_file_bytes: Annotated[int, Field(ge=1)] = setting(
        50 << 20, "bytes of a file", seen="413 `too_large`, as soon as the size is known"
    )
    default_file_lifetime_s: Annotated[int, Field(ge=1, le=MAX_FILE_LIFETIME_S)] = setting(
        30 * 86_400, "of a file without an expiry, at most 31536000"
    )
    upload_lifetime_s: Annotated[int, Field(ge=60, le=7 * 86_400)] = setting(
        3600,
        "time from the beginning of an upload in parts to its completion",
        seen="404 `not_found`",
    )
    sweep_every_s: Annotated[float, Field(gt=0)] = setting(
        60, "interval at which expired files and uploads are deleted"
    )
    orphan_grace_s: Annotated[float, Field(gt=0)] = setting(
        3600, "age at which bytes without a file are deleted"
    )
    max_fetched_bytes: Annotated[int, Field(ge=1024)] = setting(
        20 << 20,
        "bytes of the content of a URL that a caller or a model provides, compressed and "
        "decompressed",
        seen="400 `invalid_request`",
    )
    max_parallel_fetches: Annotated[int, Field(ge=1)] = setting(
        16, "fetches of a process at a time; others wait", seen="a later answer"
    )
    fetch_timeout_s: Annotated[float, Field(gt=0)] = setting(
        10,
        "time of one fetch: name resolution, connection, redirects and body",
        seen="504 `upstream_timeout`",
    )
    max_parallel_conversions: Annotated[int, Field(ge=1)] = setting(
        2,
        "processes that convert documents, images and recordings at a time, per gateway "
        "process; waiting callers take turns",
        details="one user has at most one fewer, so that a process is left for others; with "
        "1, users only take turns",
        seen="a later answer",
    )
    max_waiting_conversions: Annotated[int, Field(ge=0)] = setting(
        100,
        "waiting conversions; half as many of one user",
        seen="503 `unavailable` with Retry-After",
    )
    conversion_timeout_s: Annotated[float, Field(gt=0)] = setting(
        300,
        "time of one conversion, excluding waiting; then its process is killed",
        seen="400 with the part",
    )
    conversion_seconds_per_user: Annotated[float, Field(gt=0)] = setting(
        1800,
        "seconds of one user's conversions in an hour, per gateway process",
        details="they are regained continuously, and the last conversion may exceed them",
        seen="429 `rate_limited` with Retry-After",
    )
    conversion_memory_bytes: Annotated[int, Field(ge=512 << 20)] = setting(
        2 << 30, "bytes of the address space of a process that converts", seen="400 with the part"
    )
    max_shown_pages: Annotated[int, Field(ge=1)] = setting(
        500,
        "pages of a file that are shown as pictures, or as text for slides and sheets",
        details="`GET /v1/files/{file_id}/pages/{number}`; a PPTX or XLSX with more has none",
        seen="400 `invalid_request`",
    )
    storage: StorageLimits = setting(
        StorageLimits(),
        "bytes of the files of a team, or of a user without a team, by plan",
        seen="403 `storage_quota_exceeded`",
    )


class Grpc(Section):
    """gRPC on a TCP port: its certificates, and limits that a Unix socket does not have."""

    certificate: str = setting(
        "",
        "PEM file; with private_key and client_ca, connections use TLS and callers must "
        "present a certificate of client_ca",
    )
    private_key: str = setting("", "PEM file with the key of the certificate")
    client_ca: str = setting(
        "", "PEM file; a facade on its own host presents the certificate to the services"
    )
    max_connections: Annotated[int, Field(ge=1)] = setting(
        1000,
        "connections of a process; further ones are closed at once",
        seen="the connection is closed",
    )
    max_calls_per_connection: Annotated[int, Field(ge=1)] = setting(
        1000,
        "calls on a connection at a time; further ones wait at their caller",
        seen="a further call waits in its client",
    )
    max_metadata_bytes: Annotated[int, Field(ge=1024)] = setting(
        16 << 10, "bytes of the metadata of a call", seen="`RESOURCE_EXHAUSTED`"
    )
    handshake_timeout_s: Annotated[float, Field(gt=0)] = setting(
        10, "time to begin HTTP/2 on a connection", seen="the connection is closed"
    )
    idle_connection_s: Annotated[float, Field(gt=0)] = setting(
        300,
        "time that a connection may stay without a call",
        seen="GOAWAY; the next call opens another connection",
    )
    connection_age_s: Annotated[float, Field(gt=0)] = setting(
        3600, "age at which a connection accepts no new calls; running ones go on", seen="the same"
    )
    read_timeout_s: Annotated[float, Field(gt=0)] = setting(
        60, "time to receive the message of a call", seen="`DEADLINE_EXCEEDED`, `timeout`"
    )
    max_reads_per_user: Annotated[int, Field(ge=1)] = setting(
        2, "request messages of one user received at a time; others wait", seen="further ones wait"
    )
    max_held_bytes_per_user: Annotated[int, Field(ge=1024)] = setting(
        160 << 20,
        "bytes of the request messages of one user's running calls",
        seen="`RESOURCE_EXHAUSTED`, `rate_limited`",
    )

    @model_validator(mode="after")
    def _certificates_go_together(self) -> Self:
        paths = [self.certificate, self.private_key, self.client_ca]
        if any(paths) and not all(paths):
            raise ValueError("certificate, private_key and client_ca must be set together")
        return self
