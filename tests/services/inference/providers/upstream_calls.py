"""Calls of an upstream, and how tests read its streams and failures."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import UpstreamError
from services.inference.providers.upstream import Upstream


class TextEvent(bytes):
    """An event that is its text, which is content."""

    def WhichOneof(self, oneof: str) -> str:
        return "text"


class TextReader:
    """A reader whose events are the texts that come; one that holds "last" ends the stream."""

    def __init__(
        self, *, has_content: bool = False, is_complete: bool = False, ended: bool = False
    ) -> None:
        self.has_content = has_content
        self.is_complete = is_complete
        self.ended = ended

    def feed(self, text: bytes, out: list[Any]) -> None:
        out.append(TextEvent(text))
        if matches := re.findall(rb"data: (.*)\n\n", text):
            self.has_content = self.has_content or matches != [b"role"]
            self.ended = self.ended or matches[-1] == b"last"

    def read_whole(self, answer: dict[str, Any], out: list[Any]) -> None:
        out.append(answer)

    def end(self, out: list[Any]) -> None:
        pass


def texts_of(upstream: Upstream, reader: TextReader | None = None) -> AsyncGenerator[Any, None]:
    """Return the texts of the reads of a stream."""
    return upstream.stream("/x", lambda: b"{}", reader=reader or TextReader())


async def streamed(upstream: Upstream) -> list[list[bytes]]:
    """Return what events hold, those of a read together; one that holds "last" is the last."""
    batches: list[list[bytes]] = []
    async with aclosing(texts_of(upstream)) as texts:
        async for (text,) in texts:
            if matches := re.findall(rb"data: (.*)\n\n", text):
                batches.append(matches)
    return batches


async def failure(upstream: Upstream, *, stream: bool) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        await (streamed(upstream) if stream else upstream.post("/x", b"{}"))
    assert "127.0.0.1" not in raised.value.message
    assert "secret" not in raised.value.message
    return raised.value


def reason_of(error: UpstreamError) -> str:
    return Reason.Name(error.reason).removeprefix("REASON_")
