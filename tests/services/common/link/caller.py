"""Calls of every kind over one link, held open; as a process too, for tests that kill it.

python -m tests.services.common.link.caller ADDRESS KEY OF_EACH
"""

import asyncio
import sys
from typing import Any

import grpc
import uvloop

from gateway.conversation.v1.conversation_pb2 import ROLE_USER, Block, Message
from gateway.inference.v1.inference_pb2 import FALLBACK_MODE_DISABLED, GenerateRequest
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from gateway.memory.v1.memory_pb2 import OpenTurn, TakeTurnRequest
from gateway.memory.v1.memory_pb2_grpc import MemoryServiceStub
from services.common.channels import call_metadata, open_channel

MAX_MESSAGE = 4 << 20


class Caller:
    """Makes calls that last, and waits for how they end."""

    def __init__(self, channel: grpc.aio.Channel, key: str) -> None:
        self._inference: Any = InferenceServiceStub(channel)
        self._memory: Any = MemoryServiceStub(channel)
        self._metadata = call_metadata(key, "req_kill")
        self._unary: list[Any] = []
        self._streams: list[Any] = []

    async def ask(self, model: str, *, is_patient: bool = False) -> Any:
        """Have a whole answer."""
        return await self._inference.Generate(
            _request(model), metadata=self._metadata, wait_for_ready=is_patient
        )

    async def hold(self, of_each: int, memories: str = "") -> None:
        """Make calls that wait for their answer, or for more of it.

        Args:
            of_each: how many of each kind.
            memories: how the names begin of those that are written to; without, none is.
        """
        for number in range(of_each):
            self._unary.append(
                self._inference.Generate(_request("silent"), metadata=self._metadata)
            )
            self._streams.append(
                self._inference.StreamGenerate(_request("half"), metadata=self._metadata)
            )
            turn = self._memory.TakeTurn(metadata=self._metadata)
            opening = OpenTurn(personal_memory=True, messages=[_message("Remember.")])
            if memories:
                opening.memory_id = f"{memories} {number}"
            await turn.write(TakeTurnRequest(open=opening))
            self._streams.append(turn)
        for stream in self._streams:
            assert await stream.read() is not grpc.aio.EOF

    async def outcomes(self) -> set[grpc.StatusCode]:
        """Give how the calls ended."""
        ends = [_end_of_one(call) for call in self._unary]
        ends += [_end_of_many(call) for call in self._streams]
        return set(await asyncio.gather(*ends))

    def let_go(self) -> None:
        """End all calls."""
        for call in (*self._unary, *self._streams):
            call.cancel()


def _request(model: str) -> GenerateRequest:
    return GenerateRequest(
        model=f"openai/{model}", messages=[_message("Count.")], fallback=FALLBACK_MODE_DISABLED
    )


def _message(text: str) -> Message:
    return Message(role=ROLE_USER, blocks=[Block(text=text)])


async def _end_of_one(call: Any) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def _end_of_many(call: Any) -> grpc.StatusCode:
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def main() -> None:
    """Hold calls until killed."""
    address, key, of_each = sys.argv[1:]
    async with open_channel(address, max_message=MAX_MESSAGE) as channel:
        # Calls that nobody holds would end by themselves.
        caller = Caller(channel, key)
        await caller.hold(int(of_each), "held")
        print("READY", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
