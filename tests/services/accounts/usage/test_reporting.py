"""Sums of usage, a page at a time."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import ReportUsageRequest, UsageGrouping, UsageSum
from services.accounts.repository import AccountRepository
from services.accounts.usage.reporting import report
from services.common.errors import GatewayError
from tests.services.accounts.usage.usage_records import DAY_MS, MIDNIGHT_MS, add, record, unpriced


async def sums(engine: AsyncEngine, by: str, **fields: Any) -> list[UsageSum]:
    request = ReportUsageRequest(
        by=UsageGrouping.Value(f"USAGE_GROUPING_{by.upper()}"), **{"page_size": 100} | fields
    )
    all_sums: list[UsageSum] = []
    while True:
        page = await report(engine, request)
        assert len(page.sums) <= request.page_size
        all_sums += page.sums
        if not page.next_page_token:
            return all_sums
        request.page_token = page.next_page_token


async def test_costs_are_decimal_dollars(engine: AsyncEngine) -> None:
    await add(engine, [record(1), record(2, cost_pusd=1), unpriced(3)])
    [day_sum] = await sums(engine, "day")
    assert (day_sum.group, day_sum.cost_dollars) == ("2026-11-23", "0.000350000001")
    assert (day_sum.requests, day_sum.unpriced) == (3, 1)
    assert (day_sum.input_tokens, day_sum.output_tokens) == (300, 30)


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("day", ["2026-11-23", "2026-11-24"]),
        ("user", ["user_1", "user_2"]),
        ("team", ["", "team_1"]),
        ("key", ["key_1", "key_2"]),
        ("model", ["fast", "slow"]),
        ("provider", ["mine", "openai"]),
    ],
)
@pytest.mark.parametrize("page_size", [1, 2])
async def test_usage_is_summed_up_by(
    engine: AsyncEngine, by: str, groups: list[str], page_size: int
) -> None:
    other_owner = {"team_id": "team_1", "key_id": "key_2", "model": "slow", "provider": "mine"}
    late = MIDNIGHT_MS + DAY_MS
    await add(
        engine, [record(1), record(2), record(3, user_id="user_2", time_ms=late, **other_owner)]
    )
    usage_sums = await sums(engine, by, page_size=page_size)
    assert [usage_sum.group for usage_sum in usage_sums] == groups
    assert sorted(usage_sum.requests for usage_sum in usage_sums) == [1, 2]


async def test_days_are_chosen_with_both_ends(engine: AsyncEngine) -> None:
    await add(
        engine, [record(number, time_ms=MIDNIGHT_MS + number * DAY_MS) for number in range(4)]
    )
    usage_sums = await sums(engine, "day", from_day="2026-11-24", to_day="2026-11-25")
    assert [usage_sum.group for usage_sum in usage_sums] == ["2026-11-24", "2026-11-25"]
    assert await sums(engine, "user", from_day="2027-01-01") == []


async def test_users_and_keys_have_names(
    engine: AsyncEngine, repository: AccountRepository
) -> None:
    key = await repository.create_key("ada", team="lab")
    caller = await repository.identify(key)
    ids = {"user_id": caller.user_id, "team_id": caller.team_id, "key_id": caller.key_id}
    await add(engine, [record(1, **ids), record(2)])
    for by, name in (("user", "ada"), ("team", "lab"), ("key", key[:9])):
        names = {usage_sum.group: usage_sum.name for usage_sum in await sums(engine, by)}
        assert names[ids[f"{by}_id"]] == name
        assert sorted(names.values()) == ["", name]


async def test_a_total_may_exceed_64_bits(engine: AsyncEngine) -> None:
    max_cost = 2**63 - 1
    await add(engine, [record(n, model=str(n), cost_pusd=max_cost) for n in range(3)])
    [provider_sum] = await sums(engine, "provider")
    assert provider_sum.cost_dollars == "27670116.110564327421"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"by": usage_pb2.USAGE_GROUPING_UNSPECIFIED}, "by"),
        ({"page_size": 0}, "page_size"),
        ({"page_size": 1001}, "page_size"),
        ({"from_day": "yesterday"}, "from_day"),
        ({"to_day": "2026-02-30"}, "to_day"),
        ({"page_token": "x"}, "page_token"),
        ({"page_token": "é"}, "page_token"),
        ({"page_token": "YWZ0ZXI6AA==", "by": usage_pb2.USAGE_GROUPING_USER}, "page_token"),
        ({"page_token": "YWZ0ZXI6OTk5OTk5OTk5OTk5OTk5OTk5OTk5OQ=="}, "page_token"),
        ({"page_token": "YWZ0ZXI6eA=="}, "page_token"),  # of another grouping
    ],
)
async def test_wrong_requests_name_the_field(
    engine: AsyncEngine, fields: dict[str, Any], param: str
) -> None:
    request_fields = {"by": usage_pb2.USAGE_GROUPING_DAY, "page_size": 10} | fields
    with pytest.raises(GatewayError) as caught:
        await report(engine, ReportUsageRequest(**request_fields))
    assert caught.value.param == param
