"""A gateway that has been used, for the pages on requests, the overview and people."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.common.clock import Clock
from tests.console.conftest import opened
from tests.gateway_in_process import Gateway, running_gateway
from tests.manual_clock import ManualClock
from tests.waiting import until

ADMIN_KEY = make_admin_key(bytes(32))
PRICE = {"input": 0, "output": 0, "request": 250}
SECTIONS: dict[str, Any] = {
    "admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
    "usage": {"write_every_s": 0.05, "tags": ["project"], "end_users": True},
    "request_log": {"enabled": True, "bodies": True, "write_every_s": 0.05},
    "limits": {"breaker_failures": 1},
    "models": [
        {"name": name, "provider": "openai", "upstream": upstream, "price": PRICE}
        for name, upstream in (("dear", "echo"), ("broken", "fail-500"))
    ],
}
CHAIN = {"strategy": {"mode": "sequential"}, "steps": [{"step_id": "second", "model": "dear"}]}
REQUESTS: tuple[dict[str, Any], ...] = (
    {"model": "dear", "messages": [{"role": "user", "content": "Where is the lighthouse?"}]},
    {
        "model": "broken",
        "fallback": "enabled",
        "fallback_config": CHAIN,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "<b>Is it far?</b>"},
        ],
    },
    {
        "model": "broken",
        "fallback": "disabled",
        "messages": [{"role": "user", "content": "And back?"}],
    },
)


@asynccontextmanager
async def running_used_gateway(folder: Path) -> AsyncIterator[Gateway]:
    """Run a gateway with two answers and a failure on record, all of the same moment.

    Pages ask by the browser's clock, so that the moment is one of now; another hour or day may
    have begun meanwhile.
    """
    clock = ManualClock(time.time())
    async with running_gateway(folder, clock=Clock(now=clock.now), **SECTIONS) as running:
        for number, body in enumerate(REQUESTS):
            await chat(running, number, body)
        clock.now_s += 1

        async def is_recorded() -> bool:
            rows = (await admin(running, "activity", by="day"))["data"]
            logged = (await admin(running, "requests"))["data"]
            counted = sum(row["requests"] for row in rows)
            return counted >= len(REQUESTS) and len(logged) >= len(REQUESTS)

        await until(is_recorded, within_s=60, every_s=0.05)
        yield running


async def chat(gateway: Gateway, number: int, body: dict[str, Any]) -> None:
    headers = {**gateway.bearer(), "x-request-id": f"request-{number}"}
    address = f"{gateway.url}/beta/v1/chat/completions"
    body = {**body, "metadata": {"project": "alpha"}, "user": "ada"}
    async with gateway.http.post(address, json=body, headers=headers) as answer:
        await answer.read()


async def admin(gateway: Gateway, path: str, **query: str) -> Any:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    address = f"{gateway.url}/admin/v1/{path}"
    async with gateway.http.get(address, params=query, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@asynccontextmanager
async def change_limits(gateway: Gateway, limits: dict[str, Any]) -> AsyncIterator[None]:
    """Limit the user of the gateway's key, for a while."""
    [tester] = (await admin(gateway, "users", name="tester"))["data"]
    address = f"{gateway.url}/admin/v1/users/{tester['id']}/limits"
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with gateway.http.put(address, json=limits, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
    try:
        yield
    finally:
        async with gateway.http.delete(address, headers=headers) as answer:
            assert answer.status == 200, await answer.text()


@asynccontextmanager
async def opened_by_administrator(
    browser: Browser, gateway: Gateway, path: str, **options: Any
) -> AsyncIterator[Page]:
    """Open a page in a session that the admin key has unlocked."""
    async with opened(browser, gateway, path, admin_key=ADMIN_KEY, **options) as page:
        yield page
