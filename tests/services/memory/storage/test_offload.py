"""Long conversations are worked on in a thread."""

import threading

import pytest

from gateway.conversation.v1.conversation_pb2 import ROLE_USER, Block, Message
from services.common.process.offload import offload_if
from services.memory.storage.messages import has_large_messages, has_many_messages
from services.memory.storage.stored_turns import StoredTurn, have_many_messages

MANY = 2_001


def said(text: str = "Hi") -> Message:
    return Message(role=ROLE_USER, blocks=[Block(text=text)])


def turn(number: int, messages: int) -> StoredTurn:
    return StoredTurn(number, (said(),) * messages, 0, False, 0)


@pytest.mark.parametrize("is_long", [True, False])
async def test_long_work_runs_in_a_thread(is_long: bool) -> None:
    here = threading.get_ident()
    assert (await offload_if(is_long, threading.get_ident) != here) is is_long


def test_many_messages_take_long() -> None:
    assert has_many_messages([said()] * MANY)
    assert has_large_messages([said()] * MANY)
    assert not has_many_messages([said()] * 10)


def test_few_messages_of_megabytes_are_large() -> None:
    assert has_large_messages([said(), said("x" * (2 << 20))])
    assert not has_large_messages([said(), said("x" * 1000)])


def test_messages_of_turns_count_together() -> None:
    assert have_many_messages([turn(1, 1_001), turn(2, 1_001)])
    assert not have_many_messages([turn(1, 5), turn(2, 5)])
