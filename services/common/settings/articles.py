"""The section of the settings for document editing."""

from typing import Annotated

from pydantic import Field

from services.common.settings.base import PlanLimits, Section, setting


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

    require_grant: bool = setting(False, "true: only for users with `gateway grants add`")
    session_ttl_s: Annotated[float, Field(gt=0)] = setting(
        600, "time that a session lasts without a call"
    )
    session_remembered_s: Annotated[float, Field(gt=0)] = setting(
        86_400, "time that an expired session is reported as expired"
    )
    max_sessions: Annotated[int, Field(ge=1)] = setting(
        1000,
        "open sessions of a user",
        details="expired ones that are still stored count too, and are removed first",
        seen="429, code 42901, Retry-After until the first expires",
    )
    deleted_retention_s: Annotated[float, Field(gt=0)] = setting(
        30 * 86_400, "time that a deleted document can be restored, if the quota has room"
    )
    cache_bytes: Annotated[int, Field(ge=0)] = setting(
        128 << 20,
        "approximate bytes of the cache of open documents in a process; the least recently "
        "used is evicted",
        seen="nothing",
    )
    quota: ArticleQuota = setting(
        ArticleQuota(),
        "bytes of the documents that a user created, by plan: every operation with its "
        "inverse, and some hundred bytes for each",
        details="256 bytes for each operation, in blocks of 16 KiB per document, and 1 KiB per "
        "document, whoever edits it",
        seen="403, code 40303",
    )
    documents: ArticleDocuments = setting(
        ArticleDocuments(), "documents that a user created, by plan", seen="403, code 40303"
    )
