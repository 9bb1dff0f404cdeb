"""Settings of the request log."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from services.common.settings.base import (
    Name,
    Section,
    VariableName,
    setting,
    without_variables,
)
from services.common.text.linear_patterns import compile_linear

_S3 = "s3://"


class RequestLogLines(Section):
    """Export of the request log as JSON lines."""

    path: str = setting(
        "",
        "file to which entries are appended, or s3://bucket/prefix for an object a minute; empty: "
        "none",
    )
    max_bytes: Annotated[int, Field(ge=1 << 20)] = setting(
        64 << 20, "bytes of a file; then it is renamed, and another one begins", seen="nothing"
    )
    max_files: Annotated[int, Field(ge=1, le=10_000)] = setting(
        16,
        "number of files; the oldest are deleted first; in a bucket, objects of as many bytes as "
        "all files would have",
        seen="nothing",
    )

    @field_validator("path")
    @classmethod
    def _names_a_bucket(cls, value: str) -> str:
        if "://" in value and not (value.startswith(_S3) and value.removeprefix(_S3).strip("/")):
            raise ValueError("must be a path, or s3://bucket/prefix")
        return value

    @property
    def bucket(self) -> tuple[str, str] | None:
        """The names of a bucket and of the prefix in it, or None for a file."""
        if not self.path.startswith(_S3):
            return None
        name, _, prefix = self.path.removeprefix(_S3).partition("/")
        return name, prefix.strip("/")


class RequestLogWebhook(Section):
    """Export of the request log to a webhook."""

    url: str = setting(
        "",
        "http:// or https:// address to which entries are posted in the format of Langfuse, such "
        'as "https://cloud.langfuse.com/api/public/ingestion"; empty: none',
    )
    authorization: SecretStr = setting(
        SecretStr(""), 'value of the Authorization header, such as "Basic …"'
    )
    authorization_env: VariableName = setting("", "variable with that value")
    authorization_file: str = setting("", "file with that value")

    @field_validator("url", "authorization", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        try:
            address = urlsplit(value)
            is_address = address.scheme in ("http", "https") and bool(address.hostname)
            _ = address.port
        except ValueError:
            is_address = False
        if value and not is_address:
            raise ValueError("must be an http:// or https:// address")
        return value

    @model_validator(mode="after")
    def _authorization_has_an_address(self) -> Self:
        if not self.url and (self.authorization.get_secret_value() or self.authorization_env):
            raise ValueError("url: is required with authorization")
        return self

    def authorization_value(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the value of the Authorization header, or "" for none."""
        secret = self.authorization.get_secret_value()
        return secret or environ.get(self.authorization_env, "").strip()


class RequestLog(Section):
    """The log of requests that administrators can search."""

    enabled: bool = setting(False, "whether requests with an API key are logged")
    key_ids: Annotated[list[Name], Field(max_length=1_000)] = setting(
        [], "ids of the API keys whose requests are logged; empty: all"
    )
    models: Annotated[list[Name], Field(max_length=1_000)] = setting(
        [],
        "models whose requests are logged, by the name in the request; a trailing * matches any "
        "suffix; empty: all requests, also those without a model",
    )
    sample_rate: Annotated[float, Field(gt=0, le=1)] = setting(
        1, "share of the requests that is logged"
    )
    bodies: bool = setting(
        False,
        "whether the bodies of requests to models and of their answers are logged too, redacted "
        "and truncated",
    )
    redact: Annotated[list[str], Field(max_length=20)] = setting(
        [],
        "regular expressions of what is replaced in logged bodies, beside keys and passwords in "
        'URLs; such as "[0-9]{3}-[0-9]{2}-[0-9]{4}"; only the last repeat may be unbounded',
    )
    max_body_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 20)] = setting(
        64 << 10, "bytes of a logged body; the rest is left out", seen="nothing"
    )
    max_pending_bytes: Annotated[int, Field(ge=1 << 20)] = setting(
        32 << 20,
        "bytes of bodies of one process that are in memory; further ones are left out",
        details="as many, with their entries, wait for each exporter",
        seen="nothing",
    )
    max_stored_bytes: Annotated[int, Field(ge=1 << 20)] = setting(
        10 << 30, "bytes of bodies that are stored; the oldest are deleted first", seen="nothing"
    )
    write_every_s: Annotated[float, Field(gt=0, le=60)] = setting(
        2, "interval of writes to the database; until then, entries are in memory"
    )
    max_pending_entries: Annotated[int, Field(ge=1, le=1_000_000)] = setting(
        10_000,
        "entries of one process that are in memory; further ones are dropped",
        details="they are counted ([request-log.md](request-log.md)); as many wait for each "
        "exporter",
        seen="nothing",
    )
    keep_s: Annotated[float, Field(ge=60)] = setting(
        7 * 86_400, "time that an entry is stored", seen="nothing"
    )
    max_entries: Annotated[int, Field(ge=1)] = setting(
        1_000_000, "entries that are stored; the oldest are deleted first", seen="nothing"
    )

    otlp: bool = setting(
        False,
        "whether entries are also sent as logs to the collector of telemetry.otlp_endpoint",
    )
    json_lines: RequestLogLines = setting(
        RequestLogLines(), "export of entries as JSON lines (docs/request-log.md)"
    )
    webhook: RequestLogWebhook = setting(
        RequestLogWebhook(), "export of entries to Langfuse, or to what reads its format"
    )

    @property
    def requires_collector(self) -> bool:
        """Whether entries are sent to a collector."""
        return self.enabled and self.otlp

    @field_validator("redact")
    @classmethod
    def _are_linear(cls, value: list[str]) -> list[str]:
        for pattern in value:
            try:
                compile_linear(pattern)
            except ValueError as error:
                raise ValueError(f"{pattern!r} {error}") from None
        return value

    @field_validator("models")
    @classmethod
    def _have_stars_at_their_ends_alone(cls, value: list[str]) -> list[str]:
        if any("*" in name[:-1] for name in value):
            raise ValueError("must be names of models, with * at most at the end")
        return value
