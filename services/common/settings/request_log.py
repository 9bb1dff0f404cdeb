"""Settings of the request log."""

from typing import Annotated

from pydantic import Field, field_validator

from services.common.settings.base import Name, Section, setting
from services.common.text.linear_patterns import compile_linear


class RequestLog(Section):
    """The log of requests that administrators can search."""

    enabled: bool = setting(False, "whether requests with an API key over HTTP are logged")
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
        details="they are counted ([request-log.md](request-log.md))",
        seen="nothing",
    )
    keep_s: Annotated[float, Field(ge=60)] = setting(
        7 * 86_400, "time that an entry is stored", seen="nothing"
    )
    max_entries: Annotated[int, Field(ge=1)] = setting(
        1_000_000, "entries that are stored; the oldest are deleted first", seen="nothing"
    )

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
