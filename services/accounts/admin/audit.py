"""The audit log: the author, the time, the old and the new state of each change.

An entry is written in the transaction of its change, so neither exists without the other. Entries
contain no secrets: of a key they contain only the id and the prefix.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import delete, insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.admin_pb2 import AuditEntry
from services.accounts.names import is_id, is_name
from services.accounts.tables import audit_log
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.ids import IdGenerator
from services.common.storage.database import reading_once, write
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Sweeper, remove_in_batches

SUBJECT_KINDS = (
    *("key", "user", "team", "admin_key", "model_group", "tag", "end_user", "end_users"),
    *("session", "provider", "invitation"),
)

# Entries that a sweep removes in one transaction.
_BATCH = 500

# The state of a row in an entry: columns and values, without secrets.
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change.

    Attributes:
        name: id of an admin key, `command line`, `erasure` or `first start`.
        request_id: id of the request that makes the change, or "".
        key_name: name of the admin key, or "".
        address: network address of the caller, or "".
        is_admin_user: whether the author is an administrator by the role of a user, who must not
            remove the last one.
    """

    name: str
    request_id: str = ""
    key_name: str = ""
    address: str = ""
    is_admin_user: bool = False


class Subject(NamedTuple):
    """The subject of a change: a kind of `SUBJECT_KINDS`, and an id."""

    kind: str
    id: str


COMMAND_LINE = Actor("command line")
FIRST_START = Actor("first start")


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter for the entries of the audit log.

    Attributes:
        since_ms: earliest time in Unix milliseconds, inclusive, or None.
        until_ms: latest time in Unix milliseconds, exclusive, or None.
        subject_kind: one of `SUBJECT_KINDS`, or "" for all.
        subject_id: id of a subject, or "" for all.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    subject_kind: str = ""
    subject_id: str = ""


class AuditPage(NamedTuple):
    """A page of entries, newest first, and the token of the next page, "" on the last one."""

    entries: Sequence[AuditEntry]
    next_token: str


async def record(
    connection: AsyncConnection,
    clock: Clock,
    new_id: IdGenerator,
    actor: Actor,
    action: str,
    subject: Subject,
    *,
    before: Record | None = None,
    after: Record | None = None,
) -> None:
    """Write an entry.

    Args:
        connection: the connection in the transaction of the change.
        clock: the clock.
        new_id: generates the entry's id.
        actor: author of the change.
        action: name of the change, such as `key.create`.
        subject: the changed subject.
        before: old state; None if the subject is created.
        after: new state; None if the subject is deleted.
    """
    await connection.execute(
        insert(audit_log).values(
            id=new_id("audit_"),
            at_ms=clock.now_ms(),
            actor=actor.name,
            action=action,
            subject_kind=subject.kind,
            subject_id=subject.id,
            before=_to_json(before),
            after=_to_json(after),
            request_id=actor.request_id,
            actor_name=actor.key_name,
            address=actor.address,
        )
    )


class AuditLog:
    """Repository of the entries."""

    def __init__(self, engine: AsyncEngine, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock or Clock()

    async def page(
        self, entry_filter: AuditFilter, page_size: int, page_token: str = ""
    ) -> AuditPage:
        """Return the newest entries, or the page with a given token.

        Raises:
            GatewayError: invalid_request, when the kind of subject or the token is invalid.
        """
        if entry_filter.subject_kind not in ("", *SUBJECT_KINDS):
            raise invalid(
                "subject_kind", f"subject_kind: must be one of {', '.join(SUBJECT_KINDS)}"
            )
        subject_id = entry_filter.subject_id
        if subject_id and not (is_id(subject_id) or is_name(subject_id)):
            return AuditPage([], "")
        # One more than the page has, to detect whether another page follows.
        query = (
            select(audit_log)
            .order_by(audit_log.c.at_ms.desc(), audit_log.c.id.desc())
            .limit(page_size + 1)
        )
        if entry_filter.since_ms is not None:
            query = query.where(audit_log.c.at_ms >= entry_filter.since_ms)
        if entry_filter.until_ms is not None:
            query = query.where(audit_log.c.at_ms < entry_filter.until_ms)
        if entry_filter.subject_kind:
            query = query.where(audit_log.c.subject_kind == entry_filter.subject_kind)
        if entry_filter.subject_id:
            query = query.where(audit_log.c.subject_id == entry_filter.subject_id)
        if page_token:
            query = query.where(tuple_(audit_log.c.at_ms, audit_log.c.id) < _position(page_token))
        async with reading_once(self._engine) as connection:
            entries = [_to_entry(row._asdict()) for row in await connection.execute(query)]
        page = entries[:page_size]
        return AuditPage(page, _token(page[-1]) if len(entries) > page_size else "")

    async def remove_older(self, than_s: float, at_most: int) -> int:
        """Remove up to `at_most` entries older than `than_s` seconds; return the number removed."""
        until_ms = self._clock.now_ms() - int(1000 * than_s)
        old = select(audit_log.c.id).where(audit_log.c.at_ms < until_ms).limit(at_most)
        oldest = delete(audit_log).where(audit_log.c.id.in_(old))
        removed = await write(self._engine, lambda connection: connection.execute(oldest))
        return removed.rowcount


def audit_sweeper(log: AuditLog, lease: Lease, every_s: float, retention_s: float) -> Sweeper:
    """Return the sweeper of the entries that are older than `retention_s` seconds."""
    remove_older = partial(log.remove_older, retention_s)
    return Sweeper(lease, every_s, partial(remove_in_batches, remove_older, _BATCH))


def _token(entry: AuditEntry) -> str:
    return f"{entry.at_ms}_{entry.id}"


def _position(page_token: str) -> tuple[int, str]:
    """Parse a token of `_token`: a time in Unix milliseconds and an id.

    Raises:
        GatewayError: invalid_request.
    """
    at_ms, _, entry_id = page_token.partition("_")
    if not (at_ms.isascii() and at_ms.isdecimal() and len(at_ms) < 16 and is_id(entry_id)):
        raise invalid(
            "page_token", "page_token: must be the `next_page_token` of the previous page"
        )
    return int(at_ms), entry_id


def _to_json(value: Record | None) -> str | None:
    return None if value is None else json.dumps(dict(value), ensure_ascii=False)


def _to_entry(row: Mapping[str, Any]) -> AuditEntry:
    return AuditEntry(**{name: value for name, value in row.items() if value is not None})
