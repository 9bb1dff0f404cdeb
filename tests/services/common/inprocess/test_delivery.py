"""Delivery of responses to a receiver, whoever carries them."""

import asyncio
from typing import Any

import grpc
import pytest

from services.common.inprocess.delivery import deliver
from tests.services.common.inprocess.carriers import served, soon


class Receiver:
    """Keeps messages; waits after each for `allowed`, if there is one."""

    def __init__(self, allowed: asyncio.Event | None = None) -> None:
        self.messages: list[bytes] = []
        self.allowed = allowed
        self.has_some = asyncio.Event()

    def receive(self, message: bytes) -> bool:
        self.messages.append(message)
        self.has_some.set()
        return self.allowed is not None

    async def drain(self) -> None:
        assert self.allowed is not None
        await self.allowed.wait()


class FailingReceiver(Receiver):
    """Fails at the second message, or while it drains."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at

    def receive(self, message: bytes) -> bool:
        super().receive(message)
        if self._at == "receive" and len(self.messages) == 2:
            raise ConnectionError
        return self._at == "drain"

    async def drain(self) -> None:
        raise ConnectionError


async def test_a_receiver_gets_all_messages_in_order(carrier):
    async def down(request, context):
        for number in range(1000):
            yield b"%d" % number

    receiver = Receiver()
    async with served(carrier, down=down) as at:
        call = at.down(b"")
        await soon(deliver(call, receiver))
        assert receiver.messages == [b"%d" % number for number in range(1000)]
        assert await soon(call.code()) is grpc.StatusCode.OK


async def test_messages_sent_before_the_delivery_come_first(carrier):
    async def down(request, context):
        yield b"a"
        yield b"b"

    receiver = Receiver()
    async with served(carrier, down=down) as at:
        call = at.down(b"")
        await soon(call.initial_metadata())
        await asyncio.sleep(0)
        await soon(deliver(call, receiver))
    assert receiver.messages == [b"a", b"b"]


async def test_what_came_before_a_failure_is_delivered(carrier):
    async def down(request, context):
        yield b"a"
        await context.abort(grpc.StatusCode.DATA_LOSS, "torn")

    receiver = Receiver()
    async with served(carrier, down=down) as at:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await soon(deliver(at.down(b""), receiver))
    assert failed.value.code() is grpc.StatusCode.DATA_LOSS
    assert receiver.messages == [b"a"]


async def test_a_servicer_waits_for_a_slow_receiver(carrier):
    sent: list[int] = []

    async def down(request, context):
        for number in range(100):
            sent.append(number)
            yield bytes(1 << 19)

    receiver = Receiver(asyncio.Event())
    async with served(carrier, down=down) as at:
        delivery = asyncio.create_task(deliver(at.down(b""), receiver))
        await soon(receiver.has_some.wait())
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(sent) < 100 and len(receiver.messages) == 1
        assert receiver.allowed is not None
        receiver.allowed.set()
        await soon(delivery)
    assert len(receiver.messages) == 100


@pytest.mark.parametrize("at_what", ["receive", "drain"])
async def test_the_failure_of_a_receiver_ends_the_call(carrier, at_what):
    left = asyncio.Event()

    async def down(request, context):
        try:
            while True:
                yield b"a"
                await asyncio.sleep(0)
        finally:
            left.set()

    async with served(carrier, down=down) as at:
        call: Any = at.down(b"")
        with pytest.raises(ConnectionError):
            await soon(deliver(call, FailingReceiver(at_what)))
        call.cancel()
        await soon(left.wait())


async def test_a_cancelled_delivery_cancels_the_call(carrier):
    left = asyncio.Event()

    async def down(request, context):
        try:
            yield b"a"
            await asyncio.Event().wait()
        finally:
            left.set()

    receiver = Receiver()
    async with served(carrier, down=down) as at:
        delivery = asyncio.create_task(deliver(at.down(b""), receiver))
        await soon(receiver.has_some.wait())
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(delivery)
        await soon(left.wait())
    assert receiver.messages == [b"a"]
