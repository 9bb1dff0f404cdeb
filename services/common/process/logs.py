"""Structured logs on standard error: one JSON object per line, or text on a terminal.

Every line of a request has the request's id. Bodies and keys are never logged; of providers'
responses, only error messages are. The fields of a line are chosen by the code that logs it; this
module truncates their values.
"""

import json
import logging
import re
import sys
import time
from contextvars import ContextVar
from itertools import islice

import orjson

from services.common.process.telemetry.trace_context import current_trace
from services.common.text.texts import cut

# Characters of a value and of a traceback: both may contain texts of callers.
_MAX_VALUE = 2_000
_MAX_TRACE = 16_000

request_id: ContextVar[str] = ContextVar("request_id", default="")

# A value that is readable without quotation marks.
_WORD = re.compile(r"[\w./:@+-]+", re.ASCII)
# Number of standard attributes of a record; the `extra` fields come after them.
_STANDARD = len(logging.makeLogRecord({}).__dict__)
# Attributes after the standard ones that do not come from `extra`.
_DERIVED = frozenset({"message", "asctime", "taskName"})


class _FieldsFormatter(logging.Formatter):
    """Collects the fields of a record: what it says, its request, its `extra` fields."""

    def __init__(self) -> None:
        super().__init__()
        self._second = (0, "")

    def fields(self, record: logging.LogRecord) -> dict[str, object]:
        """Return the fields of a record, with its traceback as `trace`."""
        line: dict[str, object] = {
            "time": self._time(int(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": cut(record.getMessage(), _MAX_VALUE),
        }
        if current := request_id.get():
            line["request_id"] = current
        if (trace := current_trace.get()) is not None:
            line["trace_id"], line["span_id"] = trace.trace_id, trace.span_id
        for key, value in islice(record.__dict__.items(), _STANDARD, None):
            if key not in _DERIVED:
                line[key] = cut(value, _MAX_VALUE) if isinstance(value, str) else value
        if record.exc_info:
            line["trace"] = cut(self.formatException(record.exc_info), _MAX_TRACE)
        return line

    def _time(self, second: int) -> str:
        if second != self._second[0]:
            local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(second))
            self._second = second, local
        return self._second[1]


class JsonFormatter(_FieldsFormatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = self.fields(record)
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:
            # A lone surrogate, which has no UTF-8 encoding: written as an escape.
            return json.dumps(line, default=str)


class TerminalFormatter(_FieldsFormatter):
    """Formats a record for a person: time, level and message, then its other fields.

    Values that callers or providers may have written are quoted as JSON with escapes, so that none
    controls the terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows it."""
        line = self.fields(record)
        time, level, message = (str(line.pop(key)) for key in ("time", "level", "message"))
        trace = str(line.pop("trace", ""))
        del line["logger"]
        parts = [time.partition("T")[2], level.upper().ljust(7), _printable(message)]
        parts += [f"{key}={_quoted(value)}" for key, value in line.items()]
        rows = [" ".join(parts), *(f"    {_printable(row)}" for row in trace.splitlines())]
        return "\n".join(rows)


def _quoted(value: object) -> str:
    """Return a value as JSON; a word without its quotation marks."""
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    return json.dumps(value, default=str)


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text, ensure_ascii=True)[1:-1]


def configure(level: str = "INFO") -> None:
    """Send every log line of this process to standard error: text on a terminal, JSON elsewhere.

    Unused attributes of records are not determined: the source location, thread, process and task.
    They are most of the cost of a record.
    """
    logging._srcfile = None  # as documented in the manual of `logging`
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TerminalFormatter() if sys.stderr.isatty() else JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
