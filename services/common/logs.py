"""Structured logs: one JSON object a line on standard error.

Every line of a request carries its id. Bodies, keys and texts of providers are
never logged; what a line holds is named where it is written.
"""

import logging
import sys
from contextvars import ContextVar

import orjson

request_id: ContextVar[str] = ContextVar("request_id", default="")

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a record, its `extra` fields and its trace as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        line: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        for key, value in record.__dict__.items():
            if key not in _STANDARD:
                line[key] = value
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def configure(level: str = "INFO") -> None:
    """Send every log line of this process to standard error as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
