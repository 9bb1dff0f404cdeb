"""Budgets per week and per period, set by an administrator and applied to callers."""

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from tests.limited_callers import CHAT, LimitedGateways, limited_gateways, post
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHATS, ME = "/beta/v1/chat/completions", "/beta/v1/usage/me"
ADMIN_KEY = make_admin_key(bytes(32))
# A token costs a cent. The clock shows Tuesday, 2023-11-14, 22:14.
PRICED = {"input": 10_000, "output": 10_000}
MODELS = [{"name": "priced", "provider": "sandbox", "upstream": "echo", "price": PRICED}]
BODY = {**CHAT, "model": "priced", "max_tokens": 10}
DAY_S = 86_400


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LimitedGateways]:
    folder = tmp_path_factory.mktemp("gateway")
    async with limited_gateways(
        folder,
        Storage(data_dir=folder),
        models=MODELS,
        usage={"write_every_s": 0.05},
        limits={"lease_every_s": 0.05, "identify_cache_s": 0.01},
        admin={"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
    ) as gateways:
        yield gateways


async def call(
    limited: LimitedGateways, method: str, path: str, body: Any = None, key: str = ADMIN_KEY
) -> Any:
    """Send a request that is answered 200; return the JSON of the answer."""
    [gateway] = limited.gateways
    headers = {"Authorization": f"Bearer {key}"}
    url = gateway.url + path
    async with gateway.http.request(method, url, json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def new_caller(limited: LimitedGateways) -> tuple[dict[str, str], str]:
    """Return the headers of a new caller, and the path of the user's limits."""
    caller = await limited.caller(SubjectKind.USER, UsageLimits())
    key = caller["Authorization"].removeprefix("Bearer ")
    [record] = [
        record
        for record in (await call(limited, "GET", "/admin/v1/keys?limit=1000"))["data"]
        if key.startswith(record["prefix"])
    ]
    return caller, f"/admin/v1/users/{record['user_id']}/limits"


async def state(limited: LimitedGateways, path: str) -> Any:
    """Return the state of the only limit."""
    [usage] = (await call(limited, "GET", path))["usage"]
    return usage


async def spends(limited: LimitedGateways, caller: dict[str, str], path: str) -> Decimal:
    """Spend some cents; return the state's `used` once they are counted."""
    before = Decimal((await state(limited, path))["used"])
    status, data, _ = await post(limited.gateways[0], CHATS, BODY, caller)
    assert status == 200, data

    async def is_counted() -> bool:
        usage = await state(limited, path)
        return Decimal(usage["used"]) > before and usage["reserved"] == "0"

    await until(is_counted)
    return Decimal((await state(limited, path))["used"])


async def until_refused(limited: LimitedGateways, caller: dict[str, str]) -> tuple[Any, Any]:
    """Spend a budget; return the error and the headers of the answer that tells so."""
    refused: list[tuple[Any, Any]] = []

    async def is_refused() -> bool:
        status, data, headers = await post(limited.gateways[0], CHATS, BODY, caller)
        # The rest may be reserved by the request before.
        if status == 429 and json.loads(data)["error"]["code"] == "insufficient_quota":
            refused.append((json.loads(data)["error"], headers))
        return bool(refused)

    await until(is_refused)
    return refused[0]


async def test_a_period_counts_from_its_start_and_repeats(limited: LimitedGateways) -> None:
    caller, path = await new_caller(limited)
    assert (await post(limited.gateways[0], CHATS, BODY, caller))[0] == 200
    key = caller["Authorization"].removeprefix("Bearer ")

    async def is_recorded() -> bool:
        usage = await call(limited, "GET", ME, key=key)
        return bool(usage["usage"]["day"]["cost"] != "0")

    await until(is_recorded)
    budget = {"spend_per_period": "1", "period_days": 7, "period_start": "2023-10-31"}
    limits = await call(limited, "PUT", path, budget)
    assert {name: limits[name] for name in budget} == budget
    usage = await state(limited, path)
    # Weeks from a Tuesday on: what was spent in this one before counts.
    assert usage["resets_at"] == "2023-11-21T00:00:00Z"
    assert Decimal(usage["used"]) > 0
    before = Decimal(usage["used"])
    assert await spends(limited, caller, path) == 2 * before
    error, headers = await until_refused(limited, caller)
    assert "2023-11-21" in error["message"] and int(headers["Retry-After"]) > 6 * DAY_S
    limited.clock.now_s += 7 * DAY_S
    status, _, headers = await post(limited.gateways[0], CHATS, BODY, caller)
    assert (status, headers["x-gateway-budget-reset"]) == (200, "2023-11-28T00:00:00Z")
    limited.clock.now_s -= 7 * DAY_S


async def test_a_budget_without_an_end_never_starts_again(limited: LimitedGateways) -> None:
    caller, path = await new_caller(limited)
    limits = await call(limited, "PUT", path, {"spend_per_period": "1"})
    assert (limits["period_start"], limits["period_days"]) == ("2023-11-14", None)
    status, _, headers = await post(limited.gateways[0], CHATS, BODY, caller)
    assert status == 200 and "x-gateway-budget-reset" not in headers
    assert 0 < Decimal(headers["x-gateway-budget-remaining-usd"]) < 1
    error, headers = await until_refused(limited, caller)
    assert "no other one follows" in error["message"] and "Retry-After" not in headers
    usage = await state(limited, path)
    assert (usage["name"], usage["resets_at"]) == ("spend_per_period", None)


async def test_another_period_is_another_budget(limited: LimitedGateways) -> None:
    caller, path = await new_caller(limited)
    budget = {"spend_per_period": "1", "period_start": "2023-11-14"}
    await call(limited, "PUT", path, {**budget, "period_days": 7})
    await until_refused(limited, caller)
    # Both begin today, and this one counts what the other has spent.
    await call(limited, "PUT", path, {**budget, "spend_per_period": "5", "period_days": 30})

    async def passes() -> bool:
        return (await post(limited.gateways[0], CHATS, BODY, caller))[0] == 200

    await until(passes)
    usage = await state(limited, path)
    assert usage["resets_at"] == "2023-12-14T00:00:00Z"


async def test_a_week_begins_on_monday(limited: LimitedGateways) -> None:
    caller, path = await new_caller(limited)
    await call(limited, "PUT", path, {"spend_per_week": "1"})
    _, _, headers = await post(limited.gateways[0], CHATS, BODY, caller)
    assert headers["x-gateway-budget-reset"] == "2023-11-20T00:00:00Z"
    error, _ = await until_refused(limited, caller)
    assert "budget of 1 US dollars a week" in error["message"]
