"""The recorder of the request log: what is logged, what waits, and what is dropped."""

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from gateway.accounts.v1.usage_pb2 import USAGE_OUTCOME_SERVED, RecordUsageRequest, UsageRecord
from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestBodies
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid, unavailable
from services.common.messages.usage_batch import UsageBatch
from services.common.settings import RequestLog, Usage
from services.request_log.metrics import RequestLogMetrics
from services.request_log.recorder import RequestRecorder
from tests.manual_clock import ManualClock


class Recorded:
    """A recorder with a clock that stands still, and what it has sent."""

    def __init__(self, chance: float = 0.0, **settings: Any) -> None:
        self.clock = ManualClock()
        self.batches: list[Sequence[LoggedRequest]] = []
        self.bodies: list[RequestBodies] = []
        self.failure: GatewayError | None = None
        self.registry = CollectorRegistry()
        self.recorder = RequestRecorder(
            RequestLog(enabled=True, **settings),
            Usage(),
            Clock(now=self.clock.now, monotonic=self.clock.monotonic),
            self._send,
            RequestLogMetrics(self.registry),
            lambda request, response: (request.decode(), response.decode(), "searched"),
            chance=lambda: chance,
        )

    async def _send(
        self, requests: Sequence[LoggedRequest], bodies: Sequence[RequestBodies]
    ) -> None:
        if self.failure is not None:
            raise self.failure
        self.batches.append(requests)
        self.bodies += bodies

    def with_body(self, request_id: str, request: bytes, response: bytes = b"") -> None:
        """Log a request with bodies."""
        entry = self.recorder.begin(request_id)
        assert entry is not None and entry.request is not None and entry.response is not None
        entry.request.add(request)
        entry.response.add(response)
        self.recorder.end(entry, LoggedRequest(request_id=request_id))

    def request(self, request_id: str = "req_1", **fields: Any) -> None:
        entry = self.recorder.begin(request_id)
        if entry is not None:
            values = {"request_id": request_id, "user_id": "user_a", "key_id": "key_a"} | fields
            self.recorder.end(entry, LoggedRequest(**values))

    async def written(self, **options: Any) -> list[LoggedRequest]:
        self.batches.clear()
        await self.recorder.flush(**options)
        return [request for batch in self.batches for request in batch]

    def count(self, name: str) -> float:
        value = self.registry.get_sample_value(f"gateway_request_log_{name}")
        assert value is not None
        return value


def used(request_id: str, *, is_part: bool = False, **fields: Any) -> UsageRecord:
    values: dict[str, Any] = {
        "id": f"use_{request_id}{is_part}",
        "time_ms": 1,
        "request_id": request_id,
        "user_id": "user_a",
        "outcome": USAGE_OUTCOME_SERVED,
        "model": "m",
        "provider": "p",
        "is_part": is_part,
        "attempts": 0 if is_part else 2,
        "input_tokens": 1,
        "cached_tokens": 2,
        "cache_written_tokens": 4,
        "output_tokens": 8,
        "cost_pusd": 16,
    }
    return UsageRecord(**(values | fields))


def batch(*records: UsageRecord) -> UsageBatch:
    return UsageBatch.of(RecordUsageRequest(records=records))


async def test_an_entry_has_the_usage_of_all_models() -> None:
    recorded = Recorded()
    recorded.request(requested_model="m")
    assert await recorded.written() == []
    recorded.recorder.add_usage(batch(used("req_1", is_part=True, model="helper"), used("req_1")))
    [logged] = await recorded.written()
    assert (logged.model, logged.provider, logged.attempts) == ("m", "p", 2)
    assert (logged.input_tokens, logged.output_tokens, logged.cost_pusd) == (14, 16, 32)


async def test_usage_that_comes_before_the_end_counts() -> None:
    recorded = Recorded()
    entry = recorded.recorder.begin("req_1")
    assert entry is not None
    recorded.recorder.add_usage(batch(used("req_1")))
    recorded.recorder.end(entry, LoggedRequest(user_id="user_a", requested_model="m"))
    [logged] = await recorded.written()
    assert (logged.model, logged.cost_pusd) == ("m", 16)


async def test_an_unknown_cost_stays_unknown() -> None:
    recorded = Recorded()
    recorded.request(requested_model="m")
    unpriced = used("req_1", is_part=True)
    unpriced.ClearField("cost_pusd")
    recorded.recorder.add_usage(batch(unpriced, used("req_1")))
    [logged] = await recorded.written()
    assert not logged.HasField("cost_pusd") and logged.output_tokens == 16


async def test_usage_of_others_with_the_same_id_is_not_added() -> None:
    recorded = Recorded()
    recorded.request(requested_model="m")
    recorded.recorder.add_usage(batch(used("req_1", user_id="user_b"), used("req_2")))
    assert await recorded.written() == []


async def test_an_entry_waits_seconds_for_its_usage() -> None:
    recorded = Recorded()
    recorded.request(requested_model="m", input_tokens=7)
    recorded.request("req_2")
    assert [one.request_id for one in await recorded.written()] == ["req_2"]
    recorded.clock.now_s += 10
    [logged] = await recorded.written()
    assert (logged.request_id, logged.input_tokens) == ("req_1", 7)
    assert not logged.HasField("cost_pusd")


@pytest.mark.parametrize(
    ("settings", "logged"),
    [
        ({}, ["", "fast", "fast-2", "slow", "other key"]),
        ({"models": ["fast"]}, ["fast", "other key"]),
        ({"models": ["fast*", "slow"]}, ["fast", "fast-2", "slow", "other key"]),
        ({"models": ["*"]}, ["fast", "fast-2", "slow", "other key"]),
        ({"key_ids": ["key_a"]}, ["", "fast", "fast-2", "slow"]),
        ({"key_ids": ["key_b"], "models": ["f*"]}, ["other key"]),
        ({"sample_rate": 0.5}, []),
    ],
)
async def test_keys_models_and_a_share_are_selected(
    settings: dict[str, Any], logged: list[str]
) -> None:
    recorded = Recorded(chance=0.5, **settings)
    for model in ("", "fast", "fast-2", "slow"):
        recorded.request(model or "none", requested_model=model)
    recorded.request("other key", requested_model="fast", key_id="key_b")
    written = await recorded.written(waits_for_usage=False)
    assert [one.request_id.replace("none", "") for one in written] == logged


async def test_entries_beyond_the_bound_are_dropped_and_counted() -> None:
    recorded = Recorded(max_pending_entries=2)
    for number in range(5):
        recorded.request(f"req_{number}")
    assert (recorded.count("pending"), recorded.count("dropped_total")) == (2, 3)
    assert [one.request_id for one in await recorded.written()] == ["req_0", "req_1"]
    assert (recorded.count("pending"), recorded.count("written_total")) == (0, 2)
    recorded.request("req_5")
    assert len(await recorded.written()) == 1


async def test_entries_are_kept_while_the_database_is_away() -> None:
    recorded = Recorded(max_pending_entries=250)
    for number in range(250):
        recorded.request(f"req_{number}")
    recorded.failure = unavailable("the database")
    with pytest.raises(GatewayError):
        await recorded.recorder.flush()
    recorded.request("req_more")
    recorded.failure = None
    written = await recorded.written()
    assert [one.request_id for one in written] == [f"req_{number}" for number in range(250)]
    assert [len(one) for one in recorded.batches] == [100, 100, 50]
    assert recorded.count("dropped_total") == 1


async def test_rejected_entries_do_not_block_others() -> None:
    recorded = Recorded()
    recorded.request()
    recorded.failure = invalid("requests", "no")
    await recorded.recorder.flush()
    assert recorded.count("dropped_total") == 1
    recorded.failure = None
    recorded.request("req_2")
    assert [one.request_id for one in await recorded.written()] == ["req_2"]


async def test_what_waits_is_written_at_the_end() -> None:
    recorded = Recorded()
    recorded.request(requested_model="m")
    await recorded.recorder.settle()
    assert len(recorded.batches) == 1


async def test_bodies_are_redacted_and_truncated() -> None:
    recorded = Recorded(bodies=True, redact=["[0-9]{4}"], max_body_bytes=1024)
    recorded.with_body("req_1", b"pin 1234, key sk-" + b"a" * 20 + b".", b"x" * 2000)
    [logged] = await recorded.written()
    [bodies] = recorded.bodies
    assert logged.has_bodies and bodies.id == logged.id
    assert bodies.request == "pin [redacted], key [redacted]."
    assert bodies.response == "x" * 1024
    assert (bodies.is_request_truncated, bodies.is_response_truncated) == (False, True)
    assert bodies.text == "searched"


async def test_bodies_beyond_the_bytes_in_memory_are_cut() -> None:
    recorded = Recorded(bodies=True, max_pending_bytes=1 << 20, max_body_bytes=1 << 20)
    recorded.with_body("req_1", b"a" * (1 << 20))
    recorded.with_body("req_2", b"b" * 9)
    first, second = await recorded.written()
    assert (first.has_bodies, second.has_bodies) == (True, False)
    # What has been written has room again.
    recorded.with_body("req_3", b"c" * (1 << 20))
    [third] = await recorded.written()
    assert third.has_bodies and not recorded.bodies[-1].is_request_truncated


async def test_batches_have_few_bytes() -> None:
    recorded = Recorded(bodies=True, max_body_bytes=1 << 20)
    for number in range(5):
        recorded.with_body(f"req_{number}", b"a" * (1 << 20))
    await recorded.written()
    assert [len(batch) for batch in recorded.batches] == [2, 2, 1]
