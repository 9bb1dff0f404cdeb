"""Every endpoint, in front of every upstream, with every conversation of the table.

One test is an endpoint and an upstream; it names each of its cells that fails. In `make test`
an upstream has every second conversation with one endpoint of those that can, in turn, and all that
are refused; in `make soak` with all.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from services.sandbox.model.signatures import is_redacted, reveal
from tests.matrix import chat, google, grpc_calls, grpc_responses, messages, options, responses
from tests.matrix.conversations import FORMS, MEDIA, TEXTS, THOUGHTS
from tests.matrix.exchanges import Exchange, ask, said_by
from tests.matrix.meaning import check
from tests.matrix.tool_conversations import CALLS, LOOPS, RESULTS
from tests.matrix.upstreams import UPSTREAMS, MatrixGateway, Upstream
from tests.matrix.words import CHAT, GOOGLE, GRPC, Answer, Conversation, Failure, result, user
from tests.thoroughness import is_soak, sampled

pytestmark = pytest.mark.thorough

CONVERSATIONS = (*TEXTS, *MEDIA, *FORMS, *THOUGHTS, *CALLS, *RESULTS, *LOOPS)
ENDPOINTS = (chat, messages, responses, grpc_calls)


@cache
def taken(endpoint: ModuleType) -> tuple[Conversation, ...]:
    """Return the conversations that an endpoint has words for."""
    if endpoint is responses:
        return tuple(one for one in CONVERSATIONS if not responses.lacks(one))
    return tuple(one for one in CONVERSATIONS if endpoint.NAME in one.endpoints)


def sample(endpoint: ModuleType, upstream: Upstream) -> list[Conversation]:
    """Return the conversations that an endpoint has with an upstream."""
    return [
        one
        for one in taken(endpoint)
        if is_soak()
        # What a provider refuses of thoughts is learnt from one conversation for the next.
        or one in THOUGHTS
        or one.refusal(endpoint.NAME, upstream.name)
        or endpoint is answered_at(one, upstream)
    ]


def answered_at(conversation: Conversation, upstream: Upstream) -> ModuleType | None:
    """Return the endpoint whose turn it is to have a conversation with an upstream, if any is."""
    able = [
        endpoint
        for endpoint in ENDPOINTS
        if conversation in taken(endpoint)
        and not conversation.refusal(endpoint.NAME, upstream.name)
    ]
    turn, is_left_out = divmod(CONVERSATIONS.index(conversation) + UPSTREAMS.index(upstream), 2)
    return None if is_left_out or not able else able[turn % len(able)]


def test_the_table():
    names = [conversation.name for conversation in CONVERSATIONS]
    assert len(names) == len(set(names)) >= 40
    assert all(len(taken(endpoint)) >= 40 for endpoint in ENDPOINTS)


@pytest.mark.thorough(one_in=3)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.name)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.NAME)
async def test_every_conversation(target: MatrixGateway, endpoint: ModuleType, upstream: Upstream):
    await _check_all(target, endpoint, upstream, sample(endpoint, upstream))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "upstream", [one for one in UPSTREAMS if one.responses], ids=lambda upstream: upstream.name
)
async def test_every_conversation_at_responses(target: MatrixGateway, upstream: Upstream):
    conversations = [
        one for one in CONVERSATIONS if GRPC in one.endpoints and grpc_responses.takes(one)
    ]
    await _check_all(target, grpc_responses, upstream, conversations)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.name)
async def test_every_conversation_at_googles_endpoint(target: MatrixGateway, upstream: Upstream):
    # One in six, another sixth at each upstream.
    conversations = [one for one in CONVERSATIONS if not google.lacks(one)]
    first = UPSTREAMS.index(upstream)
    await _check_all(target, google, upstream, sampled(conversations, 6, first=first))


async def _check_all(
    target: MatrixGateway,
    endpoint: ModuleType,
    upstream: Upstream,
    conversations: Sequence[Conversation],
) -> None:
    failures = []
    for conversation in conversations:
        cell = f"{endpoint.NAME}, {upstream.name}, {conversation.name}"
        try:
            await Cell(target, endpoint, upstream, conversation).run()
        except (AssertionError, LookupError, ValueError, TypeError) as error:
            failures.append(f"{cell}: {type(error).__name__}: {error}")
    assert not failures, "\n\n".join([f"{len(failures)} cells", *failures])


def _hides_thoughts(conversation: Conversation) -> bool:
    """Return whether the sandbox is asked for thoughts that it alone can read."""
    return any("redact" in str(part) for part in conversation.turns[-1].parts)


class Cell:
    """A conversation at an endpoint, in front of an upstream."""

    def __init__(
        self,
        target: MatrixGateway,
        endpoint: ModuleType,
        upstream: Upstream,
        conversation: Conversation,
    ) -> None:
        self._target = target
        self._endpoint = endpoint
        self._upstream = upstream
        self._conversation = conversation

    async def run(self) -> None:
        """Ask whole and streamed, and check that both are as the table says, and the same."""
        path = self._conversation.refusal(self._endpoint.NAME, self._upstream.name)
        if path:
            whole, streamed = await self._refused(False, path), await self._refused(True, path)
            assert whole == streamed, "streamed is otherwise"
        else:
            assert await self._answered(False) == await self._answered(True), (
                "streamed is otherwise"
            )

    async def _ask(self, body: Any, stream: bool) -> Exchange:
        return await ask(self._target, self._endpoint, self._upstream, body, stream)

    async def _refused(self, stream: bool, path: str) -> Failure:
        body = self._endpoint.body_of(self._conversation, self._upstream.full_model)
        answer = (await self._ask(body, stream)).answer
        assert isinstance(answer, Failure), f"answered: {answer}"
        assert answer.status == 400
        assert path in (answer.path, *re.split(r"[\s'\":,]+", answer.words))
        return answer

    async def _answered(self, stream: bool) -> list[Answer]:
        conversation = self._conversation
        body = self._endpoint.body_of(conversation, self._upstream.full_model)
        asked = await self._ask(body, stream)
        answer = asked.answer
        assert isinstance(answer, Answer), answer
        self._check_answer(answer, asked)
        if asked.sent is not None:
            name = self._endpoint.NAME
            check(
                conversation,
                conversation.turns,
                name,
                asked.upstream,
                asked.sent,
                asked.dropped,
            )
        if conversation.results:
            return [answer, await self._go_on(body, answer, stream)]
        if "stop" in conversation.options and not self._upstream.tells_stops:
            # Left where the string came up, a provider may not have told the usage yet.
            answer = replace(answer, usage=(0, 0))
        return [answer]

    def _check_answer(self, answer: Answer, asked: Exchange) -> None:
        conversation = self._conversation
        self._check_thoughts(answer, asked)
        assert min(answer.usage) > 0
        if conversation.any_answer:
            return
        says = answer.text or answer.refusal
        assert conversation.says in says, f"said {says[:300]!r}"
        assert [call.name for call in answer.calls] == list(conversation.calls)
        assert len({call.id for call in answer.calls}) == len(answer.calls)
        finish = conversation.finish
        if self._endpoint.NAME in (CHAT, GOOGLE) and finish == "stop":
            finish = "end"
        assert answer.finish == finish
        if finish == "stop":
            assert answer.stop_sequence == conversation.options["stop"][0]

    def _check_thoughts(self, answer: Answer, asked: Exchange) -> None:
        conversation = self._conversation
        paths = options.OPTIONS["effort"].dropped_as[self._endpoint.NAME]
        unasked = (paths - {"thinking.budget_tokens"}).intersection(asked.dropped)
        if conversation.options.keys() & {"effort", "budget"} and not unasked:
            shows = asked.upstream.shows_thoughts and not _hides_thoughts(conversation)
            assert bool(answer.thoughts) == shows, f"thoughts: {answer.thoughts!r}"

    async def _go_on(self, body: Any, answer: Answer, stream: bool) -> Answer:
        """Answer the calls of an answer; return what comes of that."""
        conversation, upstream = self._conversation, self._upstream
        turn = user(*(result(call.id, conversation.results) for call in answer.calls))
        asked = await self._ask(self._endpoint.go_on(body, answer, turn), stream)
        final = asked.answer
        assert isinstance(final, Answer), final
        assert conversation.results in final.text
        if asked.sent is not None:
            turns = [*conversation.turns, said_by(answer), turn]
            name = self._endpoint.NAME
            upstream = asked.upstream
            sent_request = check(conversation, turns, name, upstream, asked.sent, asked.dropped)
            hides = _hides_thoughts(conversation)
            if hides and upstream.dialect in ("anthropic", "bedrock"):
                (hidden,) = sent_request.thoughts
                assert is_redacted(hidden)
                assert conversation.turns[-1].parts[-1].text in reveal(hidden)
            else:
                back = answer.thoughts and upstream.takes_thoughts != "none"
                assert sent_request.thoughts == ([answer.thoughts] if back else [])
        return final
