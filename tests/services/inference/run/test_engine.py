"""The engine's own part, with a provider that plays a test's answers."""

from collections.abc import Sequence
from contextlib import aclosing

import pytest
from prometheus_client import CollectorRegistry

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message, Thinking, Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1.inference_pb2 import Event, Finish, GenerateRequest, Start
from services.common.errors import GatewayError, UpstreamError
from services.common.settings import Limits, Memory, Model, Provider
from services.inference.metrics import InferenceMetrics
from services.inference.models.routing import Models
from services.inference.providers.base import Call
from services.inference.request.thinking import Signer
from services.inference.routes import Routes
from services.inference.run.engine import Engine
from tests.services.inference.fake_adaptation import adaptation
from tests.services.inference.fake_files import FakeFiles
from tests.services.inference.fake_memories import FakeMemories

DISABLED = pb.FALLBACK_MODE_DISABLED
SIGNER = Signer({"k1": b"s" * 32}, "k1")


class PlayedProvider:
    """A provider that plays batches; an exception among them is raised."""

    name = "played"
    dialect = conversation.DIALECT_OPENAI
    signs_thinking = checks_signatures = sends_stored_files = False
    prefills = False
    reports_stop_sequence = False
    pass_stateful = False
    fetches = frozenset()

    def __init__(self, *answers: Sequence[Sequence[Event] | Exception]) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []
        self.closed = 0
        self.counts: int | Exception | None = None

    async def whole(self, call: Call):
        async with aclosing(self.stream(call)) as batches:
            return [event async for batch in batches for event in batch]

    async def stream(self, call: Call):
        self.calls.append(call)
        call.dropped.append("seed")
        try:
            for batch in self.answers.pop(0):
                if isinstance(batch, Exception):
                    raise batch
                yield batch
        finally:
            self.closed += 1

    async def count_tokens(self, call: Call) -> int | None:
        if isinstance(self.counts, Exception):
            raise self.counts
        return self.counts

    async def close(self) -> None:
        pass


def start() -> Event:
    return Event(start=Start(id="1", model="up"))


def text(*pieces: str) -> list[Event]:
    events = [Event(block_start=Block(text=""))]
    return [*events, *(Event(text=piece) for piece in pieces), Event(block_stop=pb.BlockStop())]


def end(reason=conversation.FINISH_REASON_END_TURN) -> list[Event]:
    return [Event(finish=Finish(reason=reason)), Event(usage=Usage(input_tokens=3))]


def engine(provider: PlayedProvider, **model: object) -> Engine:
    settings = {"played": Provider(kind="openai", base_url="http://127.0.0.1")}
    models = Models([Model(name="m", provider="played", **model)], settings, {}, {})
    clock = iter(range(1000))
    routes = Routes(models, {"played": provider})
    metrics = InferenceMetrics(CollectorRegistry())
    return Engine(
        routes,
        SIGNER,
        FakeFiles({}),
        FakeMemories(),
        Limits(),
        Memory(),
        metrics,
        lambda: next(clock),
        adaptation(metrics),
    )


def request(**fields: object) -> GenerateRequest:
    asked = Message(role=conversation.ROLE_USER, blocks=[Block(text="Hi")])
    return GenerateRequest(**{"model": "m", "messages": [asked], **fields})


async def events_of(engine: Engine, request: GenerateRequest) -> list[Event]:
    return [event async for batch in await engine.stream(request) for event in batch]


async def test_a_stream_and_a_whole_answer_are_the_same():
    batches = [[start(), *text("a", "b")], end()]
    whole = await engine(PlayedProvider(batches)).generate(request())
    streamed = await events_of(engine(PlayedProvider(batches)), request())
    assert whole.choices[0].blocks[0].text == "ab"
    assert "".join(event.text for event in streamed) == "ab"
    assert whole.route == streamed[0].start.route
    assert whole.route.model == "m"
    assert whole.route.provider == "played"
    assert list(whole.route.dropped) == ["seed"]


async def test_a_failure_lists_its_attempts_and_their_durations():
    failure = UpstreamError(errors_pb2.REASON_UPSTREAM_ERROR, "it failed", status=500)
    with pytest.raises(UpstreamError) as failed:
        await engine(PlayedProvider([failure]), upstream="u").generate(request(fallback=DISABLED))
    (attempt,) = failed.value.attempts
    assert (attempt.model, attempt.status, attempt.duration_ms) == ("played/u", 500, 1000)


async def test_a_stop_string_ends_the_answer_and_the_providers_call():
    provider = PlayedProvider(
        [[start(), *text("one ", "tw", "o three")[:-1]], text("never read"), end()]
    )
    stopping = request(stop_sequences=["two"])
    events = await events_of(engine(provider), stopping)
    assert "".join(event.text for event in events) == "one "
    finish = next(event.finish for event in events if event.HasField("finish"))
    assert finish.reason == conversation.FINISH_REASON_STOP_SEQUENCE
    assert finish.stop_sequence == "two"
    assert provider.closed == 1
    # The provider is asked without them, and as a stream, so that it can be left.
    assert provider.calls[0].stream
    assert not provider.calls[0].request.stop_sequences
    assert list(stopping.stop_sequences) == ["two"]


async def test_usage_is_estimated_when_the_provider_sent_none():
    provider = PlayedProvider([[start(), *text("one two three")[:-1]], end()])
    whole = await engine(provider).generate(request(stop_sequences=["two"]))
    assert whole.usage.input_tokens > 0
    assert whole.usage.output_tokens > 0


async def test_usage_that_was_reported_is_not_estimated():
    provider = PlayedProvider([[start(), *text("one two"), *end()]])
    whole = await engine(provider).generate(request(stop_sequences=["two"]))
    assert whole.usage == Usage(input_tokens=3)


async def test_stop_strings_nobody_asks_for_are_the_provider_s():
    provider = PlayedProvider([[start(), *text("one"), *end()]])
    await engine(provider).generate(request(stop_sequences=["two"], omits_stop_sequence=True))
    assert list(provider.calls[0].request.stop_sequences) == ["two"]
    assert not provider.calls[0].stream


async def test_a_prefill_is_never_repeated():
    provider = PlayedProvider([[start(), *text("Once upon", " a time"), *end()]])
    prefill = Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="Once upon")])
    prefilled = request()
    prefilled.messages.append(prefill)
    whole = await engine(provider).generate(prefilled)
    assert whole.choices[0].blocks[0].text == " a time"


@pytest.mark.parametrize(("refuses", "said"), [(["prefill"], " a time"), ([], "Once upon a time")])
async def test_a_model_that_is_known_to_refuse_a_prefill_repeats_none(refuses, said):
    provider = PlayedProvider([[start(), *text("Once upon", " a time"), *end()]])
    provider.prefills = True
    expected = request()
    prefill = Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="Once upon")])
    expected.messages.append(prefill)
    whole = await engine(provider, refuses=refuses).generate(expected)
    assert whole.choices[0].blocks[0].text == said


async def test_thinking_that_nobody_signed_is_signed_by_the_gateway():
    thinking = [
        Event(block_start=Block(thinking=Thinking())),
        Event(thinking="hmm"),
        Event(block_stop=pb.BlockStop()),
    ]
    provider = PlayedProvider([[start(), *thinking, *end()]])
    whole = await engine(provider).generate(request())
    signed = whole.choices[0].blocks[0].thinking
    assert SIGNER.carried(signed.signature, signed.text) is not None


def doubting() -> UpstreamError:
    return UpstreamError(
        errors_pb2.REASON_UPSTREAM_REJECTED, "no", status=400, body="Invalid `signature` in block"
    )


def thoughtful() -> GenerateRequest:
    thinking_request = request()
    signed = Thinking(text="hmm", signature=SIGNER.sign("hmm", "u"))
    thoughts = Message(
        role=conversation.ROLE_ASSISTANT, blocks=[Block(thinking=signed), Block(text="Hello")]
    )
    thinking_request.messages.extend([thoughts, thinking_request.messages[0]])
    return thinking_request


async def test_a_refused_signature_is_retried_without_thinking():
    provider = PlayedProvider([doubting()], [[start(), *text("ok"), *end()]])
    whole = await engine(provider).generate(thoughtful())
    assert whole.choices[0].blocks[0].text == "ok"
    assert whole.route.attempts == 2
    first, second = (
        sum(block.HasField("thinking") for m in call.request.messages for block in m.blocks)
        for call in provider.calls
    )
    assert (first, second) == (1, 0)


async def test_it_is_not_asked_a_third_time():
    provider = PlayedProvider([doubting()], [doubting()])
    with pytest.raises(UpstreamError):
        await engine(provider).generate(thoughtful())
    assert len(provider.calls) == 2


async def test_a_started_answer_is_not_retried_for_a_signature():
    provider = PlayedProvider([[start(), *text("a")], doubting()], [[start(), *end()]])
    with pytest.raises(UpstreamError):
        await events_of(engine(provider), thoughtful())
    assert len(provider.calls) == 1


async def test_too_many_max_tokens_are_refused_before_the_call():
    provider = PlayedProvider()
    with pytest.raises(GatewayError) as refused:
        await engine(provider, max_output_tokens=10).generate(request(max_tokens=11))
    assert refused.value.param == "max_tokens"
    assert provider.calls == []


@pytest.mark.parametrize(
    ("counts", "estimated"),
    [
        (7, False),
        (None, True),
        (UpstreamError(errors_pb2.REASON_UPSTREAM_ERROR, "down", status=500), True),
    ],
)
async def test_tokens_are_the_providers_count_or_else_an_estimate(counts, estimated):
    provider = PlayedProvider()
    provider.counts = counts
    counted = await engine(provider).count_tokens(request())
    assert counted.estimated is estimated
    assert counted.input_tokens == 7 or estimated


async def test_a_count_refused_by_the_provider_is_refused():
    provider = PlayedProvider()
    provider.counts = UpstreamError(errors_pb2.REASON_UPSTREAM_REJECTED, "no", status=400)
    with pytest.raises(UpstreamError):
        await engine(provider).count_tokens(request())
