"""An answer in the order in which it goes out, with its pauses and disturbances."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from services.sandbox.model.models import Model, late_failure
from services.sandbox.model.requests import Answer, Call, Piece, Reply, tokens

_STEPS_AT_ONCE = 1_000

Sleep = Callable[[float], Awaitable[object]]


class CutError(Exception):
    """The connection is to break here."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The answer begins."""


@dataclass(frozen=True, slots=True)
class PieceStarted:
    """Piece number `index` of a choice begins; what it holds comes in deltas."""

    choice: int
    index: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class Delta:
    """One more token of a piece."""

    choice: int
    index: int
    piece: Piece
    text: str


@dataclass(frozen=True, slots=True)
class PieceEnded:
    """All of a piece is out."""

    choice: int
    index: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class ChoiceEnded:
    """A choice is whole."""

    choice: int
    reply: Reply


Step = Opened | PieceStarted | Delta | PieceEnded | ChoiceEnded


def script(answer: Answer) -> Iterator[Step]:
    """Return the steps of an answer: it opens, then each choice piece by piece."""
    yield Opened()
    for choice, reply in enumerate(answer.replies):
        for index, piece in enumerate(reply.pieces):
            yield PieceStarted(choice, index, piece)
            for token in tokens(piece.input if isinstance(piece, Call) else piece.text):
                yield Delta(choice, index, piece, token)
            yield PieceEnded(choice, index, piece)
        yield ChoiceEnded(choice, reply)


async def play(answer: Answer, model: Model, sleep: Sleep) -> AsyncGenerator[Step, None]:
    """Return the steps of an answer as the model takes them.

    Raises:
        CutError: the connection is to break.
        SandboxError: a failure is to be reported.
    """
    steps = list(script(answer))
    disturbed_at = _position(steps, model)
    for position, step in enumerate(steps):
        if position == disturbed_at:
            await _disturb(model)
        if model.delay_s and isinstance(step, Delta):
            await sleep(model.delay_s)
        elif position % _STEPS_AT_ONCE == _STEPS_AT_ONCE - 1:
            await asyncio.sleep(0)  # a long answer is not to hold up anybody else's
        yield step


def _position(steps: list[Step], model: Model) -> int:
    if model.disturbance is None:
        return -1
    if model.disturbance.when == "before":
        return 0
    deltas = [position for position, step in enumerate(steps) if isinstance(step, Delta)]
    if model.disturbance.when == "open" or not deltas:
        return 1
    return deltas[len(deltas) // 2] if len(deltas) > 1 else deltas[0] + 1


async def _disturb(model: Model) -> None:
    match model.disturbance:
        case None:
            return
        case disturbance if disturbance.how == "silence":
            await asyncio.get_running_loop().create_future()
        case disturbance if disturbance.how == "cut":
            raise CutError
        case _:
            raise late_failure()
