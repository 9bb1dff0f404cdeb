"""A provider that costs next to nothing: every answer is ready before it is asked for.

    python -m tests.bench.upstream

The path tells the dialect (`…/chat/completions`, `…/messages`, `…/responses`, `…/embeddings`). A
model named `…-paced` streams an event a millisecond, `…-brief` the same with few events; any other
streams everything in one write.
"""

import asyncio
from collections.abc import Mapping
from typing import cast

import uvloop

from tests.bench import wire

_INTERVAL_S = 0.001
_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_END = b"0\r\n\r\n"
# The last part of the path of an endpoint.
_CHATS, _EMBEDDINGS = b"completions", b"embeddings"


def _chunk(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


class Answers:
    """The prepared answers of one dialect."""

    def __init__(self, dialect: wire.Dialect) -> None:
        body = wire.answer(dialect)
        self.whole = _JSON % len(body) + body
        self.paced = self._chunks(dialect, wire.EVENTS)
        self.brief = self._chunks(dialect, wire.BRIEF_EVENTS)
        self.burst = b"".join(self.paced)

    @staticmethod
    def _chunks(dialect: wire.Dialect, events: int) -> list[bytes]:
        first, *middle, last = map(_chunk, wire.stream(dialect, events))
        return [_STREAM + first, *middle, last + _END]


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests come one after the other."""

    def __init__(self, answers: Mapping[bytes, Answers], embeddings: bytes) -> None:
        self._answers = answers
        self._embeddings = embeddings
        self._received = bytearray()
        self._wanted = 0  # bytes of the request that is coming, once its head has come
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        while len(received) >= self._wanted:
            head_end = received.find(b"\r\n\r\n")
            if head_end < 0:
                return
            head = bytes(received[:head_end]).lower()
            at = head.index(b"content-length:") + len(b"content-length:")
            self._wanted = head_end + 4 + int(head[at:].split(b"\r\n", 1)[0])
            if len(received) < self._wanted:
                return
            body = bytes(received[head_end + 4 : self._wanted])
            del received[: self._wanted]
            self._wanted = 0
            path = head.split(b" ", 2)[1]
            endpoint = path.rpartition(b"/")[2]
            if endpoint == _EMBEDDINGS:
                self._transport.write(self._embeddings)
            else:
                self._answer(self._answers.get(endpoint, self._answers[_CHATS]), body)

    def _answer(self, answers: Answers, body: bytes) -> None:
        if b'"stream":true' not in body:
            self._transport.write(answers.whole)
        elif b'-paced"' in body:
            self._pace(answers.paced)
        elif b'-brief"' in body:
            self._pace(answers.brief)
        else:
            self._transport.write(answers.burst)

    def _pace(self, parts: list[bytes]) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()

        def send(index: int) -> None:
            self._transport.write(parts[index])
            if index + 1 < len(parts):
                at = started + (index + 1) * _INTERVAL_S
                self._timer = loop.call_at(at, send, index + 1)

        send(0)


async def main() -> None:
    """Serve on a free port, and say which."""
    answers = {
        _CHATS: Answers("openai"),
        b"messages": Answers("anthropic"),
        b"responses": Answers("responses"),
    }
    vectors = wire.embeddings_answer()
    embeddings = _JSON % len(vectors) + vectors
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answers, embeddings), "127.0.0.1", 0)
    print(f"upstream on port {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
