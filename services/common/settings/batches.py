"""Settings of batches."""

from typing import Annotated

from pydantic import Field

from services.common.settings.base import Section, setting


class Batches(Section):
    """Batches: many requests to models that workers run in the background."""

    enabled: bool = setting(
        True,
        "whether the workers of this machine run the requests of batches; batches can be created "
        "in any case",
    )
    max_requests: Annotated[int, Field(ge=1, le=1_000_000)] = setting(
        50_000,
        "requests of a batch",
        seen="the batch fails with the error `too_many_tasks`; 413 `too_large` for a batch of "
        "messages",
    )
    max_bytes: Annotated[int, Field(ge=1024)] = setting(
        200 << 20, "bytes of the requests of a batch", seen="400 `invalid_request`"
    )
    max_open_per_user: Annotated[int, Field(ge=1)] = setting(
        20,
        "batches of a user that have not ended",
        seen="429 `rate_limited` with Retry-After",
    )
    max_parallel_requests: Annotated[int, Field(ge=1, le=10_000)] = setting(
        32, "requests of batches that a worker runs at a time", seen="batches take longer"
    )
    max_parallel_requests_per_user: Annotated[int, Field(ge=1, le=10_000)] = setting(
        8, "such requests of one user", seen="batches take longer"
    )
    provider_poll_every_s: Annotated[float, Field(gt=0, le=3_600)] = setting(
        30,
        "time between two looks at a batch that the batch service of a provider runs",
        seen="results arrive later",
    )
    window_s: Annotated[float, Field(gt=0)] = setting(
        86_400,
        "time in which the requests of a batch are begun",
        details="24 hours at OpenAI and at Anthropic, whose clients expect it",
        seen="the batch expires: the other requests are not run, and their results say so",
    )
    retention_s: Annotated[float, Field(gt=0)] = setting(
        29 * 86_400,
        "time that a batch and the results of a batch of messages are stored after its end; files "
        "of results have a lifetime of their own",
        seen="404 `not_found`",
    )
    lease_s: Annotated[float, Field(ge=1)] = setting(
        30,
        "time after which other workers run the requests of a worker that has died on another "
        "machine; at most 200 requests and 2 seconds of their results",
        seen="nothing",
    )
