"""Thoughts in tool loops: within one provider, to another one and back, and to a fallback.

The upstreams refuse signatures that are not theirs, and calls without a signature or without
thoughts, as the real servers do.
"""

from types import ModuleType

import pytest

from tests.grid import Grid
from tests.matrix import chat, messages, responses
from tests.matrix.exchanges import Exchange, ask, said_by
from tests.matrix.meaning import check
from tests.matrix.sent_requests import SentRequest
from tests.matrix.tool_conversations import BOTH
from tests.matrix.upstreams import UPSTREAMS, MatrixGateway, Upstream
from tests.matrix.words import CHAT, Answer, Conversation, Turn, result, user

NAMES = (
    *("openai", "anthropic", "gemini", "bedrock", "vertex-claude", "deepseek"),
    *("gemini-openai", "openrouter"),
)
KINDS = [one for one in UPSTREAMS if one.name in NAMES]
OPTIONS = {
    "chat": {"max_tokens": 8000, "effort": "high"},
    "messages": {"max_tokens": 8000, "budget": 2048},
    "responses": {"max_tokens": 8000, "effort": "high"},
}
FIRST = user("Use get_weather and get_time in parallel.")
ENDPOINTS = [chat, messages, responses]


class _Loop:
    """A conversation with two calls in each odd answer, and the thoughts of each."""

    def __init__(self, target: MatrixGateway, endpoint: ModuleType, stream: bool) -> None:
        self.thoughts: list[tuple[Upstream, str]] = []
        self._target, self._endpoint, self._stream = target, endpoint, stream
        self._turns: list[Turn] = [FIRST]
        options = OPTIONS[endpoint.__name__.rpartition(".")[2]]
        self._conversation = Conversation("loop", [FIRST], options, BOTH)
        self._body = endpoint.body_of(self._conversation, "")

    async def go_on(self, upstream: Upstream, *, fallback: bool = False) -> Exchange:
        """Ask a provider, or let it be the fallback of one that fails; check what it was sent."""
        body = self._endpoint.for_model(self._body, upstream.full_model)
        if fallback:
            steps = [
                {"step_id": "a", "model": "sandbox/fail-500"},
                {"step_id": "b", "model": upstream.full_model},
            ]
            config = {"strategy": {"mode": "sequential"}, "steps": steps}
            body |= {"fallback": "strict", "fallback_config": config}
        asked = await ask(self._target, self._endpoint, upstream, body, self._stream)
        answer = asked.answer
        assert isinstance(answer, Answer), answer
        sent = check(
            self._conversation,
            self._turns,
            self._endpoint.NAME,
            asked.upstream,
            asked.sent,
            asked.dropped,
        )
        self._check_thoughts(asked.upstream, sent)
        if answer.thoughts:
            self.thoughts.append((asked.upstream, answer.thoughts))
        if answer.calls:
            turn = user(*(result(call.id, f"{call.name} is sunny") for call in answer.calls))
        else:
            assert "get_time is sunny" in answer.text
            turn = user("Use get_weather and get_time in parallel, again.")
        self._turns += [said_by(answer), turn]
        self._body = self._endpoint.go_on(self._body, answer, turn)
        return asked

    def _check_thoughts(self, upstream: Upstream, sent: SentRequest) -> None:
        own = [
            text
            for who, text in self.thoughts
            if upstream.may_have_signed(who, self._endpoint.NAME)
        ]
        if upstream.takes_thoughts == "none":
            assert sent.thoughts == []
        elif upstream.takes_thoughts == "own":
            assert sent.thoughts == own
        else:
            # Of others it takes what the gateway can verify: in a chat, all of it.
            texts = [text for _, text in self.thoughts]
            mine = [text for who, text in self.thoughts if who == upstream]
            least = texts if self._endpoint.NAME == CHAT else mine
            assert set(least) <= set(sent.thoughts) <= set(texts)


async def _learn(target: MatrixGateway) -> None:
    """Ask each upstream that refuses the thoughts of others, which the gateway learns.

    Of the request that is refused all thoughts are left out, the provider's own ones too.
    """
    for upstream in KINDS:
        if upstream.takes_thoughts == "own":
            loop = _Loop(target, chat, False)
            # The thoughts that are sent before that is known are another test's.
            loop._check_thoughts = lambda upstream, sent: None  # type: ignore[method-assign]
            for one in (KINDS[0], upstream, upstream):
                await loop.go_on(one)


@pytest.mark.thorough(one_in=2)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("way", ["loop", "switch", "fallback"])
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.NAME)
async def test_thoughts_travel(target: MatrixGateway, endpoint: ModuleType, way: str):
    await _learn(target)
    with Grid() as grid:
        for number, first in enumerate(KINDS):
            for place, second in enumerate(KINDS):
                if (first is second) != (way == "loop"):
                    continue
                stream = bool((number + place) % 2)
                with grid.row(way, first.name, second.name, stream):
                    loop = _Loop(target, endpoint, stream)
                    for upstream, is_fallback in (
                        (first, False),
                        (second, way == "fallback"),
                        (first, False),
                        (second, False),
                    ):
                        await loop.go_on(upstream, fallback=is_fallback)
                    assert len({who.name for who, _ in loop.thoughts}) <= 2


def test_the_kinds() -> None:
    assert {one.name for one in KINDS} == set(NAMES)
    assert {one.takes_thoughts for one in KINDS} == {"none", "own", "any"}
