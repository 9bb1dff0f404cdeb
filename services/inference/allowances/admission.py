"""Admission of requests within the limits of their callers, and their settlement."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gateway.inference.v1.inference_pb2 import RouteInfo
from services.common.errors import GatewayError
from services.common.messages.passthrough_answer import AnswerRoute, CallerLimit
from services.inference.allowances.allowance import Allowance
from services.inference.allowances.leaser import RETURN_AFTER_S, Leaser
from services.inference.allowances.limit_errors import limit_reached, seconds_to_wait
from services.inference.allowances.needs import Need, RequestLimits, Reservation

# The pause before slots are claimed a second time: another worker may hold a free slot for its next
# request, and returns it within the pause.
_PAUSE_S = 3 * RETURN_AFTER_S
_NOTHING = Reservation(0, 0, 0)
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
        self._allowances: dict[RequestLimits, RequestAllowances] = {}

    async def admit(self, limits: RequestLimits, amounts: Reservation) -> "Permit":
        """Take the needs of a request from all allowances at once.

        Args:
            limits: the limits of the caller.
            amounts: what the request reserves.

        Returns:
            The permit, which the caller must `end`.

        Raises:
            GatewayError: rate_limited or budget_exceeded, a limit is reached; unavailable, the
                counts cannot be read.
        """
        allowances = await self._acquire(limits, amounts, limits.needs)
        return Permit(self, self._leaser, self._now_ms, allowances, amounts)

    def admit_answered(self, limits: RequestLimits) -> "Permit":
        """Return the permit of a request that was admitted before, and has been answered.

        It takes nothing, but what the request has used counts when it ends.
        """
        return Permit(self, self._leaser, self._now_ms, self._found(limits), _NOTHING)

    def wait_s(self, limits: RequestLimits) -> int:
        """Return the seconds for which a limit is known to be reached; 0 if none is."""
        now_ms = self._now_ms()
        waits = [
            seconds_to_wait(allowance, now_ms)
            for _, allowance in self._found(limits).by_need
            if allowance.is_exhausted(1, now_ms)
        ]
        return max(waits, default=0)

    async def extend(
        self, limits: RequestLimits, before: Reservation, amounts: Reservation
    ) -> Reservation:
        """Increase the reservation of a request; return the new one.

        Args:
            limits: the limits of the caller.
            before: what is reserved.
            amounts: what the request needs in total.

        Raises:
            GatewayError: as `admit`.
        """
        tokens, cost = max(0, amounts[1] - before[1]), max(0, amounts[2] - before[2])
        added = Reservation(0, tokens, cost)
        needs = [need for need in limits.settled if added[need.place]]
        if needs:
            await self._acquire(limits, added, needs, before)
        return Reservation(1, before.tokens + tokens, before.cost_pusd + cost)

    async def add(self, limits: RequestLimits, added: Reservation) -> None:
        """Take the tokens and money of a reservation for a request that has another one already.

        Unlike those of `extend`, the two are admitted like those of two requests: only the first
        may exceed what is left.

        Raises:
            GatewayError: as `admit`.
        """
        added = added._replace(requests=0)
        needs = [need for need in limits.settled if added[need.place]]
        if needs:
            await self._acquire(limits, added, needs)

    async def _acquire(
        self,
        limits: RequestLimits,
        amounts: Reservation,
        needs: Sequence[Need],
        before: Reservation = _NOTHING,
    ) -> "RequestAllowances":
        """Take amounts, in addition to those taken before, from all allowances of some needs."""
        may_wait = True
        # Whether the limits known to this worker are of use: what the request has reserved may be
        # all that is left.
        has_claimed = before is _NOTHING
        while True:
            now_ms = self._now_ms()
            allowances = self._take(limits, amounts, needs, now_ms)
            if allowances is not None:
                return allowances
            lacking = self._lacking(amounts, needs, now_ms)
            refused = self._refused(lacking) if has_claimed else None
            if refused is None:
                has_claimed = True
                await self._wait(lacking, before)
                continue
            slots = self._leaser.allowance(refused.key, refused.limit)
            if not (slots.is_slots and may_wait and slots.limit):
                raise self._refusal(refused, limits)
            may_wait = False
            await self._pause(_PAUSE_S)
            self._leaser.allowance(refused.key, refused.limit).invalidate()

    def _take(
        self, limits: RequestLimits, amounts: Reservation, needs: Sequence[Need], now_ms: int
    ) -> "RequestAllowances | None":
        """Take amounts if this worker has enough of all allowances; None if not."""
        allowances = self._found(limits)
        by_need = allowances.by_need
        if needs is not limits.needs:
            by_need = [one for one in by_need if one[0] in needs]
        for need, allowance in by_need:
            # Something must be left even for a request that costs nothing.
            if not allowance.admits(amounts[need.place] or 1, now_ms):
                return None
        for need, allowance in by_need:
            allowance.take(amounts[need.place], now_ms)
        return allowances

    def _found(self, limits: RequestLimits) -> "RequestAllowances":
        """Return the allowances of limits."""
        allowances = self._allowances.get(limits)
        if allowances is None or allowances.forgotten != self._leaser.forgotten:
            if len(self._allowances) == KEPT_CALLERS:
                self._allowances.clear()
            allowances = self._allowances[limits] = RequestAllowances(limits, self._leaser)
            if limits.is_of_settings:
                # They may have been reloaded.
                for need, allowance in allowances.by_need:
                    allowance.limit = need.limit
        return allowances

    def _lacking(
        self, amounts: Reservation, needs: Sequence[Need], now_ms: int
    ) -> Sequence[tuple[Need, int]]:
        """Return the needs that this worker's allowances do not admit, each with its amount."""
        needed = [(need, amounts[need.place] or 1) for need in needs]
        return [
            (need, amount)
            for need, amount in needed
            if not self._leaser.allowance(need.key, need.limit).admits(amount, now_ms)
        ]

    async def _wait(self, lacking: Sequence[tuple[Need, int]], before: Reservation) -> None:
        """Claim the lacking needs of a request, and wait for the grants."""
        allowances = [self._leaser.allowance(need.key, need.limit) for need, _ in lacking]
        for (need, amount), allowance in zip(lacking, allowances, strict=True):
            allowance.want(amount, before[need.place])
        try:
            await self._leaser.claim([need.key for need, _ in lacking])
        finally:
            for allowance in allowances:
                allowance.stop_waiting()

    def _refused(self, lacking: Sequence[tuple[Need, int]]) -> Need | None:
        now_ms = self._now_ms()
        for need, amount in lacking:
            allowance = self._leaser.allowance(need.key, need.limit)
            if allowance.is_exhausted(amount, now_ms):
                return need
        return None

    def _refusal(self, need: Need, limits: RequestLimits) -> GatewayError:
        allowance = self._leaser.allowance(need.key, need.limit)
        error = limit_reached(need.key, allowance, self._now_ms())
        error.caller_limits = [
            one.message() for one in RequestAllowances(limits, self._leaser).tightest()
        ]
        return error


class RequestAllowances:
    """The limits of a caller, with this worker's allowances.

    Attributes:
        limits: the limits.
        by_need: the needs of a request, each with its allowance.
        forgotten: `Leaser.forgotten` at the time; the allowances are valid while it is unchanged.
    """

    __slots__ = ("_reported", "by_need", "forgotten", "limits")

    def __init__(self, limits: RequestLimits, leaser: Leaser) -> None:
        self.limits = limits
        self.forgotten = leaser.forgotten
        self.by_need = [(need, leaser.allowance(need.key, need.limit)) for need in limits.needs]
        self._reported = [
            [self.by_need[index][1] for index in indexes] for indexes in limits.reported_needs
        ]

    def tightest(self) -> Sequence[CallerLimit]:
        """Return for each reported measure the state of the limit with the least remaining."""
        return [
            (
                allowances[0] if len(allowances) == 1 else min(allowances, key=Allowance.remaining)
            ).state()
            for allowances in self._reported
        ]


class Permit:
    """An admitted request: what it has taken from its caller's allowances.

    Attributes:
        amounts: what is reserved.
    """

    __slots__ = ("_admission", "_allowances", "_is_open", "_leaser", "_now_ms", "amounts")

    def __init__(
        self,
        admission: Admission,
        leaser: Leaser,
        now_ms: Callable[[], int],
        allowances: RequestAllowances,
        amounts: Reservation,
    ) -> None:
        self._admission = admission
        self._leaser = leaser
        self._now_ms = now_ms
        self._allowances = allowances
        self._is_open = True
        self.amounts = amounts

    @property
    def counts_cost(self) -> bool:
        """Whether `end` needs the cost of the request."""
        return self._allowances.limits.count_cost

    async def extend(self, amounts: Reservation) -> None:
        """Reserve more, if the request needs more in total than is reserved.

        Raises:
            GatewayError: as `Admission.admit`.
        """
        if self._is_open:
            limits = self._allowances.limits
            self.amounts = await self._admission.extend(limits, self.amounts, amounts)

    async def add(self, added: Reservation) -> None:
        """Take the tokens and money of a further reservation.

        Raises:
            GatewayError: as `Admission.add`.
        """
        await self._admission.add(self._allowances.limits, added)
        before = self.amounts
        self.amounts = Reservation(
            1, before.tokens + added.tokens, before.cost_pusd + added.cost_pusd
        )

    def put_limits(self, route: RouteInfo | AnswerRoute) -> None:
        """Set the state of the caller's limits in the route of an answer."""
        limits = self._allowances.tightest()
        if isinstance(route, AnswerRoute):
            route.limits = limits
        else:
            route.limits.extend([allowance.message() for allowance in limits])

    def end(self, tokens: int, cost_pusd: int) -> None:
        """Settle the request's usage and return its slots; later calls have no effect.

        Args:
            tokens: input and output tokens.
            cost_pusd: cost in 10^-12 US dollars.
        """
        if not self._is_open:
            return
        self._is_open = False
        now_ms, leaser, used = self._now_ms(), self._leaser, (0, tokens, cost_pusd)
        for need in self._allowances.limits.settled:
            key = need.key
            # The allowance may have been replaced meanwhile.
            allowance = leaser.allowance(key, need.limit)
            allowance.settle(self.amounts[need.place], used[need.place], now_ms)
            if allowance.is_slots:
                if allowance.is_scarce:
                    leaser.return_soon(key)
            elif allowance.is_overdrawn or allowance.is_scarce:
                leaser.note(key)
