import json
import logging

import pytest

from facade.reports import AccessLog
from services.common.process import logs
from tests.manual_clock import ManualClock


class ManualTimer:
    def __init__(self) -> None:
        self.waiting: list = []

    def __call__(self, delay: float, callback) -> None:
        assert 0 < delay < 1
        self.waiting.append(callback)

    def comes(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def later() -> ManualTimer:
    return ManualTimer()


@pytest.fixture
def lines(caplog, later):
    caplog.set_level(logging.INFO, "facade.access")

    def come():
        later.comes()
        return caplog.records

    return come


def test_a_line_has_the_request_and_its_outcome(clock, later, lines):
    logs.request_id.set("req_one")
    AccessLog(2, clock.monotonic, later).answered(
        "POST", "/beta/v1/messages", 404, 0.01234, lambda: {"model": "m"}
    )
    logs.request_id.set("req_another")
    assert [line.getMessage() for line in lines()] == ["request"]
    parsed = json.loads(logs.JsonFormatter().format(lines()[0]))
    expected = {
        "request_id": "req_one",
        "method": "POST",
        "route": "/beta/v1/messages",
        "status": 404,
        "ms": 12.3,
        "model": "m",
    }
    assert expected.items() <= parsed.items()
    assert "left_out" not in parsed


def test_no_request_waits_for_its_line(clock, later, caplog, lines):
    log = AccessLog(10, clock.monotonic, later)
    for _ in range(3):
        log.answered("GET", "/a", 200, 0.001, dict)
    assert not caplog.records
    assert len(later.waiting) == 1
    assert len(lines()) == 3
    log.answered("GET", "/a", 200, 0.001, dict)
    assert len(lines()) == 4


def test_of_the_requests_of_a_second_as_many_have_a_line_as_may(clock, later, lines):
    log = AccessLog(3, clock.monotonic, later)
    for _ in range(10):
        log.answered("GET", "/a", 200, 0.001, dict)
    assert len(lines()) == 3
    clock.now_s += 1
    log.answered("GET", "/a", 200, 0.001, dict)
    assert len(lines()) == 4


def test_details_are_asked_for_where_there_is_a_line(clock, later, lines):
    asked = []
    log = AccessLog(2, clock.monotonic, later)
    for number in range(5):
        log.answered("GET", "/a", 200, 0.001, lambda number=number: asked.append(number) or {})
    assert asked == [0, 1]


def test_the_next_line_counts_the_omitted_ones_once(clock, later, lines):
    log = AccessLog(1, clock.monotonic, later)
    for _ in range(5):
        log.answered("GET", "/a", 200, 0.001, dict)
    clock.now_s += 1
    log.answered("GET", "/a", 200, 0.001, dict)
    clock.now_s += 1
    log.answered("GET", "/a", 200, 0.001, dict)
    assert [getattr(line, "left_out", 0) for line in lines()] == [0, 4, 0]


@pytest.mark.parametrize(("status", "logged"), [(499, False), (500, True), (503, True)])
def test_a_failure_of_the_server_always_has_a_line(clock, later, lines, status, logged):
    AccessLog(0, clock.monotonic, later).answered("GET", "/a", status, 0.001, dict)
    assert bool(lines()) is logged


def test_a_server_failure_is_logged_at_once_and_in_order(clock, later, caplog):
    caplog.set_level(logging.INFO, "facade.access")
    log = AccessLog(10, clock.monotonic, later)
    log.answered("GET", "/a", 200, 0.001, dict)
    log.answered("GET", "/b", 500, 0.001, dict)
    assert [line.route for line in caplog.records] == ["/a", "/b"]
    later.comes()
    assert len(caplog.records) == 2
