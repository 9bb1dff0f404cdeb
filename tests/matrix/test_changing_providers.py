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
CIRCLE = (*UPSTREAMS, UPSTREAMS[0])
ORDERS = {
    "as they are": CIRCLE,
    "backwards": CIRCLE[::-1],
    "every fourth": [CIRCLE[4 * place % len(CIRCLE)] for place in range(len(CIRCLE))],
    "Claude and DeepSeek and Gemini": [
        one for one in UPSTREAMS if one.name in ("anthropic", "deepseek", "gemini")
    ],
}
FIRST = user("Use get_weather and get_time in parallel, first.")


def test_the_orders():
    assert all(len(order) % 2 for order in ORDERS.values())
    assert set(ORDERS["every fourth"]) == set(UPSTREAMS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def experienced(target: MatrixGateway) -> MatrixGateway:
    """Return a gateway that knows who refuses the thoughts of others.

    Of the request that is refused all thoughts are left out, the provider's own ones too, and
    which request of a module that is depends on what ran before.
    """
    dialogue = _Dialogue(messages, [FIRST])
    body = messages.body_of(dialogue.conversation, UPSTREAMS[0].full_model)
    answer = (await ask(target, messages, UPSTREAMS[0], body, False)).answer
    assert isinstance(answer, Answer) and answer.thoughts
    results = user(*(result(call.id, "sunny") for call in answer.calls))
    body = messages.go_on(body, answer, results)
    for upstream in UPSTREAMS:
        if upstream.takes_thoughts == "own":
            body = messages.for_model(body, upstream.full_model)
            asked = await ask(target, messages, upstream, body, False)
            assert isinstance(asked.answer, Answer)
    return target


@pytest.mark.thorough(one_in=5)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "endpoint", [chat, messages, responses, grpc_calls], ids=lambda endpoint: endpoint.NAME
)
async def test_every_turn(
    experienced: MatrixGateway, endpoint: ModuleType, order: str, stream: bool
):
    dialogue = _Dialogue(endpoint, [FIRST])
    body = endpoint.body_of(dialogue.conversation, "")
    turn: Turn | None = None
    answer: Answer | None = None
    for place, upstream in enumerate([*ORDERS[order], *ORDERS[order]]):
        if answer is not None:
            body = endpoint.go_on(body, answer, turn)
        body = endpoint.for_model(body, upstream.full_model)
        asked = await ask(experienced, endpoint, upstream, body, stream)
        answer = asked.answer
        assert isinstance(answer, Answer), f"request {place}, {upstream.name}: {answer}"
        if asked.sent is not None:
            sent_request = check(
                dialogue.conversation,
                dialogue.turns,
                endpoint.NAME,
                asked.upstream,
                asked.sent,
                asked.dropped,
            )
            dialogue.check_thoughts(asked.upstream, sent_request)
        calls = not place % 2
        assert [call.name for call in answer.calls] == (
            ["get_weather", "get_time"] if calls else []
        )
        if calls:
            turn = user(*(result(call.id, f"{call.name} says {place}") for call in answer.calls))
        else:
            assert f"get_time says {place - 1}" in answer.text
            turn = user(f"Use get_weather and get_time in parallel, once more: {place}.")
        dialogue.add(asked.upstream, answer, turn)
    dialogue.check_ids()


class _Dialogue:
    """The conversation so far, with the upstream of each thought."""

    def __init__(self, endpoint: ModuleType, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        self._endpoint = endpoint.NAME
        options = {"max_tokens": 8000}
        thinking = {"effort": "high"} if endpoint.NAME in (CHAT, RESPONSES) else {"budget": 2048}
        self.conversation = Conversation("loops", turns, options | thinking, BOTH)
        self._thoughts: list[tuple[Upstream, str]] = []
        self._ids: list[str] = []

    def add(self, upstream: Upstream, answer: Answer, turn: Turn) -> None:
        self.turns += [said_by(answer), turn]
        self._ids += [call.id for call in answer.calls]
        if answer.thoughts:
            self._thoughts.append((upstream, answer.thoughts))

    def check_thoughts(self, upstream: Upstream, sent_request: SentRequest) -> None:
        """Check that a provider hears its own thoughts, and nobody's that it would refuse."""
        own = [thought for thinker, thought in self._thoughts if thinker == upstream]
        others = [thought for _, thought in self._thoughts]
        if upstream.takes_thoughts == "none":
            assert sent_request.thoughts == []
        elif upstream.takes_thoughts == "own":
            # It takes what its own models have signed.
            signed = [
                one for who, one in self._thoughts if upstream.may_have_signed(who, self._endpoint)
            ]
            assert sent_request.thoughts == signed
        else:
            assert set(own) <= set(sent_request.thoughts) <= set(others), upstream.name

    def check_ids(self) -> None:
        """Check that no two calls of the conversation have one id."""
        assert len(set(self._ids)) == len(self._ids)
