"""How providers are doing, over HTTP, of requests that a gateway served."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.inference.v1.providers_pb2 import ProviderModel
from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.inference.provider_states.shared_folder import FOLDER, SharedFolder
from tests.facade.deployment_upstream import DeploymentUpstream, failing
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.manual_clock import ManualClock

KEY = make_admin_key(bytes(32))
NOW_S = ManualClock().now()
IDLE = {
    "object": "provider.model",
    "id": "m",
    "names": [],
    "healthy": True,
    "breaker": "closed",
    "retry_at": None,
    "cooling_until": None,
    "workers_avoiding": 0,
    "requests": 0,
    "failed_requests": 0,
    "cancelled_requests": 0,
    "mean_first_content_ms": None,
    "mean_duration_ms": None,
    "last_failure": None,
}


@asynccontextmanager
async def deployed(folder: Path, clock: ManualClock) -> AsyncIterator[tuple[Gateway, Any]]:
    """Run a gateway whose model `both` is at two providers, and `one` at the first."""
    upstream = DeploymentUpstream()
    places = [
        {"provider": "east", "upstream": "m", "weight": 1000},
        {"provider": "west", "upstream": "m", "weight": 1e-30},
    ]
    async with (
        serving(upstream.app) as address,
        running_gateway(
            folder,
            address,
            clock=clock,
            providers=upstream.providers(address, "east", "west"),
            models=[
                {"name": "both", "deployments": places},
                {"name": "one", "provider": "east", "upstream": "n"},
            ],
            admin={"key_sha256": hash_admin_key(KEY).hex()},
            limits={"breaker_failures": 2},
        ) as gateway,
    ):
        yield gateway, upstream


async def listed(gateway: Gateway) -> tuple[dict[str, Any], Mapping[tuple[str, str], Any]]:
    """Return the list, and its models by provider and name."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with gateway.http.get(f"{gateway.url}/admin/v1/providers", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        found = await answer.json()
    models = {(one["id"], model["id"]): model for one in found["data"] for model in one["models"]}
    return found, models


def status_of(found: dict[str, Any]) -> dict[str, str]:
    return {one["id"]: one["status"] for one in found["data"]}


async def ask(gateway: Gateway, model: str) -> int:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Hi"}],
        "fallback_config": {"steps": [{"id": "only", "model": model, "retry": {"attempts": 1}}]},
    }
    url = f"{gateway.url}/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        return answer.status


async def test_all_providers_are_listed_with_their_models(tmp_path: Path) -> None:
    async with deployed(tmp_path, ManualClock()) as (gateway, _):
        found, models = await listed(gateway)
    assert status_of(found).keys() >= {"east", "sandbox", "west"}
    assert {*status_of(found).values()} == {"healthy"}
    assert (found["workers"], found["window_seconds"], found["has_more"]) == (1, 300, False)
    assert models == {
        ("east", "m"): {**IDLE, "names": ["both"]},
        ("east", "n"): {**IDLE, "id": "n", "names": ["one"]},
        ("west", "m"): {**IDLE, "names": ["both"]},
    }


async def test_attempts_and_failures_are_counted(tmp_path: Path) -> None:
    clock = ManualClock()
    async with deployed(tmp_path, clock) as (gateway, upstream):
        assert [await ask(gateway, "both") for _ in range(3)] == [200] * 3
        upstream.scripts["east"] = failing(429, {"retry-after": "7"})
        assert await ask(gateway, "both") == 200
        found, models = await listed(gateway)
        assert status_of(found)["east"] == "degraded"
        east, west = models["east", "m"], models["west", "m"]
        assert (east["requests"], east["failed_requests"]) == (4, 1)
        assert (east["healthy"], east["cooling_until"]) == (False, NOW_S + 7)
        assert east["last_failure"] == {
            "at": NOW_S,
            "reason": "upstream_rate_limited",
            "status": 429,
        }
        assert (east["mean_duration_ms"], east["mean_first_content_ms"]) == (0, 0)
        assert (west["requests"], west["healthy"], west["last_failure"]) == (1, True, None)
        clock.now_s += 301
        found, models = await listed(gateway)
        assert status_of(found)["east"] == "healthy"
        # The window is over; the failure is known for an hour.
        assert models["east", "m"]["requests"] == 0
        assert models["east", "m"]["last_failure"]["at"] == NOW_S
        clock.now_s += 3600
        assert (await listed(gateway))[1]["east", "m"]["last_failure"] is None


async def test_open_breakers_are_shown_until_they_close(tmp_path: Path) -> None:
    clock = ManualClock()
    async with deployed(tmp_path, clock) as (gateway, upstream):
        upstream.scripts["east"] = failing(500)
        assert [await ask(gateway, "one") >= 500 for _ in range(2)] == [True, True]
        found, models = await listed(gateway)
        assert models["east", "n"]["breaker"] == "open"
        assert NOW_S + 8 <= models["east", "n"]["retry_at"] <= NOW_S + 10
        assert models["east", "n"]["workers_avoiding"] == 1
        assert status_of(found)["east"] == "degraded"
        assert [await ask(gateway, "both") for _ in range(2)] == [200, 200]
        found, _ = await listed(gateway)
        assert status_of(found)["east"] == "down"
        clock.now_s += 11
        assert (await listed(gateway))[1]["east", "n"]["breaker"] == "half_open"
        del upstream.scripts["east"]
        assert await ask(gateway, "one") == 200
        assert (await listed(gateway))[1]["east", "n"]["breaker"] == "closed"


async def test_models_that_nobody_configured_are_listed(tmp_path: Path) -> None:
    async with deployed(tmp_path, ManualClock()) as (gateway, _):
        assert await ask(gateway, "west/other") == 200
        _, models = await listed(gateway)
    assert (models["west", "other"]["names"], models["west", "other"]["requests"]) == ([], 1)


def _other_worker(folder: Path, is_there: Any, may_end: Any) -> None:
    """Record a failing model, and run until a line on the input ends it."""
    shared = SharedFolder.enter(folder)
    model = ProviderModel(
        provider="west", model="m", breaker=3, retry_at_ms=5_000, workers_avoiding=1
    )
    model.attempts.failed = 6
    shared.write([model])
    is_there.set()
    may_end.wait()


async def test_other_workers_count_while_they_live(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    is_there, may_end = context.Event(), context.Event()
    worker = context.Process(target=_other_worker, args=(tmp_path, is_there, may_end))
    async with deployed(tmp_path, ManualClock()) as (gateway, _):
        worker.start()
        await asyncio.to_thread(is_there.wait)
        assert await ask(gateway, "west/m") == 200
        found, models = await listed(gateway)
        west = models["west", "m"]
        assert (found["workers"], west["requests"], west["failed_requests"]) == (2, 7, 6)
        assert (west["breaker"], west["retry_at"], west["workers_avoiding"]) == ("open", 5, 1)
        worker.kill()
        await asyncio.to_thread(worker.join)
        found, models = await listed(gateway)
        assert (found["workers"], models["west", "m"]["requests"]) == (1, 1)
        assert len([*(tmp_path / FOLDER).iterdir()]) == 1
    assert [*(tmp_path / FOLDER).iterdir()] == []


async def test_a_file_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    one, other = SharedFolder.enter(tmp_path), SharedFolder.enter(tmp_path)
    one.write([ProviderModel(provider="a")])
    other.write([ProviderModel(provider="b")])
    assert other.read_others() == [[ProviderModel(provider="a")]]
    path = next(path for path in (tmp_path / FOLDER).iterdir() if path.read_bytes().endswith(b"a"))
    with path.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"c")
    assert other.read_others() == []
    one.leave()
    other.leave()


@pytest.mark.parametrize("path", ["/admin/v1/providers", "/admin/v1/activity"])
async def test_users_see_nothing_of_it(tmp_path: Path, path: str) -> None:
    async with (
        deployed(tmp_path, ManualClock()) as (gateway, _),
        gateway.http.get(gateway.url + path, headers=gateway.bearer()) as answer,
    ):
        assert answer.status == 401
