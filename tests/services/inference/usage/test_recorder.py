"""The recorder: every line is recorded, whatever fails in between, and none twice."""

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from gateway.accounts.v1.usage_pb2 import UsageRecord
from gateway.errors.v1 import errors_pb2
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid, unavailable
from services.common.messages.usage_batch import UsageBatch
from services.common.settings import Price, Provider, Usage
from services.inference.pricing.costs import Costs
from services.inference.usage import journal
from services.inference.usage.journal import FOLDER
from services.inference.usage.lines import FAILED, SERVED
from services.inference.usage.metrics import UsageMetrics
from services.inference.usage.recorder import UsageRecorder
from tests.services.inference.fallback.virtual_time import in_no_time

PROVIDERS = {
    "p": Provider(kind="openai", base_url="http://x", price=Price.model_validate({"input": 1}))
}
NOW_MS = 1_795_435_200_000
OFFERED = {"fast"}


class Database:
    """Takes batches; counts records as the accounts service does, each id once."""

    def __init__(self) -> None:
        self.records: dict[str, UsageRecord] = {}
        self.batches = 0
        self.failures: list[GatewayError] = []
        self.fails_after: int | None = None

    async def send(self, batch: UsageBatch) -> None:
        self.batches += 1
        if self.failures:
            raise self.failures.pop(0)
        for record in batch.records():
            self.records.setdefault(record.id, record)
        if self.fails_after is not None and self.batches >= self.fails_after:
            # The answer is lost, the records are not.
            raise unavailable("the connection was lost")

    @property
    def tokens(self) -> list[int]:
        return sorted(record.input_tokens for record in self.records.values())


def line(tokens: int | None = 1, outcome: Any = SERVED, **further: int) -> tuple[Any, ...]:
    used = [["fast", "p", "up", tokens, 0, 0, 0, 0, further or None]]
    head = [
        NOW_MS / 1000,
        "req",
        "user",
        "team",
        "key",
        "chat",
        "fast",
        "primary",
        outcome,
        1,
        5,
        9,
    ]
    return (*head, False, used)


def plain_line(tokens: int | None = 1, outcome: Any = SERVED) -> tuple[Any, Any]:
    """Return the parts of a plain line that says the same as `line`: the second, the first."""
    head = ("user", "team", "key", "chat", "fast", "fast", "p", "up", "primary", outcome, 1, 1)
    return (NOW_MS / 1000, "req", 5, 9, tokens, 0, 0, 0, 0), head


def recorder(folder: Path, database: Database, **settings: Any) -> UsageRecorder:
    folder.mkdir(exist_ok=True)

    def costs() -> Costs:
        return Costs(PROVIDERS, lambda name: None, lambda: NOW_MS)

    metrics = UsageMetrics(CollectorRegistry())
    return UsageRecorder(
        folder, Usage(**settings), Clock(), costs, database.send, metrics, OFFERED.__contains__
    )


def dropped(there: UsageRecorder) -> float:
    counter = there.metrics.dropped
    return sum(s.value for m in counter.collect() for s in m.samples if s.name.endswith("_total"))


async def test_lines_become_records_with_costs(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    there.lines.write(line(7))
    await there.flush()
    [record] = database.records.values()
    assert (record.user_id, record.team_id, record.key_id) == ("user", "team", "key")
    assert (record.model, record.provider, record.upstream_model) == ("fast", "p", "up")
    assert (record.input_tokens, record.cost_pusd) == (7, 7_000_000)
    assert (record.first_content_ms, record.duration_ms, record.attempts) == (5, 9, 1)
    assert os.listdir(tmp_path / FOLDER) == []


async def test_plain_lines_become_the_same_records(tmp_path: Path) -> None:
    database, other = Database(), Database()
    whole, plain = recorder(tmp_path / "a", database), recorder(tmp_path / "b", other)
    for tokens, outcome in ((7, SERVED), (None, SERVED), (None, FAILED), (2**64 - 1, SERVED)):
        whole.lines.write(line(tokens, outcome))
        plain.lines.write(*plain_line(tokens, outcome))
    for there in (whole, plain):
        await there.flush()
    made = [list(one.records.values()) for one in (database, other)]
    for record in (*made[0], *made[1]):
        record.ClearField("id")
    assert len(made[0]) == 4 and made[0] == made[1]


async def test_lines_of_the_version_before_are_recorded(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "old-1.journal").write_bytes(orjson.dumps(line(7)) + b"\n")
    database = Database()
    await recorder(tmp_path, database).flush(takes_over=True)
    assert database.tokens == [7]
    assert os.listdir(tmp_path / FOLDER) == []


async def test_what_is_no_plain_line_is_counted(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    tail, head = plain_line()
    wrong = [
        (tail, head[1:]),
        (tail[1:], head),
        (tail, (None, *head[1:])),
        (("x", *tail[1:]), head),
    ]
    for one in (*wrong, (tail, ("\ud800", *head[1:])), (tail, head)):
        there.lines.write(*one)
    await there.flush()
    assert (database.tokens, dropped(there)) == ([1], 5)


async def test_costs_that_are_not_known_are_missing(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    for one in (line(None), line(None, FAILED), line(1, SERVED, web_search=1)):
        there.lines.write(one)
    await there.flush()
    costs = [
        record.cost_pusd if record.HasField("cost_pusd") else None
        for _, record in sorted(database.records.items())
    ]
    assert costs == [None, 0, None]


@pytest.mark.parametrize(
    "failure", [unavailable("down"), GatewayError(errors_pb2.REASON_STORAGE_FULL, "full")]
)
async def test_lines_wait_while_the_database_is_down(tmp_path: Path, failure: GatewayError) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    database.failures = [failure, failure]
    for tokens in (1, 2):
        there.lines.write(line(tokens))
        with pytest.raises(GatewayError):
            await there.flush()
    there.lines.write(line(3))
    await there.flush()
    assert database.tokens == [1, 2, 3]


async def test_a_batch_whose_answer_was_lost_counts_once(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    for tokens in range(2_000):
        there.lines.write(line(tokens))
    database.fails_after = 2
    with pytest.raises(GatewayError):
        await there.flush()
    database.fails_after = None
    await there.flush()
    assert database.tokens == list(range(2_000))


async def test_another_process_records_what_was_left(tmp_path: Path) -> None:
    database, down = Database(), Database()
    there = recorder(tmp_path, down)
    for tokens in (1, 2):
        there.lines.write(line(tokens))
    down.fails_after = 1
    with pytest.raises(GatewayError):
        await there.flush()
    there.lines.write(line(3))
    other = recorder(tmp_path, database)
    await other.flush(takes_over=True)
    assert database.records == {}
    there.close()  # which lets go of the files, as its death does
    await other.flush(takes_over=True)
    assert database.tokens == [1, 2, 3]
    # Those that were stored have the same ids.
    assert down.records.keys() <= database.records.keys()
    assert os.listdir(tmp_path / FOLDER) == []


async def test_a_refused_batch_is_counted_and_not_repeated(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    database.failures = [invalid("records[0]", "wrong")]
    there.lines.write(line(1))
    await there.flush()
    there.lines.write(line(2))
    await there.flush()
    assert (database.tokens, dropped(there)) == ([2], 1)


async def test_what_is_no_line_is_counted(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    surrogate, unknown = ("\ud800",), line(1, thoughts=1)
    for one in ((), ("a",), surrogate, unknown, line(1)):
        there.lines.write(one)
    await there.flush()
    assert (database.tokens, dropped(there)) == ([1], 4)


async def test_without_a_disk_lines_are_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    database = Database()
    there = recorder(tmp_path, database)
    there.lines.write(line(1))
    database.failures = [unavailable("down")]
    with pytest.raises(GatewayError):
        await there.flush()
    there.lines.write(line(2))
    await there.flush()
    assert (database.tokens, dropped(there)) == ([1, 2], 0)


async def test_without_disk_and_database_losses_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_MAX_HELD", 2)
    (tmp_path / FOLDER).write_text("in the way")
    there = recorder(tmp_path, Database())
    for tokens in range(5):
        there.lines.write(line(tokens))
    assert dropped(there) == 3


async def test_a_full_journal_drops_and_counts(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database, max_journal_bytes=64 << 10)
    size = len(orjson.dumps(line(1))) + 1
    for _ in range(2 * (64 << 10) // size):
        there.lines.write(line(1))
    await there.flush()
    assert dropped(there) > 0
    assert len(database.tokens) == (64 << 10) // size


async def test_settling_leaves_the_rest_to_others(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    there.lines.write(line(1))
    database.failures = [unavailable("down")]
    await there.settle()
    there.close()
    other = recorder(tmp_path, database)
    await other.flush(takes_over=True)
    assert database.tokens == [1]


@in_no_time
async def test_requests_are_served_between_pieces_of_a_file(tmp_path: Path) -> None:
    database = Database()
    there = recorder(tmp_path, database)
    loop = asyncio.get_running_loop()

    async def seconds(record: Awaitable[None]) -> float:
        began = loop.time()
        await record
        return loop.time() - began

    for _ in range(200):
        there.lines.write(line(1))
    # No piece is so long that a request would wait for it: a millisecond for 20 lines.
    assert await seconds(there.flush()) >= 200 / 20 * 0.001
    for _ in range(200):
        there.lines.write(line(1))
    assert await seconds(there.settle()) < 0.001
    assert len(database.tokens) == 400
