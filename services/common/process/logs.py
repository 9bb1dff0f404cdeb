"""Structured logs: one JSON object per line on standard error.

Every line of a request has the request's id. Bodies and keys are never logged; of providers'
responses, only error messages are. The fields of a line are chosen by the code that logs it; this
module truncates their values.
"""

import json
import logging
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

# Number of standard attributes of a record; the `extra` fields come after them.
_STANDARD = len(logging.makeLogRecord({}).__dict__)
# Attributes after the standard ones that do not come from `extra`.
_DERIVED = frozenset({"message", "asctime", "taskName"})


class JsonFormatter(logging.Formatter):
    """Formats a record, its `extra` fields and its traceback as one JSON object."""

    def __init__(self) -> None:
        super().__init__()
        self._second = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
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
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:
            # A lone surrogate, which has no UTF-8 encoding: written as an escape.
            return json.dumps(line, default=str)

    def _time(self, second: int) -> str:
        if second != self._second[0]:
            local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(second))
            self._second = second, local
        return self._second[1]


def configure(level: str = "INFO") -> None:
    """Send every log line of this process to standard error as JSON.

    Unused attributes of records are not determined: the source location, thread, process and task.
    They are most of the cost of a record.
    """
    logging._srcfile = None  # as documented in the manual of `logging`
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
