"""Sweeper of the audit log: removes entries after their retention time."""

from services.accounts.admin.audit import AuditLog
from services.common.leases import Lease
from services.common.sweeping import Sweeper

_AT_ONCE = 500


class AuditSweeper(Sweeper):
    """The sweeper of the audit log.

    Args:
        log: the audit log.
        lease: see `Sweeper`.
        every_s: seconds between two sweeps.
        retention_s: age in seconds at which an entry is removed.
    """

    def __init__(self, log: AuditLog, lease: Lease, every_s: float, retention_s: float) -> None:
        super().__init__(lease, every_s)
        self._log = log
        self._retention_s = retention_s

    async def remove_expired(self) -> None:
        """Remove entries that are older than the retention time."""
        while await self._log.remove_older(self._retention_s, _AT_ONCE) == _AT_ONCE:
            if not await self.renew_lease():
                return
