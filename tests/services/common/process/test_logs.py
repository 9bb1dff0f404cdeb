"""Log lines: one short JSON object each, whatever they tell of."""

import io
import json
import logging
from contextvars import Context
from typing import Any

import pytest

from services.common.process.logs import JsonFormatter, TerminalFormatter, configure

LONG = "x" * (1 << 20)


def line(**values: Any) -> dict[str, Any]:
    written = JsonFormatter().format(logging.makeLogRecord(values))
    assert "\n" not in written
    assert len(written) < 50_000
    parsed: dict[str, Any] = json.loads(written)
    return parsed


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


def on_terminal(**values: Any) -> str:
    record = logging.makeLogRecord({"levelname": "WARNING", **values})
    # Without the request id of a test that ran before.
    return Context().run(TerminalFormatter().format, record)


def test_a_line_on_a_terminal_is_text():
    written = on_terminal(msg="a provider failed", model="p/m", status=502, error="no such host")
    text = written.partition(" ")[2]
    assert text == 'WARNING a provider failed model=p/m status=502 error="no such host"'


def test_a_trace_on_a_terminal_follows_its_line():
    try:
        raise ValueError("odd")
    except ValueError as error:
        written = on_terminal(msg="m", exc_info=(type(error), error, error.__traceback__))
    assert "\n    Traceback" in written and written.endswith("\n    ValueError: odd")


@pytest.mark.parametrize("values", [{"msg": "a\x1b[2Jb"}, {"msg": "m", "path": "a\x1b[2Jb"}])
def test_no_text_of_others_controls_the_terminal(values: dict[str, str]):
    written = on_terminal(**values)
    assert "\x1b" not in written and "\\u001b[2J" in written


@pytest.mark.parametrize(
    ("is_terminal", "formatter"), [(True, TerminalFormatter), (False, JsonFormatter)]
)
def test_logs_are_text_on_a_terminal_alone(
    is_terminal: bool, formatter: type, monkeypatch: pytest.MonkeyPatch
):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(logging, "_srcfile", logging._srcfile)
    for name in ("logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, getattr(logging, name))
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr("sys.stderr", stream)
    configure()
    (handler,) = root.handlers
    assert type(handler.formatter) is formatter
