"""One request of the matrix: what comes of it, and what the upstream was sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from tests.matrix.upstreams import MatrixGateway, Upstream
from tests.matrix.words import Answer, Call, Failure, Text, Thought, Turn


@dataclass(frozen=True)
class Exchange:
    """A request with its answer.

    Attributes:
        dropped: what the answer says was dropped.
        sent: the body that the upstream answered; None where nothing is logged, and after a
            refusal.
        upstream: the upstream, with the dialect that it was asked in.
    """

    answer: Answer | Failure
    dropped: Sequence[str]
    sent: Any
    upstream: Upstream


async def ask(
    target: MatrixGateway, endpoint: ModuleType, upstream: Upstream, body: Any, stream: bool
) -> Exchange:
    """Ask at an endpoint, of an upstream."""
    target.log.clear()
    answer, dropped = await endpoint.ask(target, body, stream)
    if not upstream.dialect or isinstance(answer, Failure):
        return Exchange(answer, dropped, None, upstream)
    # Lists of models are asked for in the background, and have no body.
    *refused, last = [entry for entry in target.log.entries if entry.body is not None]
    assert last.status == 200
    # What came before was refused, and sent once more without what was named.
    assert all(entry.status in (400, 422) for entry in refused)
    asked = replace(upstream, dialect=last.dialect)
    if last.dialect == "responses":
        # It shows a summary of its thoughts, and takes those back that it has encrypted.
        asked = replace(asked, takes_thoughts="own", shows_thoughts=True)
    return Exchange(answer, dropped, last.body, asked)


def said_by(answer: Answer) -> Turn:
    """Return an answer as a turn of a conversation."""
    thoughts = [Thought(answer.thoughts)] if answer.thoughts else []
    texts = [Text(answer.text)] if answer.text else []
    calls = [Call(call.id, call.name, call.arguments) for call in answer.calls]
    return Turn("assistant", (*thoughts, *texts, *calls))
