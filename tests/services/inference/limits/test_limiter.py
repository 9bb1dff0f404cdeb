"""Requests of callers with limits are settled with the figures of their usage records."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.accounts_pb2 import PLAN_PERSONAL_FREE
from gateway.accounts.v1.limits_pb2 import Grant, SubjectLimits
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller, caller
from services.inference.allowances.admission import Admission
from services.inference.allowances.allowance import Claim
from services.inference.allowances.leaser import Key, LeaseClient, Leaser
from services.inference.limits.limiter import Limiter
from services.inference.limits.reservation import Demand
from services.inference.pricing.price import MostUsage
from services.inference.stream.batches import observed
from services.inference.usage.lines import UsedModel, tokens_of
from services.inference.usage.metering import Metering
from services.inference.usage.request_usage import RequestUsage, current_usage
from tests.services.inference.fallback.scripted_engine import (
    FOREVER,
    ScriptedEngine,
    broken,
    chain,
    failing,
    opening,
    start,
)
from tests.services.inference.fallback.scripted_engine import request as request_of_a
from tests.services.inference.fallback.virtual_time import in_no_time
from tests.services.inference.usage.test_metering import Lines, reporting

NOW_MS = 1_700_000_000_000
BUDGET, TOKENS = 10**9, 10**6
LIMITS = [
    SubjectLimits(
        kind=limits_pb2.SUBJECT_KIND_KEY,
        id="key_1",
        tokens_per_minute=TOKENS,
        spend_per_day_pusd=BUDGET,
    )
]
HEAD, LAST = Usage(input_tokens=50, output_tokens=1), Usage(input_tokens=60, output_tokens=9)
KEYS = [
    Key(limits_pb2.SUBJECT_KIND_KEY, "key_1", measure)
    for measure in (limits_pb2.MEASURE_TOKENS_PER_MINUTE, limits_pb2.MEASURE_SPEND_PER_DAY)
]


class Generous:
    """Grants whatever is claimed."""

    async def lease(self, claims: Sequence[tuple[Key, Claim]]) -> Sequence[Grant]:
        return [Grant(granted=claim.amount, remaining=BUDGET, limit=BUDGET) for _, claim in claims]


def price(used: UsedModel) -> int:
    """Return a price at which no two of these tests' answers cost the same."""
    return 3 * (used.input_tokens or 0) + 1_000 * used.output_tokens


class Bounded:
    """Grants what is left of so many tokens, and of money as much as is claimed."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    async def lease(self, claims: Sequence[tuple[Key, Claim]]) -> Sequence[Grant]:
        return [self._grant(key, claim) for key, claim in claims]

    def _grant(self, key: Key, claim: Claim) -> Grant:
        if key.measure != limits_pb2.MEASURE_TOKENS_PER_MINUTE:
            return Grant(granted=claim.amount, remaining=BUDGET, limit=BUDGET)
        left = self._tokens - claim.held_amount
        granted = claim.min_amount if 0 < left else 0
        return Grant(granted=granted, remaining=left - granted, limit=self._tokens)


class Free:
    """Prices at which nothing costs anything, so that nothing is reserved."""

    def highest_cost(self, usage: MostUsage, provider: str, model: str, upstream: str) -> int:
        return 0


class Settled:
    """A limiter of an engine whose providers play scripts, and what it has counted."""

    def __init__(
        self,
        *,
        is_recorded: bool = True,
        lease_client: LeaseClient | None = None,
        fallbacks: Sequence[str] = (),
    ) -> None:
        self.lines = Lines()
        metering = Metering(self.lines if is_recorded else None)
        self.there = ScriptedEngine(fallbacks=fallbacks, metering=metering)
        self.leaser = Leaser(lease_client or Generous(), lambda: NOW_MS, tick_s=60, slot_lease_s=60)
        admission = Admission(self.leaser, lambda: NOW_MS)
        self._limiter = Limiter(admission, price, self._demand_of)

    def _demand_of(self, request: Any, fees: Any) -> Demand:
        assert isinstance(request, GenerateRequest)
        return Demand(self.there.engine.plan_of(request), request, fees, Free())

    async def ask(self, request: GenerateRequest, *, stream: bool) -> None:
        caller.set(Caller("user_1", "team_1", PLAN_PERSONAL_FREE, "key_1"))
        with await self._limiter.begin(LIMITS, request) as limited:
            if not stream:
                limited.add_answer(await self.there.engine.answer(request))
                return
            answer = observed(await self.there.engine.stream(request), limited.add_events)
            async with aclosing(answer) as batches:
                async for _ in batches:
                    pass

    def counted(self) -> list[int]:
        """Return the tokens and the money that were counted."""
        return [self.leaser.allowance(key, BUDGET).used for key in KEYS]

    def recorded(self) -> list[int]:
        """Return the tokens and the money of the usage records."""
        used = [one for line in self.lines.written for one in line.used]
        return [sum(map(tokens_of, used)), sum(map(price, used))]


@pytest.fixture
async def settled() -> AsyncIterator[Settled]:
    one = Settled()
    yield one
    await one.leaser.close()


def billed_and_broken() -> list[Any]:
    return [[start(), Event(usage=HEAD), *opening("Hello")], broken("")[1]]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_is_settled_as_it_is_recorded(settled: Settled, stream: bool) -> None:
    settled.there.p.plays("a", [failing(401)])
    settled.there.p.plays("b", reporting("Hi", HEAD, LAST))
    await settled.ask(chain("a", "b"), stream=stream)
    assert settled.counted() == settled.recorded() == [69, 3 * 60 + 9_000]


async def test_attempts_that_broke_off_count(settled: Settled) -> None:
    settled.there.p.plays("a", billed_and_broken())
    settled.there.p.plays("b", reporting("Hello you", HEAD, LAST))
    await settled.ask(chain("a", "b"), stream=True)
    assert settled.counted() == settled.recorded() == [53 + 69, 3 * 110 + 12_000]


async def test_a_request_that_failed_and_was_billed_counts(settled: Settled) -> None:
    settled.there.p.plays(
        "a", [[start(), Event(usage=Usage(input_tokens=50, output_tokens=400))], failing(500)]
    )
    with pytest.raises(GatewayError):
        await settled.ask(chain("a"), stream=True)
    assert settled.counted() == settled.recorded() == [450, 150 + 400_000]


async def test_what_helpers_use_counts(settled: Settled) -> None:
    settled.there.p.plays("a", reporting("Hi", HEAD, LAST))
    total = RequestUsage()
    current_usage.set(total)
    caller.set(Caller("user_1", "team_1", PLAN_PERSONAL_FREE, "key_1"))
    await settled.there.engine.generate(chain("a"), task="describe_image")
    assert total.answer == ()
    assert [(one.input_tokens, one.output_tokens) for one in total.parts] == [(60, 9)]


async def test_requests_that_are_not_recorded_count_alike() -> None:
    one = Settled(is_recorded=False)
    one.there.p.plays("a", reporting("Hi", HEAD, LAST))
    await one.ask(chain("a"), stream=True)
    assert one.counted() == [69, 3 * 60 + 9_000]
    assert one.lines.written == []
    await one.leaser.close()


def limited_request() -> GenerateRequest:
    """Return a request whose fallbacks are called beside a silent model."""
    request = request_of_a()
    request.max_tokens = 500
    return request


@in_no_time
async def test_a_model_called_beside_another_is_reserved() -> None:
    one = Settled(fallbacks=("b",))
    one.there.p.plays("a", [FOREVER])
    one.there.p.plays("b", [15, *reporting("Hi", HEAD, LAST)])
    asking = asyncio.create_task(one.ask(limited_request(), stream=True))
    tokens = one.leaser.allowance(KEYS[0], TOKENS)
    await asyncio.sleep(5)
    single = tokens.reserved
    assert single > 500
    await asyncio.sleep(10)
    assert one.there.asked() == [(0, "a"), (10, "b")]
    assert tokens.reserved == 2 * single
    await asking
    assert one.counted() == one.recorded()
    assert tokens.reserved == 0
    await one.leaser.close()


@in_no_time
async def test_without_tokens_left_no_second_model_is_called() -> None:
    answers = [20, *reporting("Hi", HEAD, LAST)]
    for outcome, asked in ((answers, [(0, "a")]), ([20, failing(401)], [(0, "a"), (20, "b")])):
        # What the first model needs exceeds the limit already.
        one = Settled(fallbacks=("b",), lease_client=Bounded(tokens=400))
        one.there.p.plays("a", outcome)
        one.there.p.plays("b", reporting("Hi", HEAD, LAST))
        began = asyncio.get_running_loop().time()
        await one.ask(limited_request(), stream=True)
        # A second model is called only once the first has failed.
        assert [(round(at - began), name) for at, name in one.there.asked()] == asked
        assert one.counted() == one.recorded()
        await one.leaser.close()
