"""A conversation that another provider goes on with at every request, a loop of calls included."""

from collections.abc import Sequence
from types import ModuleType

import pytest
import pytest_asyncio

from tests.matrix import chat, grpc_calls, messages, responses
from tests.matrix.exchanges import ask, said_by
from tests.matrix.meaning import check
from tests.matrix.sent_requests import SentRequest
from tests.matrix.tool_conversations import BOTH
from tests.matrix.upstreams import UPSTREAMS, MatrixGateway, Upstream
from tests.matrix.words import CHAT, RESPONSES, Answer, Conversation, Turn, result, user

# Odd numbers of providers, so that each of them asks for calls and is told of others' results.
ORDERS = {
    "as they are": UPSTREAMS,
    "backwards": UPSTREAMS[::-1],
    "every fifth": [UPSTREAMS[5 * place % len(UPSTREAMS)] for place in range(len(UPSTREAMS))],
    "Claude and DeepSeek and Gemini": [
        one for one in UPSTREAMS if one.name in ("anthropic", "deepseek", "gemini")
    ],
}
FIRST = user("Use get_weather and get_time in parallel, first.")


def test_the_orders():
    assert all(len(order) % 2 for order in ORDERS.values())
    assert set(ORDERS["every fifth"]) == set(UPSTREAMS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def experienced(target: MatrixGateway) -> MatrixGateway:
    """Return a gateway that knows who refuses the thoughts of others.

    Of the request that is refused all thoughts are left out, the provider's own ones too, and
    which request of a module that is depends on what ran before.
    """
    told = _Told(messages, [FIRST])
    body = messages.body_of(told.conversation, UPSTREAMS[0].full_model)
    said = (await ask(target, messages, UPSTREAMS[0], body, False)).answer
    assert isinstance(said, Answer) and said.thoughts
    results = user(*(result(call.id, "sunny") for call in said.calls))
    body = messages.go_on(body, said, results)
    for upstream in UPSTREAMS:
        if upstream.takes_thoughts == "own":
            body = messages.for_model(body, upstream.full_model)
            asked = await ask(target, messages, upstream, body, False)
            assert isinstance(asked.answer, Answer)
    return target


@pytest.mark.thorough(one_in=3)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "endpoint", [chat, messages, responses, grpc_calls], ids=lambda endpoint: endpoint.NAME
)
async def test_every_turn(
    experienced: MatrixGateway, endpoint: ModuleType, order: str, stream: bool
):
    told = _Told(endpoint, [FIRST])
    body = endpoint.body_of(told.conversation, "")
    turn: Turn | None = None
    said: Answer | None = None
    for place, upstream in enumerate([*ORDERS[order], *ORDERS[order]]):
        if said is not None:
            body = endpoint.go_on(body, said, turn)
        body = endpoint.for_model(body, upstream.full_model)
        asked = await ask(experienced, endpoint, upstream, body, stream)
        said = asked.answer
        assert isinstance(said, Answer), f"request {place}, {upstream.name}: {said}"
        if asked.sent is not None:
            sent_request = check(
                told.conversation,
                told.turns,
                endpoint.NAME,
                asked.upstream,
                asked.sent,
                asked.dropped,
            )
            told.check_thoughts(asked.upstream, sent_request)
        calls = not place % 2
        assert [call.name for call in said.calls] == (["get_weather", "get_time"] if calls else [])
        if calls:
            turn = user(*(result(call.id, f"{call.name} says {place}") for call in said.calls))
        else:
            assert f"get_time says {place - 1}" in said.text
            turn = user(f"Use get_weather and get_time in parallel, once more: {place}.")
        told.add(asked.upstream, said, turn)
    told.check_ids()


class _Told:
    """The conversation so far, with the upstream of each thought."""

    def __init__(self, endpoint: ModuleType, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        given = {"max_tokens": 8000}
        thinking = {"effort": "high"} if endpoint.NAME in (CHAT, RESPONSES) else {"budget": 2048}
        self.conversation = Conversation("loops", turns, given | thinking, BOTH)
        self._has_signatures = endpoint.NAME != CHAT
        self._thoughts: list[tuple[Upstream, str]] = []
        self._ids: list[str] = []

    def add(self, upstream: Upstream, said: Answer, turn: Turn) -> None:
        self.turns += [said_by(said), turn]
        self._ids += [call.id for call in said.calls]
        if said.thoughts:
            self._thoughts.append((upstream, said.thoughts))

    def check_thoughts(self, upstream: Upstream, sent_request: SentRequest) -> None:
        """Check that a provider hears its own thoughts, and nobody's that it would refuse."""
        own = [thought for thinker, thought in self._thoughts if thinker == upstream]
        others = [thought for _, thought in self._thoughts]
        if upstream.takes_thoughts == "none":
            assert sent_request.thoughts == []
        elif upstream.takes_thoughts == "own":
            # It takes what its own models have signed, and a chat has no signatures.
            signed = [one for who, one in self._thoughts if who.dialect == upstream.dialect]
            assert sent_request.thoughts == (signed if self._has_signatures else [])
        else:
            assert set(own) <= set(sent_request.thoughts) <= set(others), upstream.name

    def check_ids(self) -> None:
        """Check that no two calls of the conversation have one id."""
        assert len(set(self._ids)) == len(self._ids)
