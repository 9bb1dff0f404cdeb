import logging

import pytest

from facade.access_log import AccessLog


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "facade.access")
    return lambda: caplog.records


def test_a_line_tells_what_was_asked_and_how_it_ended(clock, lines):
    AccessLog(2, clock).answered("POST", "/beta/v1/messages", 404, 0.01234)
    assert [line.getMessage() for line in lines()] == ["request"]
    told = {name: getattr(lines()[0], name) for name in ("method", "route", "status", "ms")}
    assert told == {"method": "POST", "route": "/beta/v1/messages", "status": 404, "ms": 12.3}
    assert not hasattr(lines()[0], "left_out")


def test_of_the_requests_of_a_second_as_many_have_a_line_as_may(clock, lines):
    log = AccessLog(3, clock)
    for _ in range(10):
        log.answered("GET", "/a", 200, 0.001)
    assert len(lines()) == 3
    clock.now += 1
    log.answered("GET", "/a", 200, 0.001)
    assert len(lines()) == 4


def test_the_next_line_tells_once_how_many_were_left_out(clock, lines):
    log = AccessLog(1, clock)
    for _ in range(5):
        log.answered("GET", "/a", 200, 0.001)
    clock.now += 1
    log.answered("GET", "/a", 200, 0.001)
    clock.now += 1
    log.answered("GET", "/a", 200, 0.001)
    assert [getattr(line, "left_out", 0) for line in lines()] == [0, 4, 0]


@pytest.mark.parametrize(("status", "logged"), [(499, False), (500, True), (503, True)])
def test_a_failure_of_the_server_always_has_a_line(clock, lines, status, logged):
    AccessLog(0, clock).answered("GET", "/a", status, 0.001)
    assert bool(lines()) is logged
