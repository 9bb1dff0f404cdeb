import logging

import pytest

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, UpstreamError
from services.inference.fallback.attempt_reports import FailureLog
from tests.manual_clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def failures(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> FailureLog:
    caplog.set_level(logging.WARNING)
    return FailureLog(clock.monotonic)


def failed(cause: str = "") -> UpstreamError:
    return UpstreamError(
        errors_pb2.REASON_UPSTREAM_ERROR, "it failed", status=500, cause=lambda: cause
    )


def test_a_line_names_the_failure_and_its_cause(failures, caplog):
    failures.write("p", failed("out of memory"), {"model": "p/m"})
    (line,) = caplog.records
    fields = vars(line)
    assert (fields["levelname"], line.getMessage()) == ("WARNING", "a provider failed")
    assert (fields["provider"], fields["model"], fields["status"]) == ("p", "p/m", 500)
    assert (fields["reason"], fields["error"]) == ("upstream_error", "it failed")
    assert fields["cause"] == "out of memory"
    assert "left_out" not in fields


def test_a_bound_of_the_gateways_has_neither_status_nor_cause(failures, caplog):
    failures.write("p", GatewayError(errors_pb2.REASON_TIMEOUT, "too long"), {})
    assert not {"status", "cause"} & vars(caplog.records[0]).keys()


def test_a_provider_that_is_down_has_few_lines(failures, clock, caplog):
    asked = []

    def cause() -> str:
        asked.append(1)
        return ""

    error = UpstreamError(errors_pb2.REASON_UPSTREAM_CONNECTION, "no", cause=cause)
    for _ in range(200):
        failures.write("p", error, {})
    assert len(caplog.records) == len(asked) == 5
    failures.write("another", failed(), {})
    assert len(caplog.records) == 6
    clock.now_s += 1
    for _ in range(2):
        failures.write("p", error, {})
    assert [getattr(line, "left_out", 0) for line in caplog.records] == [*[0] * 6, 195, 0]
