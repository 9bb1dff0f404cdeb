"""This worker's part of an allowance: pure arithmetic, without a clock or a database.

The worker leases parts of the allowance and admits requests from them. The leased amount that
requests have not used is available, and no more is admitted. Tokens and money are reserved when a
request is admitted, and settled when it ends. An answer that uses more than was reserved for it
makes the available amount negative until the next claim.
"""

from typing import Final, NamedTuple

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure
from services.common.limit_windows import NO_PERIOD, SPEND, Period, Window, window_of
from services.common.messages.passthrough_answer import CallerLimit

# The amount kept available after a tick, as a multiple of what was used in the tick.
_TICKS_AHEAD: Final = 2
# An allowance is scarce if at most its limit divided by this remains.
_SCARCE: Final = 8
# Time without a request after which a day's or month's allowance is forgotten.
_FORGOTTEN_MS: Final = 600_000
# Measures of which requests reserve an amount, and use another.
RESERVED: Final = SPEND | {limits_pb2.MEASURE_TOKENS_PER_MINUTE}


class Claim(NamedTuple):
    """A claim on an allowance; fields as in `gateway.accounts.v1.Claim`."""

    window: Window
    ends_at_ms: int
    held_amount: int
    amount: int
    min_amount: int
    prefetch_amount: int
    releases: bool
    reserved_amount: int = 0
    reserved_until_ms: int = 0
    overdraws: bool = False
    limit: int = 0


class Allowance:
    """This worker's part of an allowance: of one subject, measure and window.

    Args:
        measure: the measure.
        limit: the limit known to this worker.
        fresh_ms: how long the last reported remainder is considered current.
        slot_lease_ms: duration of a lease on slots of concurrent requests.
        now_ms: the time in Unix milliseconds.
        period: the periods of the measure.

    Attributes:
        limit: the limit in force.
        is_slots: whether the measure is concurrent requests, each of which returns its slot.
        is_reserved: whether requests reserve an amount, of which one may exceed the limit.
        used: amount used in the window, with what is reserved by requests in progress; for slots,
            the number of running requests.
        reserved: the part of `used` that is reserved by requests in progress.
        window: the current window.
        wanted: amount that waiting requests need, to be claimed.
    """

    __slots__ = (
        "_active_at_ms",
        "_ends_ms",
        "_fresh_ms",
        "_granted_at_ms",
        "_held",
        "_is_settled",
        "_min_amount",
        "_own_spent",
        "_period",
        "_remaining",
        "_replaced",
        "_reported_until_ms",
        "_sent",
        "_slot_lease_ms",
        "_spent",
        "_takes_in_tick",
        "_target",
        "_used_in_tick",
        "_waiting",
        "is_reserved",
        "is_slots",
        "limit",
        "measure",
        "reserved",
        "used",
        "wanted",
        "window",
    )

    def __init__(
        self,
        measure: Measure.ValueType,
        limit: int,
        *,
        fresh_ms: int,
        slot_lease_ms: int,
        now_ms: int,
        period: Period = NO_PERIOD,
    ) -> None:
        self.measure = measure
        self._period = period
        self.limit = limit
        self.is_slots = measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS
        self.is_reserved = measure in RESERVED
        self.used = 0
        self.reserved = 0
        self.wanted = 0
        self._waiting = 0
        self._fresh_ms = fresh_ms
        self._slot_lease_ms = slot_lease_ms
        self._active_at_ms = now_ms
        self._target = 0
        self._used_in_tick = 0
        self._takes_in_tick = 0
        self._min_amount = 0
        self._replaced = 0  # the part of `wanted` that is reserved already
        self._sent: Claim | None = None
        self._begin(window_of(measure, now_ms, period))

    def _begin(self, window: Window) -> None:
        self.window = window
        # A request that ends in this window is charged to it.
        self.used = self.reserved
        self._held = 0
        # For slots, the end of the lease.
        self._ends_ms = 0 if self.is_slots else window.end_ms
        # The amount that no worker held at the last grant, negative if they held more than the
        # limit, with what has been returned since; and the time of that grant.
        self._remaining = 0
        self._granted_at_ms: int | None = None
        # The amounts that all workers and this one had spent at that time, and until when the
        # LimitService counts what is reserved here as reserved. What all have spent may be less
        # than what this one has: a reset of the budget is subtracted from it.
        self._spent = 0
        self._own_spent = 0
        # Whether the LimitService is still to learn what requests have used.
        self._is_settled = False
        self._reported_until_ms = 0

    @property
    def available(self) -> int:
        """The amount that may be used now; negative if answers cost more than estimated."""
        return self._held - self.used

    def admits(self, amount: int, now_ms: int) -> bool:
        """Return whether `amount` may be used at the time `now_ms`."""
        if not self.window.start_ms <= now_ms < self._ends_ms:
            self.advance(now_ms)
        return self._held - self.used >= amount

    def advance(self, now_ms: int) -> None:
        """Begin the window of the time `now_ms` if it is not the current one; drop expired leases.

        If the clock was set back, what was used in the later window counts in the earlier one too.
        """
        if self.window.start_ms <= now_ms < self._ends_ms:
            return
        if self.is_slots:
            # Other workers may hold the free slots by now; running requests continue.
            self._held = self.used
        else:
            used = self.used if now_ms < self.window.start_ms else 0
            self._begin(window_of(self.measure, now_ms, self._period))
            self.used = max(self.used, used)

    def take(self, amount: int, now_ms: int) -> None:
        """Use or reserve an amount that `admits` has found to be available."""
        self.used += amount
        if self.is_reserved:
            self.reserved += amount
        self._used_in_tick += amount
        self._takes_in_tick += 1
        self._active_at_ms = now_ms

    def settle(self, reserved: int, used: int, now_ms: int) -> None:
        """Replace the amount that a request took by the amount that it used, once it has ended."""
        self.advance(now_ms)
        if self.is_reserved:
            self.reserved -= reserved
            self._is_settled = True
        self.used += used - reserved
        if used > reserved:
            self._used_in_tick += used - reserved
        elif self._remaining < 0:
            # What exceeds the limit goes first.
            returned = min(reserved - used, -self._remaining)
            self._held -= returned
            self._remaining += returned
        self._active_at_ms = now_ms

    def is_exhausted(self, amount: int, now_ms: int) -> bool:
        """Return whether the last grant is current and left less than `amount`.

        A reservation needs only that something is left.
        """
        granted_at_ms = self._granted_at_ms
        is_fresh = (
            granted_at_ms is not None and granted_at_ms <= now_ms < granted_at_ms + self._fresh_ms
        )
        needed = min(1, amount) if self.is_reserved else amount
        return is_fresh and needed > max(0, self.available) + self._remaining

    @property
    def is_spent(self) -> bool:
        """Whether the limit is used up even if requests in progress used nothing."""
        if not self.is_reserved:
            return True
        newly_spent = max(0, self.used - self.reserved - self._own_spent)
        return self._spent + newly_spent >= self.limit

    def invalidate(self) -> None:
        """Invalidate the reported remainder, so that the next request claims again."""
        self._granted_at_ms = None

    def state(self) -> CallerLimit:
        """Return the state of the limit, to be reported to the caller."""
        reset_ms = self.window.end_ms if self.window.has_end else 0
        return CallerLimit(self.measure, self.limit, self.remaining(), reset_ms)

    def remaining(self) -> int:
        """Return the estimated remainder of the window, at all workers."""
        left_amount = self._remaining + self._held - self.used
        if left_amount < 0:
            return 0
        return left_amount if left_amount < self.limit else self.limit

    def want(self, amount: int, replaced: int = 0) -> None:
        """Record that a request waits for an amount, until `stop_waiting` is called.

        Args:
            amount: the amount, in addition to `replaced`.
            replaced: the amount that the request has reserved already. It is claimed again together
                with the addition, so that they may exceed the limit as one reservation.
        """
        total = amount + replaced
        if not self.wanted or total < self._min_amount or replaced > self._replaced:
            self._min_amount = total
        self._replaced += replaced
        self.wanted += total
        self._waiting += 1

    def stop_waiting(self) -> None:
        """Record that a request no longer waits."""
        self._waiting -= 1

    @property
    def is_scarce(self) -> bool:
        """Whether so little remains that other workers may lack what this one keeps available."""
        return self._remaining * _SCARCE <= self.limit

    @property
    def is_overdrawn(self) -> bool:
        """Whether the LimitService should learn at once that more was used than is leased."""
        return self.available < 0 and -self.available * _SCARCE >= self._remaining

    def tick(self) -> None:
        """End a tick; what was used in it determines the amount to keep available."""
        # A single request allows no prediction.
        self._target = _TICKS_AHEAD * self._used_in_tick if self._takes_in_tick > 1 else 0
        self._used_in_tick = self._takes_in_tick = 0

    def _kept(self) -> int:
        """Return the amount that should be available for the next requests."""
        if self._granted_at_ms is not None and self.is_scarce:
            return 0
        if self.is_slots:
            return self.used // 2
        # A tick that has begun may already use more than the last one.
        so_far = self._used_in_tick if self._takes_in_tick > 1 else 0
        return max(self._target, so_far)

    def _ends_soon(self, lease_ends_ms: int, now_ms: int) -> bool:
        """Return whether a lease must be renewed."""
        # More than a whole lease is left if the clock was set back.
        return not self._slot_lease_ms * 2 // 3 <= lease_ends_ms - now_ms <= self._slot_lease_ms

    def is_forgotten(self, now_ms: int) -> bool:
        """Return whether this allowance can be removed from memory."""
        if self._waiting or self._sent is not None or self.available > 0 or self.reserved:
            return False
        return self.used == 0 or now_ms >= self.window.end_ms

    def next_claim(self, now_ms: int, *, releases: bool = False) -> Claim | None:
        """Return the claim to send now, or None if there is none.

        Amounts that the claim returns are no longer available. `apply_grant` or `failed` must be
        called before the next call.

        Args:
            now_ms: the time.
            releases: whether to return everything that is not used; the worker then forgets the
                allowance.
        """
        self.advance(now_ms)
        is_idle = self.used > 0 and now_ms > self._active_at_ms + _FORGOTTEN_MS
        is_idle = is_idle and not self.reserved
        releases = releases or (is_idle and not self.is_slots and not self._waiting)
        available, target = max(0, self.available), 0 if releases else self._kept()
        keeps = available if self._waiting else min(available, target)
        returned = available - keeps
        if self.is_reserved and self.wanted > available:
            # Returned, and granted again if that is enough. Otherwise one reservation may exceed
            # what is left, which the LimitService decides.
            keeps = available = 0
        amount = max(0, self.wanted - available)
        is_low = self.wanted > available or 2 * available < target
        prefetch_amount = max(0, target - available) if is_low else 0
        if self.is_slots:
            is_due = self._held > 0 and self._ends_soon(self._ends_ms, now_ms)
        else:
            renews = self.reserved > 0 and self._ends_soon(self._reported_until_ms, now_ms)
            is_due = self._is_settled or renews
        is_changed = amount or prefetch_amount or keeps != available or self.available < 0
        if not (is_changed or is_due or (releases and self._held)):
            self.wanted = self._replaced = 0
            return None
        min_amount = min(amount, max(1, self._min_amount - available))
        ends_at_ms = now_ms + self._slot_lease_ms if self.is_slots else self.window.end_ms
        held_amount = self.used - self._replaced + keeps
        reserved_amount = min(held_amount, self.reserved - self._replaced + keeps)
        self.wanted = self._replaced = 0
        # What is returned is not refused meanwhile: whoever needs it waits for the grant.
        self._remaining += returned
        self._held = min(self._held, held_amount)
        self._is_settled = False
        reserved_until_ms = now_ms + self._slot_lease_ms
        self._sent = Claim(
            self.window,
            ends_at_ms,
            held_amount,
            amount,
            min_amount,
            prefetch_amount,
            releases,
            max(0, reserved_amount),
            reserved_until_ms,
            self.is_reserved,
            self.limit,
        )
        return self._sent

    def apply_grant(
        self, granted: int, remaining: int, limit: int | None, now_ms: int, spent: int = 0
    ) -> None:
        """Apply the grant for the last claim.

        Args:
            granted: the granted amount.
            remaining: the amount that no worker holds.
            limit: the current limit; None if it was removed.
            now_ms: the time.
            spent: the amount that all workers have spent.
        """
        sent_claim, self._sent = self._sent, None
        assert sent_claim is not None, "nothing was claimed"
        self.advance(now_ms)
        if limit is not None:
            self.limit = limit
        if sent_claim.window != self.window:
            return
        self._held = sent_claim.held_amount + granted
        if sent_claim.releases:
            # The LimitService now counts what had been used until the claim.
            self.used = max(0, self.used - sent_claim.held_amount)
            self._held = 0
        if self.is_slots:
            self._ends_ms = sent_claim.ends_at_ms
        self._remaining = remaining
        self._granted_at_ms = now_ms
        self._spent = spent
        self._own_spent = sent_claim.held_amount - sent_claim.reserved_amount
        self._reported_until_ms = sent_claim.reserved_until_ms

    def failed(self) -> None:
        """Record that the last claim was not answered; it may have been granted nevertheless."""
        self._sent = None
        self._is_settled = self.is_reserved
