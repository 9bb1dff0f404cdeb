"""The section of the settings for memories and stored responses."""

from typing import Annotated

from pydantic import Field

from services.common.settings.base import PlanLimits, Section, setting


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

    lock_wait_s: Annotated[float, Field(ge=0)] = setting(
        10, "time that a request waits for the lock of a memory"
    )
    lock_lease_s: Annotated[float, Field(ge=1, le=30)] = setting(
        3, "time after which the lock of a dead process expires, at most 30"
    )
    sync_wait_s: Annotated[float, Field(ge=0)] = setting(
        30, "time that a request waits for a model's summary of older turns"
    )
    leave_drain_s: Annotated[float, Field(ge=0)] = setting(
        120, "time to read an answer to its end after its client disconnected"
    )
    max_readers: Annotated[int, Field(ge=1)] = setting(
        5, "requests that may read one memory at once"
    )
    inject_tokens: Annotated[int, Field(ge=0)] = setting(
        4000,
        "tokens of profile, summary and retrieved turns in a request; at most a quarter of "
        "the model's context",
    )
    retrieve_top_k: Annotated[int, Field(ge=0, le=100)] = setting(
        16, "older turns retrieved for a request"
    )
    retrieve_tokens: Annotated[int, Field(ge=0)] = setting(2000, "tokens of these turns together")
    embed_wait_s: Annotated[float, Field(gt=0)] = setting(
        2, "time that a request waits for the vector of its question"
    )
    job_poll_s: Annotated[float, Field(gt=0)] = setting(
        2,
        "interval at which waiting summaries and facts are polled; five times as long while none "
        "is due",
    )
    response_ttl_s: Annotated[float, Field(gt=0)] = setting(
        30 * 86_400,
        "time that a stored response is kept, from the last one that continues it, and a "
        "stored conversation, from its last change",
        seen="404",
    )
    response_lease_s: Annotated[float, Field(ge=1, le=300)] = setting(
        15,
        "time after which a background response of a dead worker fails",
        details="used with PostgreSQL",
        seen="it becomes `failed`",
    )
    max_response_bytes: Annotated[int, Field(ge=1024)] = setting(
        64 << 20,
        "bytes of one stored response with its own input",
        seen="413 `too_large`; a background response becomes `failed`",
    )
    max_conversation: Annotated[int, Field(ge=1)] = setting(
        1000,
        "responses in a chain of previous_response_id",
        details="their items together are limited to `limits.max_body_bytes`",
        seen="413 `too_large`",
    )
    max_conversation_items: Annotated[int, Field(ge=1)] = setting(
        10_000,
        "items of a stored conversation",
        details="their bytes together are limited to `limits.max_body_bytes`",
        seen="413 `too_large`; a background response becomes `failed`",
    )
    quota: MemoryQuota = setting(
        MemoryQuota(), "memories of a user, by plan", seen="403 `memory_quota_exceeded`"
    )
    storage: MemoryStorage = setting(
        MemoryStorage(),
        "bytes of a user's memories, stored responses and conversations, by plan; the "
        "messages of memories count twice, as their index is about as large",
        details="also 512 bytes per commit, 64 per message, and vectors; responses count with"
        " their own input once, 512 each, 256 per output item, and 4 KiB while they "
        "are generated in the background; conversations 512 each, and 256 per item",
        seen="403 `memory_storage_exceeded`, before a model is called if the request alone "
        "does not fit in a memory; a background response becomes `failed`",
    )
