"""Budgets over HTTP: their periods, soft limits, forecasts, resets, top-ups; model groups."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.accounts.limits import notifications
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from tests.limited_callers import CHAT, LimitedGateways, limited_gateways, post
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHATS, ME = "/beta/v1/chat/completions", "/beta/v1/usage/me"
ADMIN_KEY = make_admin_key(bytes(32))
# A token costs a cent. The clock shows Tuesday, 2023-11-14, 22:14.
PRICED = {"input": 10_000, "output": 10_000}
MODELS = [
    {"name": "priced", "provider": "sandbox", "upstream": "echo", "price": PRICED},
    # A request costs 40 cents.
    {
        "name": "broken",
        "provider": "sandbox",
        "upstream": "fail-500",
        "price": {"input": 0, "output": 0, "request": 400},
    },
]
BODY = {**CHAT, "model": "priced", "max_tokens": 10}
DAY_S = 86_400
SIGNING_KEY = b"a key of at least 24 bytes"
SECRET = "whsec_" + base64.b64encode(SIGNING_KEY).decode()


class Receiver:
    """A webhook.

    Attributes:
        status: how it answers.
        requests: headers and bodies that it has received.
    """

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[tuple[Any, bytes]] = []
        self.url = ""

    async def receive(self, request: web.Request) -> web.Response:
        self.requests.append((request.headers, await request.read()))
        return web.Response(status=self.status)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/hook", receiver.receive)
    async with TestServer(app) as server:
        receiver.url = str(server.make_url("/hook"))
        yield receiver


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(
    tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> AsyncIterator[LimitedGateways]:
    folder = tmp_path_factory.mktemp("gateway")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(notifications, "_POLL_S", 0.02)
        async with limited_gateways(
            folder,
            Storage(data_dir=folder),
            models=MODELS,
            usage={"write_every_s": 0.05},
            limits={"lease_every_s": 0.05, "identify_cache_s": 0.01},
            admin={"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
            budgets={"webhook_url": receiver.url, "webhook_secret": SECRET},
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


async def test_a_failed_request_costs_not_even_its_fee(limited: LimitedGateways) -> None:
    limits = UsageLimits(spend_per_day_pusd=10**12)
    caller = await limited.caller(SubjectKind.USER, limits)
    body = {**BODY, "model": "broken", "fallback": "disabled"}
    for _ in range(4):
        status, answer, _ = await post(limited.gateways[0], CHATS, body, caller)
        assert status == 502, answer


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


async def test_a_soft_limit_is_notified_once_a_period(
    limited: LimitedGateways, receiver: Receiver
) -> None:
    caller, path = await new_caller(limited)
    user_id = path.split("/")[4]
    receiver.requests.clear()
    receiver.status = 500
    await call(limited, "PUT", path, {"spend_per_day": "1", "soft_limit_percent": 10})
    assert await spends(limited, caller, path) < Decimal("0.1")
    assert not receiver.requests
    assert await spends(limited, caller, path) >= Decimal("0.1")
    await until(lambda: len(receiver.requests) == 1)
    receiver.status = 204
    # No further attempt before the pause has passed, though more is spent.
    await spends(limited, caller, path)
    assert len(receiver.requests) == 1
    limited.clock.now_s += notifications.PAUSES_S[0]
    await until(lambda: len(receiver.requests) == 2)
    (headers, body), (again, same_body) = receiver.requests
    message = headers["webhook-id"]
    assert (again["webhook-id"], same_body) == (message, body)
    signed = f"{message}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(SIGNING_KEY, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    sent = json.loads(body)
    assert sent["type"] == "budget.soft_limit_reached"
    assert Decimal(sent["data"].pop("used")) >= Decimal("0.1")
    assert sent["data"].pop("subject_name").startswith("caller")
    assert sent["data"] == {
        "subject_kind": "user",
        "subject_id": user_id,
        "name": "spend_per_day",
        "limit": "1",
        "soft_limit_percent": 10,
        "starts_at": "2023-11-14T00:00:00Z",
        "resets_at": "2023-11-15T00:00:00Z",
    }
    audit = await call(limited, "GET", f"/admin/v1/audit?subject_id={user_id}")
    reached = [one for one in audit["data"] if one["action"] == "budget.soft_limit_reached"]
    assert [one["actor"] for one in reached] == ["gateway"]
    # The next day has a soft limit of its own.
    limited.clock.now_s += DAY_S
    await spends(limited, caller, path)
    await spends(limited, caller, path)
    await until(lambda: len(receiver.requests) == 3)
    assert json.loads(receiver.requests[2][1])["data"]["starts_at"] == "2023-11-15T00:00:00Z"
    limited.clock.now_s -= DAY_S + notifications.PAUSES_S[0]


async def test_a_spent_budget_is_topped_up_and_reset(limited: LimitedGateways) -> None:
    caller, path = await new_caller(limited)
    user_id = path.split("/")[4]
    await call(limited, "PUT", path, {"spend_per_day": "0.2", "soft_limit_percent": 90})
    before = await state(limited, path)
    assert (before["forecast"], before["exhausted_at"]) == ("0", None)
    assert before["starts_at"] == "2023-11-14T00:00:00Z"
    await until_refused(limited, caller)
    spent = await state(limited, path)
    assert spent["soft_limit_reached"] is True and spent["exhausted_at"] is None
    used = Decimal(spent["used"])
    elapsed_s = int(limited.clock.now_s) % DAY_S
    assert float(spent["forecast"]) == pytest.approx(float(used) * DAY_S / elapsed_s)

    budget = await call(
        limited, "POST", f"{path}/top-up", {"name": "spend_per_day", "amount": "0.5"}
    )
    assert (budget["limit"], budget["added"], budget["used"]) == ("0.7", "0.5", spent["used"])
    assert budget["soft_limit_reached"] is False
    # What workers know of the budget is a second old at most.
    limited.clock.now_s += 1

    async def passes() -> bool:
        status, _, headers = await post(limited.gateways[0], CHATS, BODY, caller)
        return status == 200 and Decimal(headers["x-gateway-budget-remaining-usd"]) > Decimal("0.3")

    await until(passes)
    key = caller["Authorization"].removeprefix("Bearer ")
    own = (await call(limited, "GET", ME, key=key))["limits"]
    assert [(one["limit"], one["added"]) for one in own] == [("0.7", "0.5")]
    error, _ = await until_refused(limited, caller)
    assert "its budget of 0.7 US dollars a day" in error["message"]

    for _ in range(2):
        budget = await call(limited, "POST", f"{path}/reset", {"name": "spend_per_day"})
        assert (budget["used"], budget["limit"], budget["remaining"]) == ("0", "0.7", "0.7")
    assert budget["reset_at"] is not None and budget["forecast"] is None
    limited.clock.now_s += 1
    await until(passes)
    error, _ = await until_refused(limited, caller)
    assert "has spent its budget" in error["message"]
    audit = await call(limited, "GET", f"/admin/v1/audit?subject_id={user_id}")
    actions = [(one["action"], one["before"], one["after"]) for one in reversed(audit["data"])]
    # Each amount reaches the soft limit once, and once more after a reset.
    assert [action for action, *_ in actions if action.startswith("budget.")] == [
        *("budget.soft_limit_reached", "budget.top_up", "budget.soft_limit_reached"),
        *("budget.reset", "budget.reset", "budget.soft_limit_reached"),
    ]
    [top_up] = [(old, new) for action, old, new in actions if action == "budget.top_up"]
    assert [one["limit_pusd"] for one in top_up] == [2 * 10**11, 7 * 10**11]


@pytest.mark.parametrize(
    ("correction", "body", "param"),
    [
        ("reset", {"name": "spend_per_month"}, "name"),
        ("reset", {"name": "tokens_per_minute"}, "name"),
        ("top-up", {"name": "spend_per_day", "amount": "0"}, "amount"),
        ("top-up", {"name": "spend_per_day"}, "amount"),
    ],
)
async def test_a_wrong_correction_changes_nothing(
    limited: LimitedGateways, correction: str, body: Any, param: str
) -> None:
    _, path = await new_caller(limited)
    await call(limited, "PUT", path, {"spend_per_day": "1"})
    before = await state(limited, path)
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    status, data, _ = await post(limited.gateways[0], f"{path}/{correction}", body, headers)
    assert (status, json.loads(data)["error"]["param"]) == (400, param)
    assert await state(limited, path) == before


async def test_a_model_group_is_what_its_callers_may_use(limited: LimitedGateways) -> None:
    caller, path = await new_caller(limited)
    group = "/admin/v1/model-groups/cheap-models"

    async def status(model: str) -> int:
        body = {**CHAT, "model": model}
        return (await post(limited.gateways[0], CHATS, body, caller))[0]

    assert (await call(limited, "PUT", group, {"models": ["sandbox/e*"]}))["id"] == "cheap-models"
    limits = await call(limited, "PUT", path, {"allowed_model_groups": ["cheap-models"]})
    assert (limits["allowed_models"], limits["allowed_model_groups"]) == ([], ["cheap-models"])
    read = await call(limited, "GET", path)
    assert {name: read[name] for name in limits} == limits
    await until(lambda: _is(status, "priced", 403))
    assert await status("sandbox/echo") == 200
    key = caller["Authorization"].removeprefix("Bearer ")
    models = await call(limited, "GET", "/v1/models", key=key)
    assert {model["id"][:9] for model in models["data"]} == {"sandbox/e"}
    own = await call(limited, "GET", ME, key=key)
    assert own["allowed_models"] == [{"subject_kind": "user", "models": ["sandbox/e*"]}]
    # A changed group takes effect, beside models of the limits' own.
    await call(limited, "PUT", group, {"models": ["priced"]})
    await until(lambda: _is(status, "priced", 200))
    assert await status("sandbox/echo") == 403
    both = {"allowed_models": ["sandbox/*"], "allowed_model_groups": ["cheap-models"]}
    await call(limited, "PUT", path, both)
    await until(lambda: _is(status, "sandbox/echo", 200))
    assert await status("priced") == 200

    [gateway] = limited.gateways
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with gateway.http.delete(gateway.url + group, headers=headers) as refused:
        assert refused.status == 409
    await call(limited, "DELETE", path)
    assert (await call(limited, "DELETE", group))["deleted"] is True
    assert (await call(limited, "GET", "/admin/v1/model-groups"))["data"] == []
    audit = await call(limited, "GET", "/admin/v1/audit?subject_id=cheap-models")
    assert [one["action"] for one in audit["data"]] == [
        *("model_group.delete", "model_group.set", "model_group.set"),
    ]


async def _is(status: Callable[[str], Awaitable[int]], model: str, expected: int) -> bool:
    return await status(model) == expected
