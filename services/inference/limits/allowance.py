"""This worker's part of an allowance: arithmetic alone, without a clock or a database.

The worker holds leases on the allowance and admits requests out of them. What its leases hold and
its requests have not used is available; it never admits more than that. An answer that cost more
than was foreseen makes it negative until the next claim.
"""

from typing import Final, NamedTuple

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure
from services.common.passed_answer import CallerLimit
from services.inference.limits.windows import Window, window_of

# What is kept available after a tick: what so many ticks such as the last one would use.
_TICKS_AHEAD: Final = 2
# Of the limit, the part that must be left over for anything to be kept for the next requests.
_SCARCE: Final = 8
# How long a day's or month's allowance is kept without a request.
_FORGOTTEN_MS: Final = 600_000


class Ask(NamedTuple):
    """What this worker claims of an allowance; see `gateway.accounts.v1.Claim`."""

    window: Window
    ends_at_ms: int
    holding: int
    amount: int
    least: int
    ahead: int
    closes: bool


class Allowance:
    """This worker's part of what a subject may use of a measure in the current window.

    Args:
        measure: what is counted.
        limit: the limit, as far as this worker knows.
        fresh_ms: how long the last answer about what is left is taken as still true.
        slot_lease_ms: how long slots of requests under way are held without another claim.
        now_ms: the time.

    Attributes:
        limit: the limit in force.
        is_slots: whether this counts requests under way, which give back what they took.
        used: what was used in the window; of slots, the requests under way.
        window: the current window.
        wanted: what requests need beside what was claimed.
    """

    __slots__ = (
        "_active_at_ms",
        "_ends_ms",
        "_fresh_ms",
        "_held",
        "_least",
        "_remaining",
        "_sent",
        "_slot_lease_ms",
        "_takes_in_tick",
        "_target",
        "_told_at_ms",
        "_used_in_tick",
        "_waiting",
        "is_slots",
        "limit",
        "measure",
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
    ) -> None:
        self.measure = measure
        self.limit = limit
        self.is_slots = measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS
        self.used = 0
        self.wanted = 0
        self._waiting = 0
        self._fresh_ms = fresh_ms
        self._slot_lease_ms = slot_lease_ms
        self._active_at_ms = now_ms
        self._target = 0
        self._used_in_tick = 0
        self._takes_in_tick = 0
        self._least = 0
        self._sent: Ask | None = None
        self._begin(window_of(measure, now_ms))

    def _begin(self, window: Window) -> None:
        self.window = window
        self.used = 0
        self._held = 0
        # Of slots, when their leases end.
        self._ends_ms = 0 if self.is_slots else window.end_ms
        # What no worker held when this worker was last told, and when that was.
        self._remaining = 0
        self._told_at_ms: int | None = None

    @property
    def available(self) -> int:
        """What may be used now; negative after answers that cost more than was foreseen."""
        return self._held - self.used

    def admits(self, amount: int, now_ms: int) -> bool:
        """Return whether so much may be used at the time `now_ms`."""
        if now_ms >= self._ends_ms:
            self.advance(now_ms)
        return self._held - self.used >= amount

    def advance(self, now_ms: int) -> None:
        """Begin the window of the time `now_ms`; drop leases that have ended."""
        if now_ms < self._ends_ms:
            return
        if self.is_slots:
            # Others may hold them by now; requests under way go on.
            self._held = self.used
        else:
            self._begin(window_of(self.measure, now_ms))

    def take(self, amount: int, now_ms: int) -> None:
        """Use what `admits` has found to be available."""
        self.used += amount
        self._used_in_tick += amount
        self._takes_in_tick += 1
        self._active_at_ms = now_ms

    def settle(self, change: int, taken_ms: int, now_ms: int) -> None:
        """Correct what a request took once it is known.

        Args:
            change: what it used beyond that; negative if it used less.
            taken_ms: when it took it. What it did not use of a window that has ended is not given
                back.
            now_ms: the time.
        """
        self.advance(now_ms)
        if change > 0:
            self.used += change
            self._used_in_tick += change
        elif taken_ms >= self.window.start_ms:
            self.used += change
        self._active_at_ms = now_ms

    def is_exhausted(self, amount: int, now_ms: int) -> bool:
        """Return whether no worker had `amount` left, as far as was heard a moment ago."""
        told_at_ms = self._told_at_ms
        is_fresh = told_at_ms is not None and now_ms < told_at_ms + self._fresh_ms
        return is_fresh and amount > max(0, self.available) + self._remaining

    def doubt(self) -> None:
        """Take what was last heard as outdated, so that it is asked anew."""
        self._told_at_ms = None

    def state(self) -> CallerLimit:
        """Return how the subject stands."""
        return CallerLimit(self.measure, self.limit, self.remaining(), self.window.end_ms)

    def remaining(self) -> int:
        """Return about how much the subject may still use in the window, at any worker."""
        left = self._remaining + self._held - self.used
        if left < 0:
            return 0
        return left if left < self.limit else self.limit

    def want(self, amount: int) -> None:
        """Note that a request waits for `amount`; `stop_waiting` is called when it does no more."""
        self._least = min(self._least, amount) if self.wanted else amount
        self.wanted += amount
        self._waiting += 1

    def stop_waiting(self) -> None:
        """Note that a request no longer waits."""
        self._waiting -= 1

    @property
    def is_scarce(self) -> bool:
        """Whether other workers may lack what this one keeps for its next requests."""
        return self._remaining * _SCARCE <= self.limit

    @property
    def is_overdrawn(self) -> bool:
        """Whether other workers should hear at once that more was used than is leased."""
        return self.available < 0 and -self.available * _SCARCE >= self._remaining

    def tick(self) -> None:
        """End a tick: what it used is the measure for what is kept available."""
        # What a single request took tells nothing about the next.
        self._target = _TICKS_AHEAD * self._used_in_tick if self._takes_in_tick > 1 else 0
        self._used_in_tick = self._takes_in_tick = 0

    def _kept(self) -> int:
        """Return how much should be available for the next requests."""
        if self._told_at_ms is not None and self.is_scarce:
            return 0
        if self.is_slots:
            return self.used // 2
        # A tick that has begun may already use more than the last one.
        so_far = self._used_in_tick if self._takes_in_tick > 1 else 0
        return max(self._target, so_far)

    def is_forgotten(self, now_ms: int) -> bool:
        """Return whether nothing of this has to be kept in memory any longer."""
        if self._waiting or self._sent is not None or self.available > 0:
            return False
        return self.used == 0 or now_ms >= self.window.end_ms

    def ask(self, now_ms: int, *, closes: bool = False) -> Ask | None:
        """Return what to claim now, or None when there is nothing to.

        What is returned so is no longer available from then on. The answer goes to `answered` or
        `failed`, before the next call of this.

        Args:
            now_ms: the time.
            closes: whether to give all back and to be forgotten.
        """
        self.advance(now_ms)
        is_idle = self.used > 0 and now_ms > self._active_at_ms + _FORGOTTEN_MS
        closes = closes or (is_idle and not self.is_slots and not self._waiting)
        available, target = max(0, self.available), 0 if closes else self._kept()
        keeps = available if self._waiting else min(available, target)
        amount = max(0, self.wanted - available)
        is_low = self.wanted > available or 2 * available < target
        ahead = max(0, target - available) if is_low else 0
        if self.is_slots and self._held:
            is_due = now_ms > self._ends_ms - self._slot_lease_ms * 2 // 3
        else:
            is_due = False
        is_changed = amount or ahead or keeps != available or self.available < 0
        if not (is_changed or is_due or (closes and self._held)):
            self.wanted = 0
            return None
        least = min(amount, max(1, self._least - available))
        ends_at_ms = now_ms + self._slot_lease_ms if self.is_slots else self.window.end_ms
        holding = self.used + keeps
        self.wanted = 0
        self._held = min(self._held, holding)
        self._sent = Ask(self.window, ends_at_ms, holding, amount, least, ahead, closes)
        return self._sent

    def answered(self, granted: int, remaining: int, limit: int | None, now_ms: int) -> None:
        """Add what was granted to the last claim."""
        sent, self._sent = self._sent, None
        assert sent is not None, "nothing was claimed"
        self.advance(now_ms)
        if limit is not None:
            self.limit = limit
        if sent.window != self.window:
            return
        self._held = sent.holding + granted
        if sent.closes:
            # What was used until then is counted elsewhere from now on.
            self.used = max(0, self.used - sent.holding)
            self._held = 0
        if self.is_slots:
            self._ends_ms = sent.ends_at_ms
        self._remaining = remaining
        self._told_at_ms = now_ms

    def failed(self) -> None:
        """Note that the last claim was not answered; what it asked for may be held elsewhere."""
        self._sent = None
