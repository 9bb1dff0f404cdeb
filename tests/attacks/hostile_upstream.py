"""A provider that sends what no provider should, in a process of its own.

`python -m tests.attacks.hostile_upstream` listens on a free port, writes it on a line, and
serves until its standard input ends. Which of `SCRIPTS` a request is answered with is the
name of the model that it asks for.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.e2e.processes import PYTHON, ROOT

Script = Callable[[], AsyncIterator[bytes]]

_SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n\r\n"
_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
_BLOCK = 1 << 16
_IN_PATH = re.compile(rb"/models/([^:/ ]+):")


def chunk(delta: Any, **fields: Any) -> bytes:
    """Return an event of a chat completion."""
    choice = {"index": 0, "delta": delta, **fields}
    return b"data: %s\n\n" % json.dumps({"id": "a", "model": "m", "choices": [choice]}).encode()


def event(kind: str, **fields: Any) -> bytes:
    """Return an event of a message."""
    return b"event: %s\ndata: %s\n\n" % (
        kind.encode(),
        json.dumps({"type": kind, **fields}).encode(),
    )


def once(*pieces: bytes) -> Script:
    """Send pieces, then end."""

    async def script() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return script


def forever(head: bytes, *pieces: bytes) -> Script:
    """Send a head, then pieces over and over."""
    block = b"".join(pieces)
    block *= 1 + _BLOCK // len(block)

    async def script() -> AsyncIterator[bytes]:
        yield head
        while True:
            yield block

    return script


def numbered(head: bytes, piece: Callable[[int], bytes], at_once: int = 500) -> Script:
    """Send a head, then pieces that each have another number."""

    async def script() -> AsyncIterator[bytes]:
        yield head
        number = 0
        while True:
            yield b"".join(map(piece, range(number, number + at_once)))
            number += at_once

    return script


def _call(number: int) -> bytes:
    function = {"name": "f", "arguments": "{}"}
    return chunk({"tool_calls": [{"index": number, "id": f"c{number}", "function": function}]})


_MESSAGE_START = event(
    "message_start", message={"id": "m", "model": "m", "usage": {"input_tokens": 1}}
)


def _text_block(number: int) -> bytes:
    start = {"type": "text", "text": "a"}
    return event("content_block_start", index=number, content_block=start)


def _grown_usage(number: int) -> bytes:
    return event("message_delta", delta={}, usage={f"kind_{number}": "x" * 200})


def _gemini(*parts: Any) -> bytes:
    content = {"candidates": [{"content": {"parts": list(parts)}, "index": 0}]}
    return b"data: %s\n\n" % json.dumps(content).encode()


def _response_event(kind: str, number: int, **fields: Any) -> bytes:
    return event(f"response.{kind}", sequence_number=number, **fields)


_CREATED = _response_event(
    "created",
    0,
    response={"id": "resp_1", "object": "response", "status": "in_progress", "model": "m"},
)


def _item(number: int) -> bytes:
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}
    place = {"output_index": number, "item": item}
    return _response_event("output_item.added", 2 * number + 1, **place) + _response_event(
        "output_item.done", 2 * number + 2, **place
    )


SCRIPTS: dict[str, Script] = {
    # Of chat completions.
    "far-choice": once(
        _SSE, chunk({"content": "a"}).replace(b'"index": 0', b'"index": 2147483648')
    ),
    "next-choice": once(_SSE, chunk({"content": "a"}).replace(b'"index": 0', b'"index": 1000000')),
    "text": forever(_SSE, chunk({"content": "ab"})),
    "other-text": numbered(
        _SSE,
        lambda number: b'data: {"id":"%d","choices":[{"delta":{"content":"ab"}}]}\n\n' % number,
    ),
    "thoughts": numbered(
        _SSE,
        lambda number: b'data: {"id":"%d","choices":[{"delta":{"reasoning":"ab"}}]}\n\n' % number,
    ),
    "nothing": forever(_SSE, chunk({})),
    "usage": forever(_SSE, b'data: {"usage":{"prompt_tokens":1}}\n\n'),
    "comments": forever(_SSE, b":\n\n"),
    "blank-lines": forever(_SSE, b"\n"),
    "fields": forever(_SSE, b"id\n\n"),
    "one-line": forever(_SSE + b"data: ", b"x"),
    "calls": numbered(_SSE, _call),
    "kinds": forever(_SSE, chunk({"content": "a"}), chunk({"reasoning": "b"})),
    "half-call": forever(
        _SSE
        + chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]})
        + chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}),
        chunk({"content": "a"}, logprobs={"a": 1}),
    ),
    "long-head": once(
        _SSE,
        b'data: {"id":"a","x":"%b","choices":[{"delta":{"content":"a"}}]}\n\n' % (b"y" * 1_000_000),
        *[b'data: {"choices":[{"delta":{"content":"ab"}}]}\n\n' * 5000] * 5,
        chunk({}, finish_reason="stop"),
        b"data: [DONE]\n\n",
    ),
    # Of messages.
    "blocks": numbered(_SSE + _MESSAGE_START, _text_block),
    "grown-usage": numbered(_SSE + _MESSAGE_START, _grown_usage),
    "deltas": forever(
        _SSE
        + _MESSAGE_START
        + event("content_block_start", index=0, content_block={"type": "text", "text": "a"}),
        event("content_block_delta", index=0, delta={"type": "x", "a": [{}, {}]}),
    ),
    # Of Gemini's API.
    "gemini-text": forever(_SSE, _gemini({"text": "ab"})),
    "gemini-parts": numbered(
        _SSE, lambda number: _gemini({"functionCall": {"name": f"f{number}", "args": {}}})
    ),
    "gemini-line": forever(_SSE + b'data: {"candidates":[{"content":{"parts":[{"text":"', b"x"),
    # Of responses.
    "response-text": numbered(
        _SSE + _CREATED,
        lambda number: _response_event(
            "output_text.delta", number + 1, output_index=0, content_index=0, delta="ab"
        ),
    ),
    "response-items": numbered(_SSE + _CREATED, _item),
    "response-others": numbered(
        _SSE + _CREATED, lambda number: _response_event(f"other_{number}", number + 1, a=[{}])
    ),
    # Of all.
    "whole": forever(_JSON + b'{"a":"', b"x"),
    "values": once(_JSON, b'{"choices":[', *[b"[]," * 100_000] * 10, b"[]]}"),
    # What could be passed on as it is, but for a field with too many values.
    "passed-values": once(
        _JSON,
        b'{"id":"chatcmpl-a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
        b'"message":{"role":"assistant","content":"a","refusal":null},"logprobs":null,'
        b'"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},'
        b'"x":[',
        *[b"[]," * 100_000] * 10,
        b"[]]}",
    ),
    "head": forever(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
    "interim": forever(b"", b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n"),
    "trailers": forever(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
    "byte-chunks": forever(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        b"1\r\n:\r\n",
    ),
    "switch": once(b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello"),
    "gzip": once(b"HTTP/1.1 200 S\r\ncontent-encoding: gzip\r\n\r\n", b"hello"),
    "code": once(_JSON, b'{"error":{"message":"m","code":"05000000000"}}'),
    "retry-after": once(
        b"HTTP/1.1 503 S\r\nretry-after: Mon, 01 Jan 99999 00:00:00 GMT\r\n"
        b"content-length: 2\r\n\r\n{}"
    ),
    "second-choice": once(_JSON, b'{"choices":[{"index":1,"message":{"content":"a"}}]}'),
    "list-for-type": once(_SSE, _MESSAGE_START, b'data: {"type":[]}\n\n'),
}


_NO_MODEL = once(_NOT_FOUND, b'{"error":{"message":"no such model"}}')


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # Lists of models are asked for in the background, without a body.
    with suppress(ConnectionError, asyncio.IncompleteReadError, json.JSONDecodeError):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        named = _IN_PATH.search(head)  # as of Gemini's API
        name = named[1].decode() if named else body["model"]
        # A caller may name further models.
        async for piece in SCRIPTS.get(name, _NO_MODEL)():
            writer.write(piece)
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until standard input ends."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


@contextmanager
def hostile_upstream() -> Iterator[int]:
    """Run it; give its port."""
    with subprocess.Popen(
        # On a machine of its own it would take no processor time from the gateway.
        ["nice", "-n", "19", PYTHON, "-m", "tests.attacks.hostile_upstream"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


if __name__ == "__main__":
    asyncio.run(main())
