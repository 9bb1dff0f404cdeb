"""Invalidates the caches of one process after changes of keys, users and teams by any process.

A changed model group invalidates all owners of keys. A changed provider has the stored providers
read again, also in an idle process: their keys may be invalid by the time of its next request.

Each change writes an entry to the audit log in its own transaction. The log is read every few
seconds while a cache has entries; an idle process reads nothing. Entries about created keys, users
and teams are ignored, since no cache can have an entry for them. So a new key in use stays cached
if the database becomes unavailable. Created admin keys do invalidate the cached list of admin keys.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sqlalchemy import not_, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.audit import Subject
from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.tables import audit_log
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import CachingAuthenticator
from services.common.storage.database import reading_once

EVERY_S = 2.0
# Entries are read again from this long before the last reading: transactions take time, and the
# clocks of machines differ.
_OVERLAP_MS = 60_000
# With more changes at once, all cached owners are invalidated.
_MOST = 1_000

_MAY_BE_KNOWN = or_(
    audit_log.c.subject_kind.in_(("admin_key", "provider")),
    not_(audit_log.c.action.endswith(".create")),
)

log = logging.getLogger(__name__)


class ChangeWatch:
    """Reads the audit log for the caches of one process.

    Args:
        engine: the database.
        clock: the clock.
        callers: the cache of owners of keys.
        admins: the cache of admin keys.
        has_providers: returns whether providers can be stored.
        read_providers: reads the stored providers again.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        callers: CachingAuthenticator,
        admins: AdminAuthenticator,
        has_providers: Callable[[], bool],
        read_providers: Callable[[], Awaitable[None]],
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._callers = callers
        self._admins = admins
        self._has_providers = has_providers
        self._read_providers = read_providers
        self._read_at_ms = clock.now_ms()
        self._seen: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Read the log every few seconds until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                is_cached = self._callers.is_in_use or self._admins.is_in_use
                if is_cached or self._has_providers():
                    await self.check()
            except GatewayError as error:
                # The changes are read when the database answers again.
                log.warning("changes of keys could not be read", extra={"error": error.message})

    async def check(self) -> None:
        """Invalidate cache entries of keys, users and teams that changed since the last check.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        now_ms = self._clock.now_ms()
        query = (
            select(audit_log.c.id, audit_log.c.subject_kind, audit_log.c.subject_id)
            .where(audit_log.c.at_ms >= self._read_at_ms - _OVERLAP_MS, _MAY_BE_KNOWN)
            .order_by(audit_log.c.at_ms.desc(), audit_log.c.id.desc())
            .limit(_MOST)
        )
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        new = [
            Subject(row.subject_kind, row.subject_id) for row in rows if row.id not in self._seen
        ]
        if any(subject.kind == "admin_key" for subject in new):
            self._admins.forget()
        if len(rows) == _MOST or any(subject.kind == "provider" for subject in new):
            # If it fails, the entries are read again.
            await self._read_providers()
        has_group = any(subject.kind == "model_group" for subject in new)
        if has_group or len(rows) == _MOST:
            self._callers.forget_all()
        else:
            for subject in new:
                self._callers.forget(*subject)
        self._seen = frozenset(row.id for row in rows)
        self._read_at_ms = now_ms
