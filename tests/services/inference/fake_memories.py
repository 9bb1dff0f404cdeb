"""A memory that is simply there, for what takes turns of one."""

import asyncio
from collections.abc import Callable

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.memory.v1.memory_pb2 import BeginTurn, TurnContext
from services.common.errors import GatewayError


class FakeTurn:
    """A turn that was taken; tells what became of it."""

    def __init__(self, memories: "FakeMemories", begin: BeginTurn, context: TurnContext) -> None:
        self._memories = memories
        self.begin = begin
        self.context = context
        self.answers: list[Message] = []
        self.is_held = True

    async def commit(self, answer: Message) -> None:
        assert self.is_held
        self._memories.committing.set()
        await self._memories.may_commit.wait()
        if self._memories.refusal is not None:
            raise self._memories.refusal
        self.answers.append(answer)
        self.drop()

    async def close(self) -> None:
        self.drop()

    def drop(self) -> None:
        if self.is_held:
            self.is_held = False
            self._memories.ended.release()


class FakeMemories:
    """Answers with the context that a test sets; by default that nothing is remembered.

    Attributes:
        turns: those that were taken, in order.
        committing: set once there is something to commit.
        may_commit: cleared by a test that holds a commit up.
        refusal: what commits fail with.
        ended: released for each turn that is held no more.
    """

    def __init__(self, context: Callable[[BeginTurn], TurnContext] | None = None) -> None:
        self.context = context or nothing_more
        self.turns: list[FakeTurn] = []
        self.committing = asyncio.Event()
        self.may_commit = asyncio.Event()
        self.may_commit.set()
        self.refusal: GatewayError | None = None
        self.ended = asyncio.Semaphore(0)

    async def begin(self, begin: BeginTurn) -> FakeTurn:
        turn = FakeTurn(self, begin, self.context(begin))
        self.turns.append(turn)
        return turn


def nothing_more(begin: BeginTurn) -> TurnContext:
    """Return what was sent, and nothing that was remembered."""
    newest = max(
        (
            index
            for index, message in enumerate(begin.messages)
            if any(not block.HasField("tool_result") for block in message.blocks)
            and message.role == 1
        ),
        default=0,
    )
    return TurnContext(messages=begin.messages, newest_user_message_index=newest)
