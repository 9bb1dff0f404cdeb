"""Services on a host of their own that die in the middle of an upload."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, gateway_apart

NOBODY = 9  # a port on which no provider listens


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Gateway]:
    with gateway_apart(tmp_path, NOBODY) as started:
        yield started


async def test_an_upload_whose_service_dies_may_be_tried_again(apart: Gateway) -> None:
    form = (
        b'--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    )
    head = (
        "POST /beta/v1/files HTTP/1.1\r\nhost: x\r\n"
        f"authorization: Bearer {apart.key}\r\ntransfer-encoding: chunked\r\n"
        "content-type: multipart/form-data; boundary=b\r\nconnection: close\r\n\r\n"
    )
    block = b"x" * (1 << 18)
    reader, writer = await asyncio.open_connection("127.0.0.1", apart.port)

    async def send(data: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()

    writer.write(head.encode())
    await send(form)
    for _ in range(8):
        await send(block)
    assert apart.services is not None
    os.kill(apart.services.pid, signal.SIGKILL)
    answering = asyncio.create_task(reader.readuntil(b"}}"))
    with suppress(ConnectionError):  # of a gateway that has answered, and reads no more
        while not answering.done():
            await send(block)
            await asyncio.sleep(0)  # the caller goes on until it is answered
    await asyncio.wait([answering])
    answer = answering.result()
    writer.close()
    assert answer.startswith((b"HTTP/1.1 502 ", b"HTTP/1.1 503 ")), answer
    assert b'"error"' in answer
