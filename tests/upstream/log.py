"""Log of the requests that the upstream has received, and the paths that show it."""

import asyncio
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson
from aiohttp import web

from services.sandbox.handlers import Handler

_CREDENTIALS = frozenset(
    {"authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"}
    | {"x-amz-security-token"}
)

_LOG_PATH, _LIVE_PATH = "/sandbox/log", "/sandbox/live"
_OPENAI_PATHS = ("/chat/completions", "/responses", "/embeddings", "/transcriptions")


@dataclass(slots=True)
class Entry:
    """A logged request.

    Attributes:
        path: the URL path.
        dialect: `openai`, `responses`, `anthropic`, `gemini` or `bedrock`.
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
    """Gauges of the upstream: open requests, and requests aborted by their clients."""

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


def add_log(app: web.Application, log: RequestLog) -> None:
    """Log the requests of an application, and show the log below `/sandbox`."""

    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in (_LOG_PATH, _LIVE_PATH):
            return await handler(request)
        entry = log.add(request.path, _dialect_of(request), request.headers.items())
        with _counted(log.live):
            # Unknown paths have `path`: a gateway looks there which API a server has.
            if request.method == "POST" and "path" not in request.match_info:
                await _keep_body(log, entry, request)
            response = await handler(request)
        entry.status = response.status
        return response

    async def show(request: web.Request) -> web.StreamResponse:
        return _json(log.as_json())

    async def clear(request: web.Request) -> web.StreamResponse:
        log.clear()
        return web.Response(status=204)

    async def show_live(request: web.Request) -> web.StreamResponse:
        return _json(asdict(log.live))

    app.middlewares.append(keep)
    app.router.add_get(_LOG_PATH, show)
    app.router.add_delete(_LOG_PATH, clear)
    app.router.add_get(_LIVE_PATH, show_live)


def _dialect_of(request: web.Request) -> str:
    path = request.path
    if path.startswith("/v1beta/") or "/publishers/google/" in path:
        return "gemini"
    if "/publishers/anthropic/" in path:
        return "anthropic"
    if path.startswith("/model/"):
        return "anthropic" if "/invoke" in path else "bedrock"
    if "anthropic-version" in request.headers and not path.endswith(_OPENAI_PATHS):
        return "anthropic"
    return "responses" if path.endswith("/responses") else "openai"


@contextmanager
def _counted(live: Live) -> Iterator[None]:
    live.open += 1
    try:
        yield
    except (asyncio.CancelledError, ConnectionResetError):
        live.aborted += 1
        raise
    finally:
        live.open -= 1


async def _keep_body(log: RequestLog, entry: Entry, request: web.Request) -> None:
    """Log a JSON body, or the fields of a form; the request keeps both for its handler."""
    if request.content_type == "multipart/form-data":
        fields: dict[str, Any] = dict(await request.post())
        for name, value in fields.items():
            if isinstance(value, web.FileField):
                size = value.file.seek(0, os.SEEK_END)
                value.file.seek(0)
                fields[name] = {
                    "filename": value.filename,
                    "type": value.content_type,
                    "bytes": size,
                }
        log.keep_body(entry, fields, 0)
        return
    data = await request.read()
    with suppress(orjson.JSONDecodeError):
        log.keep_body(entry, orjson.loads(data), len(data))


def _json(value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
