"""Run calls of gateway tools, with limits of time and size.

Failures never raise: they become results with one of Anthropic's error codes, which the model reads
like any other result.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    FileResults,
    SearchResult,
    SearchResults,
    ServerToolResult,
    ToolUse,
    WebPage,
)
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import WebTool
from services.common.errors import GatewayError
from services.common.process.telemetry.spans import Span, Telemetry
from services.common.process.telemetry.trace_context import current_trace
from services.common.text.texts import fit
from services.inference.metrics import InferenceMetrics
from services.inference.tools import file_search
from services.inference.tools.domains import domain_of, permits
from services.inference.tools.file_search import FileSearches
from services.inference.tools.offer import SEARCH, Available
from services.inference.tools.pages import Reads
from services.inference.tools.search import Searches

log = logging.getLogger(__name__)

# Seconds per call. Search and fetch have tighter timeouts of their own.
CALL_TIMEOUT_S = 30.0
MAX_QUERY = 1_000  # characters
MAX_URL = 2_048  # characters
_MAX_TITLE = 300  # bytes
_MAX_AGE = 100
# Maximum size in bytes of a search result, and of a page if the caller sets no limit.
_MAX_FINDING = 8_000
_MAX_PAGE = 100_000
_BYTES_A_TOKEN = 4
_RESULTS = 5
_MOST_RESULTS = 20

_T = TypeVar("_T")

# Anthropic's error codes for failures of a search, of a search of files, and of a fetch.
_SEARCH_CODES: dict[Reason.ValueType, str] = {
    errors_pb2.REASON_INVALID_REQUEST: "invalid_tool_input",
    errors_pb2.REASON_RATE_LIMITED: "too_many_requests",
    errors_pb2.REASON_UPSTREAM_RATE_LIMITED: "too_many_requests",
}
_FILE_CODES: dict[Reason.ValueType, str] = {
    errors_pb2.REASON_INVALID_REQUEST: "invalid_tool_input",
    errors_pb2.REASON_RATE_LIMITED: "too_many_requests",
}
_PAGE_CODES: dict[Reason.ValueType, str] = {
    errors_pb2.REASON_TOO_LARGE: "content_too_large",
    errors_pb2.REASON_UNSUPPORTED: "unsupported_content_type",
    errors_pb2.REASON_PERMISSION_DENIED: "url_not_allowed",
    errors_pb2.REASON_RATE_LIMITED: "too_many_requests",
    errors_pb2.REASON_UPSTREAM_RATE_LIMITED: "too_many_requests",
    errors_pb2.REASON_UNAVAILABLE: "unavailable",
    errors_pb2.REASON_INTERNAL: "unavailable",
}


class _RefusedError(Exception):
    """Error raised for a call without a result; its argument is the error code."""


class WebTools:
    """Runs the gateway's web tools.

    Args:
        searches: the search backend, or None.
        reads: reads pages, or None.
        metrics: counts calls.
        files: searches vector stores, or None.
        now: returns the current time.
        timeout_s: timeout of one call in seconds.
        telemetry: records a span for each call; None without a collector.

    Attributes:
        available: the tools that can run.
        files: see the argument.
    """

    def __init__(
        self,
        searches: Searches | None,
        reads: Reads | None,
        metrics: InferenceMetrics,
        *,
        files: FileSearches | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        timeout_s: float = CALL_TIMEOUT_S,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.available = Available(searches is not None, reads is not None, files is not None)
        self.files = files
        self._searches = searches
        self._reads = reads
        self._metrics = metrics
        self._now = now
        self._timeout_s = timeout_s
        self._telemetry = telemetry

    async def run(
        self, call: ToolUse, tool: WebTool, is_known: Callable[[str], bool]
    ) -> ServerToolResult:
        """Return the result of a call; raises only on cancellation.

        Args:
            call: the tool call.
            tool: the tool with its limits.
            is_known: returns whether a URL occurs in text that the model did not write.
        """
        result = ServerToolResult(tool_use_id=call.id, name=call.name)
        outcome = "cancelled"
        span = self._begin_span(call)
        try:
            if tool.kind == WebTool.KIND_FILES:
                result.files.CopyFrom(await self._search_files(call, tool))
            elif call.name == SEARCH:
                result.search.CopyFrom(await self._search(call, tool))
            else:
                result.page.CopyFrom(await self._fetch(call, tool, is_known))
            outcome = "served"
        except _RefusedError as refusal:
            result.error_code = outcome = refusal.args[0]
        finally:
            self._metrics.tool_calls.labels(call.name, outcome).inc()
            if span is not None:
                span.end({"gateway.outcome": outcome}, "" if outcome == "served" else outcome)
        return result

    def _begin_span(self, call: ToolUse) -> Span | None:
        if self._telemetry is None:
            return None
        return self._telemetry.begin(
            f"execute_tool {call.name}",
            "internal",
            current_trace.get(),
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.name,
                "gen_ai.tool.call.id": call.id,
            },
        )

    def refuse(self, call: ToolUse, code: str) -> ServerToolResult:
        """Return an error result for a call that is not run."""
        self._metrics.tool_calls.labels(call.name, code).inc()
        return ServerToolResult(tool_use_id=call.id, name=call.name, error_code=code)

    async def _search(self, call: ToolUse, tool: WebTool) -> SearchResults:
        query = _argument(call, "query")
        if len(query) > MAX_QUERY:
            raise _RefusedError("query_too_long")
        assert self._searches is not None, "it is not offered"
        count = min(tool.max_results or _RESULTS, _MOST_RESULTS)
        searching = self._searches.search(
            query,
            count=count,
            allowed_domains=tool.allowed_domains,
            blocked_domains=tool.blocked_domains,
        )
        search_results = await self._within_bounds(
            searching, _SEARCH_CODES, "unavailable", call.name
        )
        max_bytes = _MAX_FINDING
        if tool.HasField("max_content_tokens"):
            max_bytes = min(max_bytes, tool.max_content_tokens * _BYTES_A_TOKEN // count)
        results = [
            SearchResult(
                url=fit(search_result.url, MAX_URL),
                title=fit(search_result.title, _MAX_TITLE),
                text=fit(search_result.text, max_bytes),
                age=fit(search_result.age, _MAX_AGE),
            )
            for search_result in search_results
            if len(search_result.url) <= MAX_URL and _may_read(search_result.url, tool)
        ]
        return SearchResults(results=results[:count])

    async def _search_files(self, call: ToolUse, tool: WebTool) -> FileResults:
        queries = file_search.queries_of(call.input)
        if not queries:
            raise _RefusedError("invalid_tool_input")
        if any(len(query) > MAX_QUERY for query in queries):
            raise _RefusedError("query_too_long")
        assert self.files is not None, "it is not offered"
        searching = file_search.search(self.files, tool, queries)
        return await self._within_bounds(searching, _FILE_CODES, "unavailable", call.name)

    async def _fetch(
        self, call: ToolUse, tool: WebTool, is_known: Callable[[str], bool]
    ) -> WebPage:
        url = _argument(call, "url").strip()
        if len(url) > MAX_URL:
            raise _RefusedError("url_too_long")
        if not _may_read(url, tool):
            raise _RefusedError("url_not_allowed")
        # Prevents exfiltration: a page could make the model put secrets into a URL.
        if not is_known(url.partition("#")[0].rstrip("/")):
            raise _RefusedError("url_not_in_prior_context")
        assert self._reads is not None, "it is not offered"
        max_characters = _MAX_PAGE
        if tool.HasField("max_content_tokens"):
            max_characters = min(max_characters, tool.max_content_tokens * _BYTES_A_TOKEN)
        reading = self._reads.read(
            url,
            max_characters=max_characters,
            allowed_domains=tool.allowed_domains,
            blocked_domains=tool.blocked_domains,
        )
        page = await self._within_bounds(reading, _PAGE_CODES, "url_not_accessible", call.name)
        # Redirects may lead to other domains.
        if not _may_read(page.url, tool):
            raise _RefusedError("url_not_allowed")
        text = fit(page.text, max_characters)
        return WebPage(
            url=fit(page.url, MAX_URL),
            title=fit(page.title, _MAX_TITLE),
            text=text,
            is_cut=page.is_cut or text != page.text,
            media_type=fit(page.mime_type, _MAX_AGE),
            retrieved_at=self._now().isoformat(timespec="seconds"),
        )

    async def _within_bounds(
        self, work: Awaitable[_T], codes: dict[Reason.ValueType, str], otherwise: str, name: str
    ) -> _T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await work
        except TimeoutError:
            log.warning("a tool exceeded its time limit", extra={"tool": name})
            raise _RefusedError("unavailable") from None
        except GatewayError as error:
            log.info("a tool failed", extra={"tool": name, "reason": error.code})
            raise _RefusedError(codes.get(error.reason, otherwise)) from None
        except Exception:
            log.exception("unforeseen failure of a tool", extra={"tool": name})
            raise _RefusedError("unavailable") from None


def _may_read(url: str, tool: WebTool) -> bool:
    allowed = [domain_of(rule) for rule in tool.allowed_domains]
    blocked = [domain_of(rule) for rule in tool.blocked_domains]
    return url.lower().startswith(("http://", "https://")) and permits(url, allowed, blocked)


def _argument(call: ToolUse, name: str) -> str:
    """Return a string argument of a call."""
    try:
        arguments = orjson.loads(call.input)
    except orjson.JSONDecodeError:
        arguments = None
    value = arguments.get(name) if isinstance(arguments, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise _RefusedError("invalid_tool_input")
    return value
