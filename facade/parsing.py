"""Parsing of the bodies of requests to models, without blocking the event loop.

Parsing a body takes up to a second, in C calls that hold the GIL. A small body is parsed directly;
one that takes at most 20 ms, in a thread; a larger one in a separate process. Processes start on
demand and end after `IDLE_S` without work.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from facade.dialects import anthropic, gemini, openai, responses
from facade.dialects.interactions import FIELD_NAMES as INTERACTION_NAMES
from facade.dialects.interactions import parse_interaction
from facade.dialects.openai.forwarding import FORWARD_NAMES, parse_forwarded
from facade.dialects.parsed_request import ParsedRequest, StoredChat
from facade.dialects.paths import FieldNames, SourceMap
from facade.dialects.verbatim import VerbatimReader
from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest
from services.common.errors import GatewayError, unavailable
from services.common.messages.large_request import LargeRequest
from services.common.messages.lazy_request import LazyRequest
from services.common.process import allocator
from services.common.process.frames import read_frame, write_frame
from services.common.text.json_scan import exceeds, upper_bound

IDLE_S = 60.0

# Bounds of a body that is parsed within 20 ms: at most 0.35 µs per punctuation character and 5 ns
# per byte. The smallest bodies take 3 ms.
_SMALL = 128 << 10
_QUICK_BYTES = 3 << 20
_QUICK_VALUES = 20_000
# -P keeps the working directory out of the module search path.
_COMMAND = (sys.executable, "-P", "-m", "facade.parser_process")

Option = bool | str | list[str] | dict[str, str]
# Arguments of a format's parser beside the body, and the caller's `headers`, if any.
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BodyFormat:
    """The format of the bodies of an endpoint.

    Attributes:
        name: its name, by which a parser process finds it.
        dialect: the dialect, whose headers are forwarded.
        parse: parses the body in a list, from which it is removed so that its memory can be freed
            early, with the parser's options; the conversation may be translated later.
        field_names: names of the canonical request's fields in the bodies.
        function_names: the same for requests with functions in place of tools.
        reader: loads requests whose conversations are translated later, if there may be any.
        passes_streams: whether streams may be passed through, as whole answers may.
        message: the type of the canonical request, if it has no conversation.
    """

    name: str
    dialect: Dialect.ValueType
    parse: Callable[[list[bytes], Options], ParsedRequest]
    field_names: FieldNames
    function_names: FieldNames | None = None
    reader: VerbatimReader[Any, Any] | None = None
    passes_streams: bool = False
    message: type[EmbedRequest | ForwardRequest] | None = None


# The body is popped within the call of the parser, so that no frame keeps it.
def _parse_chat(held: list[bytes], _: Options) -> ParsedRequest:
    return openai.parse_chat(held.pop(), lazily=True)


def _parse_embeddings(held: list[bytes], _: Options) -> ParsedRequest:
    return openai.parse_embeddings(held.pop())


def _parse_forwarded(held: list[bytes], options: Options) -> ParsedRequest:
    return parse_forwarded(held.pop(), options["operation"])


def _parse_messages(held: list[bytes], options: Options) -> ParsedRequest:
    betas, coding = options["betas"], options["coding"]
    return anthropic.parse_messages(held.pop(), betas=betas, coding=coding, lazily=True)


def _parse_count_tokens(held: list[bytes], options: Options) -> ParsedRequest:
    betas, coding = options["betas"], options["coding"]
    return anthropic.parse_count_tokens(held.pop(), betas=betas, coding=coding)


def _parse_response(held: list[bytes], options: Options) -> ParsedRequest:
    keeps_items = options.get("keeps_items", False)
    return responses.parse_request(held.pop(), lazily=True, keeps_items=keeps_items)


def _parse_interaction(held: list[bytes], _: Options) -> ParsedRequest:
    return parse_interaction(held.pop())


def _parse_generate_content(held: list[bytes], options: Options) -> ParsedRequest:
    model, stream = options["model"], options["stream"]
    return gemini.parse_generate(held.pop(), model=model, stream=stream)


def _parse_count_content_tokens(held: list[bytes], options: Options) -> ParsedRequest:
    return gemini.parse_count_tokens(held.pop(), model=options["model"])


def _parse_embed_content(held: list[bytes], options: Options) -> ParsedRequest:
    return gemini.parse_embed(held.pop(), model=options["model"])


def _parse_batch_embed_contents(held: list[bytes], options: Options) -> ParsedRequest:
    return gemini.parse_batch_embed(held.pop(), model=options["model"])


CHAT: Final = BodyFormat(
    "chat",
    conversation_pb2.DIALECT_OPENAI,
    _parse_chat,
    openai.FIELD_NAMES,
    function_names=openai.FUNCTION_NAMES,
    reader=openai.CHAT_READER,
)
EMBEDDINGS: Final = BodyFormat(
    "embeddings",
    conversation_pb2.DIALECT_OPENAI,
    _parse_embeddings,
    openai.EMBEDDING_NAMES,
    message=EmbedRequest,
)
FORWARDED: Final = BodyFormat(
    "forwarded",
    conversation_pb2.DIALECT_OPENAI,
    _parse_forwarded,
    FORWARD_NAMES,
    message=ForwardRequest,
)
MESSAGES: Final = BodyFormat(
    "messages",
    conversation_pb2.DIALECT_ANTHROPIC,
    _parse_messages,
    anthropic.FIELD_NAMES,
    reader=anthropic.MESSAGES_READER,
)
COUNT_TOKENS: Final = BodyFormat(
    "count_tokens", conversation_pb2.DIALECT_ANTHROPIC, _parse_count_tokens, anthropic.FIELD_NAMES
)
RESPONSES: Final = BodyFormat(
    "responses",
    conversation_pb2.DIALECT_RESPONSES,
    _parse_response,
    responses.FIELD_NAMES,
    reader=responses.RESPONSE_READER,
    passes_streams=True,
)
INTERACTIONS: Final = BodyFormat(
    "interactions",
    conversation_pb2.DIALECT_RESPONSES,
    _parse_interaction,
    INTERACTION_NAMES,
    passes_streams=True,
)
_GEMINI = conversation_pb2.DIALECT_GEMINI
GENERATE_CONTENT: Final = BodyFormat(
    "generate_content", _GEMINI, _parse_generate_content, gemini.FIELD_NAMES
)
COUNT_CONTENT_TOKENS: Final = BodyFormat(
    "count_content_tokens", _GEMINI, _parse_count_content_tokens, gemini.FIELD_NAMES
)
EMBED_CONTENT: Final = BodyFormat(
    "embed_content",
    _GEMINI,
    _parse_embed_content,
    gemini.EMBEDDING_NAMES,
    message=EmbedRequest,
)
BATCH_EMBED_CONTENTS: Final = BodyFormat(
    "batch_embed_contents",
    _GEMINI,
    _parse_batch_embed_contents,
    gemini.EMBEDDING_NAMES,
    message=EmbedRequest,
)
FORMATS: Final[Mapping[str, BodyFormat]] = {
    each.name: each
    for each in (
        *(CHAT, EMBEDDINGS, FORWARDED, MESSAGES, COUNT_TOKENS, RESPONSES, GENERATE_CONTENT),
        *(COUNT_CONTENT_TOKENS, EMBED_CONTENT, BATCH_EMBED_CONTENTS, INTERACTIONS),
    )
}


def parse(
    body_format: BodyFormat, held: list[bytes], options: Options, max_values: int
) -> ParsedRequest:
    """Parse the body of a request.

    Args:
        body_format: the format of the endpoint's bodies.
        held: a list with the body, which is removed so that its memory can be freed early.
        options: options of the format's parser.
        max_values: maximum number of JSON values.

    Raises:
        GatewayError: too_large, more than `max_values` values; invalid, naming the field.
    """
    if len(held[0]) > max_values:
        check_values(held[0], max_values)
    parsed = body_format.parse(held, options)
    request = parsed.request
    if isinstance(request, LazyRequest):
        request = request.request
    if (not parsed.stream or body_format.passes_streams) and not parsed.calls_functions:
        request.takes_passthrough = True
    if "headers" in options:
        request.headers.update(options["headers"])
    return parsed


def check_values(body: bytes, limit: int) -> None:
    """Check the number of values in a JSON body before it is parsed.

    Raises:
        GatewayError: too_large.
    """
    if exceeds(body, limit):
        raise GatewayError(
            errors_pb2.REASON_TOO_LARGE,
            f"the body has more than {limit:,} JSON values",
            limit="limits.max_body_values",
        )


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
        """Parse the body of a request; see `parse`.

        Raises:
            GatewayError: too_large, invalid; unavailable, the process was killed.
        """
        size = len(held[0])
        if size <= _SMALL:
            return parse(body_format, held, options, self._max_values)
        if size <= _QUICK_BYTES:
            parsed = await asyncio.to_thread(
                _parse_if_quick, body_format, held, options, self._max_values
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
        if result["stored"] is not None:
            result["stored"] = StoredChat(*result["stored"])
        if result["state"] is not None:
            result["state"] = responses.ResponseState.load(result["state"])
        source_map = SourceMap.load(result.pop("source_map"))
        lazy = result.pop("lazy")
        request: LazyRequest | LargeRequest | EmbedRequest | ForwardRequest
        if lazy is not None:
            assert body_format.reader is not None, "it has read the request there"
            request = body_format.reader.load(lazy, parts, source_map)
        elif body_format.message is not None:
            request = body_format.message.FromString(b"".join(parts))
        else:
            request = LargeRequest(parts)
        return ParsedRequest(request, source_map=source_map, **result)

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
    body_format: BodyFormat, held: list[bytes], options: Options, max_values: int
) -> ParsedRequest | None:
    """Parse a body, unless it needs a process."""
    return parse(body_format, held, options, max_values) if is_quick(held[0]) else None


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
