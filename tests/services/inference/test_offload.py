"""Which requests are large, and so worked on in a thread of their own."""

import threading

import pytest

from gateway.conversation.v1.conversation_pb2 import ROLE_USER, Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.large_request import LargeRequest, serialize
from services.inference import offload

MANY = 2_001


def asking(*texts: str) -> GenerateRequest:
    messages = [Message(role=ROLE_USER, blocks=[Block(text=text)]) for text in texts]
    return GenerateRequest(messages=messages)


def in_one_message(blocks: int) -> GenerateRequest:
    message = Message(role=ROLE_USER, blocks=[Block(text="Hi") for _ in range(blocks)])
    return GenerateRequest(messages=[message])


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(asking(*["Hi"] * MANY), id="many messages"),
        pytest.param(in_one_message(MANY), id="many blocks"),
        pytest.param(asking("x" * (2 << 20)), id="a long text"),
    ],
)
async def test_work_on_a_large_request_is_done_in_a_thread(request_: GenerateRequest) -> None:
    offload.mark(request_)
    assert await offload.offload(threading.get_ident) != threading.get_ident()


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(asking("Hi"), id="a short text"),
        pytest.param(asking("x" * 500_000), id="half a megabyte"),
    ],
)
async def test_work_on_any_other_is_done_at_once(request_: GenerateRequest) -> None:
    offload.mark(request_)
    assert await offload.offload(threading.get_ident) == threading.get_ident()


async def test_a_large_request_is_parsed_in_a_thread() -> None:
    class Request(LargeRequest):
        def parse(self) -> GenerateRequest:
            threads.append(threading.get_ident())
            return super().parse()

    threads: list[int] = []
    assert await offload.parse_large(Request(serialize(asking("Hi")))) == asking("Hi")
    assert threads != [threading.get_ident()]
    # So is further work on it, however small.
    assert await offload.offload(threading.get_ident) == threads[0]
