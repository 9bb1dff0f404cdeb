"""Admission of requests by the limits of their callers, and settlement after them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import LimitState, Measure
from gateway.inference.v1.inference_pb2 import RouteInfo
from services.common.errors import GatewayError
from services.common.passed_answer import Route
from services.inference.limits.leaser import RETURN_AFTER_S, Leaser
from services.inference.limits.refusals import limit_reached
from services.inference.limits.subjects import SPEND, CallerLimits, Need
from services.inference.limits.windows import Window

# The pause after which slots are asked for again: another worker may keep one for its next request,
# and returns it within the pause.
_PAUSE_S = 3 * RETURN_AFTER_S
# Measures of which callers are told how much is left.
_TOLD = (limits_pb2.MEASURE_REQUESTS_PER_MINUTE, limits_pb2.MEASURE_TOKENS_PER_MINUTE)


class Admission:
    """Admits requests of callers with limits.

    Args:
        leaser: has the allowances of this worker.
        now_ms: the time in Unix milliseconds.
        pause: waits for so many seconds.
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

    async def admit(self, limits: CallerLimits, tokens: int) -> "Permit":
        """Take what a request needs of all allowances at once; whoever gets the permit ends it.

        Args:
            limits: those of the caller.
            tokens: about how many the request has.

        Raises:
            GatewayError: rate_limited or budget_exceeded, a limit is reached; unavailable, the
                counts cannot be read.
        """
        needs = limits.needs(tokens)
        may_wait = True
        while True:
            now_ms = self._now_ms()
            lacking = []
            allowances = []
            for need in needs:
                allowance = self._leaser.allowance(need.key, need.limit)
                allowance.advance(now_ms)
                allowances.append(allowance)
                if allowance.available < need.amount:
                    lacking.append(need)
            if not lacking:
                taken = []
                for need, allowance in zip(needs, allowances, strict=True):
                    allowance.take(need.taken, now_ms)
                    taken.append((need, allowance.window))
                return Permit(self._leaser, self._now_ms, taken, tokens, limits.count_cost)
            refused = self._refused(lacking)
            if refused is not None:
                slots = self._leaser.allowance(refused.key, refused.limit)
                if not (slots.is_slots and may_wait and slots.limit):
                    raise self._refusal(refused, needs)
                may_wait = False
                await self._pause(_PAUSE_S)
                self._leaser.allowance(refused.key, refused.limit).doubt()
                continue
            await self._wait(lacking)

    async def _wait(self, lacking: Sequence[Need]) -> None:
        """Claim what a request lacks."""
        allowances = [self._leaser.allowance(need.key, need.limit) for need in lacking]
        for need, allowance in zip(lacking, allowances, strict=True):
            allowance.want(need.amount)
        try:
            await self._leaser.claim([need.key for need in lacking])
        finally:
            for allowance in allowances:
                allowance.stop_waiting()

    def _refused(self, lacking: Sequence[Need]) -> Need | None:
        now_ms = self._now_ms()
        for need in lacking:
            allowance = self._leaser.allowance(need.key, need.limit)
            if allowance.is_exhausted(need.amount, now_ms):
                return need
        return None

    def _refusal(self, need: Need, needs: Sequence[Need]) -> GatewayError:
        allowance = self._leaser.allowance(need.key, need.limit)
        error = limit_reached(need, allowance, self._now_ms())
        error.caller_limits = tightest(self._leaser, needs)
        return error


class Permit:
    """What a request has taken of its caller's allowances.

    Attributes:
        tokens: taken for it, an estimate.
        counts_cost: whether `end` has to be told what the request cost.
    """

    def __init__(
        self,
        leaser: Leaser,
        now_ms: Callable[[], int],
        taken: Sequence[tuple[Need, Window]],
        tokens: int,
        counts_cost: bool,
    ) -> None:
        self._leaser = leaser
        self._now_ms = now_ms
        self._taken = taken
        self._is_open = True
        self.tokens = tokens
        self.counts_cost = counts_cost

    def put_limits(self, route: RouteInfo | Route) -> None:
        """Say in the route of an answer how the caller stands with its limits; see `tightest`."""
        limits = tightest(self._leaser, [need for need, _ in self._taken])
        if isinstance(route, Route):
            route.limits = limits
        else:
            route.limits.extend(limits)

    def end(self, tokens: int, cost_pusd: int) -> None:
        """Settle what the request has used, and give back its slots; only the first call counts.

        Args:
            tokens: read and written.
            cost_pusd: in 10^-12 US dollars.
        """
        if not self._is_open:
            return
        self._is_open = False
        now_ms = self._now_ms()
        for need, window in self._taken:
            key = need.key
            allowance = self._leaser.allowance(key, need.limit)
            if key.measure == limits_pb2.MEASURE_TOKENS_PER_MINUTE:
                allowance.settle(tokens - need.taken, window, now_ms)
            elif key.measure in SPEND:
                allowance.settle(cost_pusd, window, now_ms)
            elif allowance.is_slots:
                allowance.settle(-need.taken, window, now_ms)
                if allowance.is_scarce:
                    self._leaser.return_soon(key)
            if allowance.is_overdrawn:
                self._leaser.note(key)


def tightest(leaser: Leaser, needs: Sequence[Need]) -> Sequence[LimitState]:
    """Return of each measure that callers are told the limit of which the least is left."""
    found: dict[Measure.ValueType, LimitState] = {}
    for need in needs:
        measure = need.key.measure
        if measure not in _TOLD:
            continue
        one = leaser.allowance(need.key, need.limit)
        remaining = one.remaining()
        known = found.get(measure)
        if known is None or remaining < known.remaining:
            found[measure] = LimitState(
                measure=measure,
                limit=one.limit,
                remaining=remaining,
                reset_ms=one.window.end_ms,
            )
    return tuple(found.values())
