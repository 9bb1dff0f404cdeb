"""Leases parts of allowances for this worker, in batches.

One call is made at a time; claims of requests meanwhile go into the next one. Once per tick, a call
also returns amounts that are no longer needed, claims amounts for the next requests, and renews
leases.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Grant, Measure, SubjectKind
from services.common.errors import GatewayError, unavailable
from services.common.limit_windows import NO_PERIOD, Period
from services.inference.allowances.allowance import Allowance, Claim

# How long a scarce free slot is kept for the next request of this worker.
RETURN_AFTER_S = 0.05
# Maximum claims in one call.
_MAX_CLAIMS = 1_000
# Minimum interval between log lines: while a database is unavailable, calls fail in every tick.
_LOG_EVERY_MS = 60_000

# The subjects whose limits are in the settings.
OF_SETTINGS: Final = frozenset(
    {limits_pb2.SUBJECT_KIND_PROVIDER, limits_pb2.SUBJECT_KIND_DEPLOYMENT}
)

log = logging.getLogger(__name__)


class Key(NamedTuple):
    """The key of an allowance.

    Attributes:
        kind: the kind of the subject.
        subject_id: the id of the subject.
        measure: the measure.
        period: the periods of the measure, normalized.
    """

    kind: SubjectKind.ValueType
    subject_id: str
    measure: Measure.ValueType
    period: Period = NO_PERIOD


class LeaseClient(Protocol):
    """Calls the LimitService."""

    async def lease(self, claims: Sequence[tuple[Key, Claim]]) -> Sequence[Grant]:
        """Return the grants to claims, in order.

        Raises:
            GatewayError: the claims were not answered.
        """
        ...


class Leaser:
    """The allowances of one worker.

    Args:
        client: client of the LimitService.
        now_ms: returns the time in Unix milliseconds.
        tick_s: seconds of a tick; a reported remainder is considered current for as long.
        slot_lease_s: duration of a lease on slots, in seconds.

    Attributes:
        forgotten: number of allowances removed so far; if it changes, an allowance obtained
            before may have been replaced.
    """

    def __init__(
        self,
        client: LeaseClient,
        now_ms: Callable[[], int],
        *,
        tick_s: float,
        slot_lease_s: float,
    ) -> None:
        self.forgotten = 0
        self._client = client
        self._now_ms = now_ms
        self._tick_s = tick_s
        self._fresh_ms = int(1000 * tick_s)
        self._slot_lease_ms = int(1000 * slot_lease_s)
        self._allowances: dict[Key, Allowance] = {}
        self._due: dict[Key, Allowance] = {}
        self._round: asyncio.Future[GatewayError | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._returning: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._failures = 0  # failed calls since the last log line
        self._logged_at_ms: int | None = None

    def allowance(self, key: Key, limit: int) -> Allowance:
        """Return an allowance; a new one has the given limit.

        An allowance may be replaced while the caller awaits something; get it again afterwards.
        """
        allowance = self._allowances.get(key)
        if allowance is None:
            allowance = Allowance(
                key.measure,
                limit,
                fresh_ms=self._fresh_ms,
                slot_lease_ms=self._slot_lease_ms,
                now_ms=self._now_ms(),
                period=key.period,
            )
            self._allowances[key] = allowance
            if self._ticking is None and not self._is_closed:
                self._ticking = asyncio.get_running_loop().call_later(self._tick_s, self._tick)
        return allowance

    async def claim(self, keys: Sequence[Key]) -> None:
        """Claim the wanted amounts of allowances, and wait for the grants.

        Raises:
            GatewayError: the claims were not answered.
        """
        if self._is_closed:
            raise unavailable("the gateway is stopping")
        self._note(keys)
        answered = self._round
        if answered is None:
            answered = self._round = asyncio.get_running_loop().create_future()
        # A cancelled request must not cancel the future that others wait for.
        error = await asyncio.shield(answered)
        if error is not None:
            raise error

    def note(self, key: Key) -> None:
        """Claim an overdrawn allowance in the background."""
        self._note([key])

    def return_soon(self, key: Key) -> None:
        """Return free slots after `RETURN_AFTER_S`, unless a request has taken them by then."""
        self._due[key] = self._allowances[key]
        if self._returning is None:
            self._returning = asyncio.get_running_loop().call_later(RETURN_AFTER_S, self._return)

    async def close(self) -> None:
        """Return all amounts that are not used. Later usage is not counted."""
        self._is_closed = True
        for timer in (self._ticking, self._returning):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._due = self._allowances
        error = await self._claim_due(releases=True)
        if error is not None:
            log.warning("leased allowances could not be returned", extra={"error": error.message})

    def _note(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._due[key] = self._allowances[key]
        self._start()

    def _return(self) -> None:
        self._returning = None
        self._start()

    def _tick(self) -> None:
        now_ms = self._now_ms()
        for key, allowance in list(self._allowances.items()):
            if allowance.is_forgotten(now_ms):
                del self._allowances[key]
                self.forgotten += 1
                self._due.pop(key, None)
            else:
                allowance.tick()
                self._due[key] = allowance
        self._ticking = None
        if self._allowances:
            self._ticking = asyncio.get_running_loop().call_later(self._tick_s, self._tick)
            self._start()

    def _start(self) -> None:
        if self._task is None and self._due and not self._is_closed:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._due:
            answered, self._round = self._round, None
            try:
                error = await self._claim_due()
            except Exception:
                log.exception("claims on limits failed")
                error = unavailable("limits cannot be checked; try again")
            if answered is not None:
                answered.set_result(error)
        self._task = None

    def _log(self, error: GatewayError) -> None:
        """Log a failed call, at most once per `_LOG_EVERY_MS`."""
        self._failures += 1
        now_ms = self._now_ms()
        if self._logged_at_ms is not None and now_ms < self._logged_at_ms + _LOG_EVERY_MS:
            return
        details = {"error": error.message, "failures": self._failures}
        log.warning("limits could not be leased", extra=details)
        self._logged_at_ms, self._failures = now_ms, 0

    async def _claim_due(self, *, releases: bool = False) -> GatewayError | None:
        due, self._due = self._due, {}
        now_ms = self._now_ms()
        claims = [
            (key, allowance, claim)
            for key, allowance in due.items()
            if (claim := allowance.next_claim(now_ms, releases=releases)) is not None
        ]
        failure = None
        for start in range(0, len(claims), _MAX_CLAIMS):
            part = claims[start : start + _MAX_CLAIMS]
            try:
                grants = await self._client.lease([(key, claim) for key, _, claim in part])
            except GatewayError as error:
                failure = error
                self._log(error)
                for _, allowance, _ in part:
                    allowance.failed()
                continue
            now_ms = self._now_ms()
            for (_, allowance, _), grant in zip(part, grants, strict=True):
                limit = grant.limit if grant.HasField("limit") else None
                allowance.apply_grant(grant.granted, grant.remaining, limit, now_ms, grant.spent)
        return failure
