"""Log lines: one short JSON object each, whatever they tell of."""

import json
import logging
from typing import Any

import pytest

from services.common.process.logs import JsonFormatter

LONG = "x" * (1 << 20)


def line(**values: Any) -> dict[str, Any]:
    written = JsonFormatter().format(logging.makeLogRecord(values))
    assert "\n" not in written
    assert len(written) < 50_000
    told: dict[str, Any] = json.loads(written)
    return told


def test_a_line_says_what_it_is_given():
    told = line(msg="attempt", levelname="INFO", name="a.b", model="p/m")
    assert (told["message"], told["level"], told["logger"]) == ("attempt", "info", "a.b")
    assert told["model"] == "p/m"


@pytest.mark.parametrize("values", [{"msg": LONG}, {"msg": "m", "model": LONG}])
def test_a_long_value_is_cut(values: dict[str, str]):
    assert len(json.dumps(line(**values))) < 3_000


def test_a_long_trace_is_cut():
    try:
        raise ValueError(LONG)
    except ValueError as error:
        told = line(msg="m", exc_info=(type(error), error, error.__traceback__))
    assert "ValueError: xxx" in told["trace"]


def test_half_of_a_surrogate_pair_is_escaped():
    assert line(msg="m", model="\ud800")["model"] == "\ud800"
