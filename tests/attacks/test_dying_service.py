"""A service that dies in the middle of an upload."""

import asyncio
import os
import signal
from contextlib import suppress

from tests.bench import processes
from tests.e2e.gateway import Gateway
from tests.waiting import until


def services_of(target: Gateway) -> list[int]:
    """Return the processes that serve the gateway's services."""
    family = processes.family(target.process.pid)
    return list(processes.of_modules(family, ["services"]).values())


async def test_an_upload_whose_service_dies_may_be_tried_again(target: Gateway) -> None:
    form = (
        b'--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    )
    head = (
        "POST /beta/v1/files HTTP/1.1\r\nhost: x\r\n"
        f"authorization: Bearer {target.key}\r\ntransfer-encoding: chunked\r\n"
        "content-type: multipart/form-data; boundary=b\r\nconnection: close\r\n\r\n"
    )
    block = b"x" * (1 << 18)
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)

    async def send(data: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()

    writer.write(head.encode())
    await send(form)
    for _ in range(8):
        await send(block)
    [service] = services_of(target)
    os.kill(service, signal.SIGKILL)
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
    await until(lambda: service not in services_of(target) and services_of(target))
