"""Admission of requests within the limits of their callers, and their settlement."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gateway.inference.v1.inference_pb2 import RouteInfo
from services.common.errors import GatewayError
from services.common.passthrough_answer import CallerLimit, Route
from services.inference.limits.allowance import Allowance
from services.inference.limits.leaser import RETURN_AFTER_S, Leaser
from services.inference.limits.refusals import limit_reached
from services.inference.limits.subjects import CallerLimits, Need

# The pause before slots are claimed a second time: another worker may hold a free slot for its next
# request, and returns it within the pause.
_PAUSE_S = 3 * RETURN_AFTER_S
# Maximum callers whose limits and allowances are cached.
KEPT_CALLERS = 1_000


class Admission:
    """Admits requests of callers with limits.

    Args:
        leaser: holds the allowances of this worker.
        now_ms: returns the time in Unix milliseconds.
        pause: sleeps for a number of seconds.
    """

    def __init__(
        self,
        leaser: Leaser,
        now_ms: Callable[[], int],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._leaser = leaser
        self._now_ms = now_ms
        self._pause = pause
        self._allowances: dict[CallerLimits, CallerAllowances] = {}

    async def admit(self, limits: CallerLimits, tokens: int) -> "Permit":
        """Take the needs of a request from all allowances at once.

        Args:
            limits: the limits of the caller.
            tokens: the estimated tokens of the request.

        Returns:
            The permit, which the caller must `end`.

        Raises:
            GatewayError: rate_limited or budget_exceeded, a limit is reached; unavailable, the
                counts cannot be read.
        """
        may_wait = True
        while True:
            now_ms = self._now_ms()
            permit = self._take(limits, tokens, now_ms)
            if permit is not None:
                return permit
            lacking = self._lacking(limits, tokens, now_ms)
            refused = self._refused(lacking)
            if refused is None:
                await self._wait(lacking)
                continue
            need, amount = refused
            slots = self._leaser.allowance(need.key, need.limit)
            if not (slots.is_slots and may_wait and slots.limit):
                raise self._refusal(need, amount, limits)
            may_wait = False
            await self._pause(_PAUSE_S)
            self._leaser.allowance(need.key, need.limit).invalidate()

    def _take(self, limits: CallerLimits, tokens: int, now_ms: int) -> "Permit | None":
        """Take the needs of a request if this worker has enough of all allowances, else None."""
        allowances = self._allowances.get(limits)
        if allowances is None or allowances.forgotten != self._leaser.forgotten:
            allowances = self._find(limits)
        for need, allowance in allowances.by_need:
            if not allowance.admits(tokens if need.counts_tokens else need.amount, now_ms):
                return None
        for need, allowance in allowances.by_need:
            allowance.take(tokens if need.counts_tokens else need.taken, now_ms)
        return Permit(self._leaser, self._now_ms, allowances, tokens, now_ms)

    def _find(self, limits: CallerLimits) -> "CallerAllowances":
        """Return the allowances of a caller."""
        if len(self._allowances) == KEPT_CALLERS:
            self._allowances.clear()
        allowances = self._allowances[limits] = CallerAllowances(limits, self._leaser)
        return allowances

    def _lacking(
        self, limits: CallerLimits, tokens: int, now_ms: int
    ) -> Sequence[tuple[Need, int]]:
        """Return the needs that this worker's allowances do not admit, each with its amount."""
        needed = [(need, tokens if need.counts_tokens else need.amount) for need in limits.needs]
        return [
            (need, amount)
            for need, amount in needed
            if not self._leaser.allowance(need.key, need.limit).admits(amount, now_ms)
        ]

    async def _wait(self, lacking: Sequence[tuple[Need, int]]) -> None:
        """Claim the lacking needs of a request, and wait for the grants."""
        allowances = [self._leaser.allowance(need.key, need.limit) for need, _ in lacking]
        for (_, amount), allowance in zip(lacking, allowances, strict=True):
            allowance.want(amount)
        try:
            await self._leaser.claim([need.key for need, _ in lacking])
        finally:
            for allowance in allowances:
                allowance.stop_waiting()

    def _refused(self, lacking: Sequence[tuple[Need, int]]) -> tuple[Need, int] | None:
        now_ms = self._now_ms()
        for need, amount in lacking:
            allowance = self._leaser.allowance(need.key, need.limit)
            if allowance.is_exhausted(amount, now_ms):
                return need, amount
        return None

    def _refusal(self, need: Need, amount: int, limits: CallerLimits) -> GatewayError:
        allowance = self._leaser.allowance(need.key, need.limit)
        error = limit_reached(need.key, amount, allowance, self._now_ms())
        error.caller_limits = [
            one.message() for one in CallerAllowances(limits, self._leaser).tightest()
        ]
        return error


class CallerAllowances:
    """The limits of a caller, with this worker's allowances.

    Attributes:
        limits: the limits.
        by_need: the needs of a request, each with its allowance.
        forgotten: `Leaser.forgotten` at the time; the allowances are valid while it is unchanged.
    """

    __slots__ = ("_reported", "by_need", "forgotten", "limits")

    def __init__(self, limits: CallerLimits, leaser: Leaser) -> None:
        self.limits = limits
        self.forgotten = leaser.forgotten
        self.by_need = [(need, leaser.allowance(need.key, need.limit)) for need in limits.needs]
        self._reported = [
            [self.by_need[at][1] for at in indexes] for indexes in limits.reported_needs
        ]

    def tightest(self) -> Sequence[CallerLimit]:
        """Return for each reported measure the state of the limit with the least remaining."""
        return [
            (one[0] if len(one) == 1 else min(one, key=Allowance.remaining)).state()
            for one in self._reported
        ]


class Permit:
    """An admitted request: what it has taken from its caller's allowances.

    Attributes:
        tokens: the estimated tokens that were taken.
    """

    __slots__ = ("_allowances", "_is_open", "_leaser", "_now_ms", "_taken_ms", "tokens")

    def __init__(
        self,
        leaser: Leaser,
        now_ms: Callable[[], int],
        allowances: CallerAllowances,
        tokens: int,
        taken_ms: int,
    ) -> None:
        self._leaser = leaser
        self._now_ms = now_ms
        self._allowances = allowances
        self._taken_ms = taken_ms
        self._is_open = True
        self.tokens = tokens

    @property
    def counts_cost(self) -> bool:
        """Whether `end` needs the cost of the request."""
        return self._allowances.limits.count_cost

    def put_limits(self, route: RouteInfo | Route) -> None:
        """Set the state of the caller's limits in the route of an answer."""
        limits = self._allowances.tightest()
        if isinstance(route, Route):
            route.limits = limits
        else:
            route.limits.extend([one.message() for one in limits])

    def end(self, tokens: int, cost_pusd: int) -> None:
        """Settle the request's usage and return its slots; later calls have no effect.

        Args:
            tokens: input and output tokens.
            cost_pusd: cost in 10^-12 US dollars.
        """
        if not self._is_open:
            return
        self._is_open = False
        now_ms, taken_ms, leaser = self._now_ms(), self._taken_ms, self._leaser
        for need in self._allowances.limits.settled:
            key = need.key
            # The allowance may have been replaced meanwhile.
            allowance = leaser.allowance(key, need.limit)
            if need.counts_tokens:
                allowance.settle(tokens - self.tokens, taken_ms, now_ms)
            elif allowance.is_slots:
                allowance.settle(-need.taken, taken_ms, now_ms)
                if allowance.is_scarce:
                    leaser.return_soon(key)
                continue
            else:
                allowance.settle(cost_pusd, taken_ms, now_ms)
            if allowance.is_overdrawn:
                leaser.note(key)
