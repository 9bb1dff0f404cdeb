"""Log of the requests that the sandbox has received, for tests."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_CREDENTIALS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"}
)


@dataclass(slots=True)
class Entry:
    """A logged request.

    Attributes:
        path: the URL path.
        dialect: `openai`, `responses`, `anthropic` or `gemini`.
        headers: names in lower case, credentials redacted.
        body: the JSON body; None if it is not JSON or too large to keep.
        status: the HTTP status of the response; None before it.
    """

    path: str
    dialect: str
    headers: dict[str, str]
    body: Any = None
    status: int | None = None


@dataclass(slots=True)
class Live:
    """Gauges of the sandbox: open requests, and requests aborted by their clients."""

    open: int = 0
    aborted: int = 0


@dataclass(slots=True)
class RequestLog:
    """The latest requests; older ones and large bodies are discarded.

    Attributes:
        entries: oldest first.
        live: gauges, which `clear` does not reset.
    """

    max_entries: int = 500
    max_body_bytes: int = 1 << 20
    entries: deque[Entry] = field(init=False)
    live: Live = field(default_factory=Live)

    def __post_init__(self) -> None:
        self.entries = deque(maxlen=self.max_entries)

    def add(self, path: str, dialect: str, headers: Iterable[tuple[str, str]]) -> Entry:
        """Append an entry."""
        kept = {name.lower(): _without_credential(name, value) for name, value in headers}
        entry = Entry(path, dialect, kept)
        self.entries.append(entry)
        return entry

    def keep_body(self, entry: Entry, body: Any, size: int) -> None:
        """Add a body of `size` bytes to an entry, unless it is too large."""
        if size <= self.max_body_bytes:
            entry.body = body

    def clear(self) -> None:
        """Discard all entries."""
        self.entries.clear()

    def as_json(self) -> list[dict[str, Any]]:
        """Return the entries, oldest first."""
        return [
            {name: getattr(entry, name) for name in Entry.__dataclass_fields__}
            for entry in self.entries
        ]


def _without_credential(name: str, value: str) -> str:
    if name.lower() not in _CREDENTIALS:
        return value
    scheme, space, _ = value.partition(" ")
    return f"{scheme} [redacted]" if space and scheme.lower() == "bearer" else "[redacted]"
