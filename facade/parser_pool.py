"""A parser for request bodies that does not block the event loop.

Parsing a body takes up to a second, in C calls that hold the GIL. A small body is parsed directly;
one that takes at most 20 ms, in a thread; a larger one in a separate process. Processes start on
demand and end after `IDLE_S` without work.
"""

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from facade.dialects import responses
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import SourceMap
from facade.parsing import EMBEDDINGS, BodyFormat, Option, Options, parse
from gateway.inference.v1.inference_pb2 import EmbedRequest
from services.common.errors import GatewayError, unavailable
from services.common.messages import lazy_request
from services.common.messages.large_request import LargeRequest
from services.common.process import allocator
from services.common.process.frames import read_frame, write_frame
from services.common.text.json_scan import upper_bound

IDLE_S = 60.0

# Bounds of a body that is parsed within 20 ms: at most 0.35 µs per punctuation character and 5 ns
# per byte. The smallest bodies take 3 ms.
_SMALL = 128 << 10
_QUICK_BYTES = 3 << 20
_QUICK_VALUES = 20_000
# -P keeps the working directory out of the module search path.
_COMMAND = (sys.executable, "-P", "-m", "facade.parser_process")


class ParserPool:
    """Parses bodies: small ones directly, the largest in at most `most` processes."""

    def __init__(self, most: int, max_values: int) -> None:
        """Create a pool without processes; a body has at most `max_values` values."""
        self._max_values = max_values
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="parse")
        # Idle processes; a process that is parsing is not ended.
        self._idle: list[subprocess.Popen[bytes]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def parse(
        self, body_format: BodyFormat, held: list[bytes], **options: Option
    ) -> ParsedRequest:
        """Parse the body of a request; see `facade.parsing.parse`.

        Raises:
            GatewayError: too_large, invalid; unavailable, the process was killed.
        """
        size = len(held[0])
        lazily = size <= lazy_request.MAX_BODY
        if size <= _SMALL:
            return parse(body_format, held, options, self._max_values, lazily=lazily)
        if size <= _QUICK_BYTES:
            parsed = await asyncio.to_thread(
                _parse_if_quick, body_format, held, options, self._max_values, lazily
            )
            if parsed is not None:
                return parsed
        try:
            return await self._loop.run_in_executor(
                self._threads, self._parse_apart, body_format, held, options
            )
        finally:
            self._end_later()

    def expect(self, size: int) -> None:
        """Start a process for a body of `size` bytes that is being received."""
        if size > _QUICK_BYTES and not self._idle:
            self._loop.run_in_executor(self._threads, self._start)
            self._end_later()

    async def close(self) -> None:
        """Stop the processes, after the bodies that are being parsed."""
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._end_idle()

    def _start(self) -> None:
        if not self._idle:
            self._idle.append(_start_process())

    def _parse_apart(
        self, body_format: BodyFormat, held: list[bytes], options: Options
    ) -> ParsedRequest:
        process = self._idle_or_new_process()
        assert process.stdin is not None and process.stdout is not None
        head = {"format": body_format.name, "options": options, "max_values": self._max_values}
        try:
            write_frame(process.stdin, head, held.pop())
            result, _ = read_frame(process.stdout)
            parts = [read_frame(process.stdout)[1] for _ in range(result.pop("parts", 0))]
        except (EOFError, OSError):
            process.kill()
            _end(process)
            raise unavailable(
                "the request could not be parsed because of a temporary failure; try again"
            ) from None
        self._idle.append(process)
        if "failed" in result:
            raise RuntimeError(f"a body could not be parsed:\n{result['failed']}")
        if "refused" in result:
            raise GatewayError(**result["refused"])
        if result["state"] is not None:
            result["state"] = responses.ResponseState.load(result["state"])
        request: LargeRequest | EmbedRequest = LargeRequest(parts)
        if body_format is EMBEDDINGS:
            request = EmbedRequest.FromString(b"".join(parts))
        return ParsedRequest(
            request, **{**result, "source_map": SourceMap.load(result["source_map"])}
        )

    def _idle_or_new_process(self) -> "subprocess.Popen[bytes]":
        while self._idle:
            process = self._idle.pop()
            if process.poll() is None:
                return process
            _end(process)
        return _start_process()

    def _end_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(IDLE_S, self._threads.submit, self._end_idle)

    def _end_idle(self) -> None:
        while self._idle:
            _end(self._idle.pop())


def _parse_if_quick(
    body_format: BodyFormat, held: list[bytes], options: Options, max_values: int, lazily: bool
) -> ParsedRequest | None:
    """Parse a body, unless it needs a process."""
    return (
        parse(body_format, held, options, max_values, lazily=lazily) if is_quick(held[0]) else None
    )


def is_quick(body: bytes) -> bool:
    """Return whether a body is fast enough to parse without a process."""
    size = len(body)
    return size <= _SMALL or (size <= _QUICK_BYTES and upper_bound(body) <= _QUICK_VALUES)


def _start_process() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **allocator.ENVIRONMENT},
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Close the pipes of a process, which makes it exit, and wait for it."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                pass  # bytes that the process no longer reads
    process.wait()
