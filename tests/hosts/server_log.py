"""The durations of statements in the log of a PostgreSQL server."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Each statement is logged with its duration: its parsing, its binding and its execution apart.
LOG_ALL = (
    "ALTER SYSTEM SET log_min_duration_statement = 0",
    "ALTER SYSTEM SET log_parameter_max_length = 0",
    "SELECT pg_reload_conf()",
)
_DURATION = re.compile(r"duration: ([0-9.]+) ms  \w+(?: [^:]{0,80})?: (.{0,90})")


class ServerLog:
    """Sums of what a server has logged.

    Args:
        path: the file.

    Attributes:
        milliseconds: the time of all statements until now.
        by_statement: the same by the beginning of the statement.
        counts: how often each was executed, bound or parsed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.milliseconds = 0.0
        self.by_statement: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def read(self) -> None:
        """Add what has been logged since the last call."""
        with self._path.open(errors="replace") as log:
            log.seek(self._offset)
            for line in log:
                if found := _DURATION.search(line):
                    ms, statement = float(found[1]), found[2]
                    self.milliseconds += ms
                    self.by_statement[statement] += ms
                    self.counts[statement] += 1
            self._offset = log.tell()

    @contextmanager
    def printing(self, most: int = 14) -> Iterator[None]:
        """Print which statements took most time meanwhile."""
        ms, counts = self.by_statement.copy(), self.counts.copy()
        yield
        for statement, taken in (self.by_statement - ms).most_common(most):
            count = self.counts[statement] - counts[statement]
            print(f"{taken:10,.1f} ms {count:7,} times  {statement}")
