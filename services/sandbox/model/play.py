"""The steps of an answer in the order in which they are sent, with delays and failures."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import Finish
from services.sandbox.model.answers import Answer, written
from services.sandbox.model.models import Model, late_failure
from services.sandbox.model.requests import tokens

_STEPS_AT_ONCE = 1_000

Sleep = Callable[[float], Awaitable[object]]


class CutError(Exception):
    """Error raised when the connection must be closed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The answer begins."""


@dataclass(frozen=True, slots=True)
class BlockStarted:
    """Block number `index` of a choice begins; deltas with its content follow."""

    choice: int
    index: int
    block: Block


@dataclass(frozen=True, slots=True)
class Delta:
    """The next token of a block."""

    choice: int
    index: int
    block: Block
    text: str


@dataclass(frozen=True, slots=True)
class BlockEnded:
    """A block is complete."""

    choice: int
    index: int
    block: Block


@dataclass(frozen=True, slots=True)
class ChoiceEnded:
    """A choice is complete."""

    choice: int
    finish: Finish


Step = Opened | BlockStarted | Delta | BlockEnded | ChoiceEnded


def script(answer: Answer) -> Iterator[Step]:
    """Yield the steps of an answer: its start, then each choice block by block."""
    yield Opened()
    for number, choice in enumerate(answer.choices):
        for index, block in enumerate(choice.blocks):
            yield BlockStarted(number, index, block)
            for token in tokens(written(block)):
                yield Delta(number, index, block, token)
            yield BlockEnded(number, index, block)
        yield ChoiceEnded(number, choice.finish)


async def play(answer: Answer, model: Model, sleep: Sleep) -> AsyncGenerator[Step, None]:
    """Yield the steps of an answer with the model's delays and failures.

    Raises:
        CutError: the connection must be closed.
        SandboxError: an error must be reported.
    """
    steps = list(script(answer))
    fault_at = _position(steps, model)
    for position, step in enumerate(steps):
        if position == fault_at:
            await _inject_fault(model)
        if model.delay_s and isinstance(step, Delta):
            await sleep(model.delay_s)
        elif position % _STEPS_AT_ONCE == _STEPS_AT_ONCE - 1:
            await asyncio.sleep(0)  # let other tasks run during a long answer
        yield step


def _position(steps: list[Step], model: Model) -> int:
    if model.fault is None:
        return -1
    if model.fault.when == "before":
        return 0
    deltas = [position for position, step in enumerate(steps) if isinstance(step, Delta)]
    if model.fault.when == "open" or not deltas:
        return 1
    return deltas[len(deltas) // 2] if len(deltas) > 1 else deltas[0] + 1


async def _inject_fault(model: Model) -> None:
    match model.fault:
        case None:
            return
        case fault if fault.how == "silence":
            await asyncio.get_running_loop().create_future()
        case fault if fault.how == "cut":
            raise CutError
        case _:
            raise late_failure()
