"""Admission of requests by the limits of their callers, and settlement after them."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence

from gateway.accounts.v1 import limits_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect
from services.common.errors import GatewayError
from services.inference.limits.headers import Standing, put_headers
from services.inference.limits.leaser import RETURN_AFTER_S, Leaser
from services.inference.limits.refusals import limit_reached
from services.inference.limits.subjects import SPEND, CallerLimits, Need
from services.inference.limits.windows import Window

# The pause after which slots are asked for again: another worker may keep one for its next request,
# and returns it within the pause.
_PAUSE_S = 3 * RETURN_AFTER_S


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

    async def admit(
        self, limits: CallerLimits, tokens: int, dialect: Dialect.ValueType
    ) -> "Permit":
        """Take what a request needs of all allowances at once; whoever gets the permit ends it.

        Args:
            limits: those of the caller.
            tokens: about how many the request has.
            dialect: of the caller, for headers.

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
                return Permit(self._leaser, self._now_ms, taken, tokens, dialect, limits.count_cost)
            refused = self._refused(lacking)
            if refused is not None:
                slots = self._leaser.allowance(refused.key, refused.limit)
                if not (slots.is_slots and may_wait and slots.limit):
                    raise self._refusal(refused, needs, dialect)
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

    def _refusal(
        self, need: Need, needs: Sequence[Need], dialect: Dialect.ValueType
    ) -> GatewayError:
        now_ms = self._now_ms()
        allowance = self._leaser.allowance(need.key, need.limit)
        error = limit_reached(need, allowance, now_ms)
        headers: dict[str, str] = {}
        put_headers(headers, dialect, standings(self._leaser, needs), now_ms)
        error.headers = headers
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
        dialect: Dialect.ValueType,
        counts_cost: bool,
    ) -> None:
        self._leaser = leaser
        self._now_ms = now_ms
        self._taken = taken
        self._is_open = True
        self._dialect = dialect
        self.tokens = tokens
        self.counts_cost = counts_cost

    def put_headers(self, headers: MutableMapping[str, str]) -> None:
        """Add the headers of the caller's limits; see `headers`."""
        needs = [need for need, _ in self._taken]
        put_headers(headers, self._dialect, standings(self._leaser, needs), self._now_ms())

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


def standings(leaser: Leaser, needs: Sequence[Need]) -> list[Standing]:
    """Return how a caller stands with its limits."""
    found = []
    for need in needs:
        one = leaser.allowance(need.key, need.limit)
        found.append(Standing(need.key.measure, one.limit, one.remaining(), one.window.end_ms))
    return found
