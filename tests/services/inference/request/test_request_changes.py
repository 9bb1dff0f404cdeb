"""The part of a request that each step's model receives."""

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError, UpstreamError
from services.inference.request.request_changes import clamped, merged
from tests.services.inference.fallback.scripted_engine import (
    ScriptedEngine,
    answer,
    chain,
    failing,
    request,
)
from tests.services.inference.fallback.virtual_time import in_no_time

DOCUMENT = conversation.MEDIA_KIND_DOCUMENT
TEXT_FILE = Media(kind=DOCUMENT, data=b"words", mime_type="text/plain", name="a.txt")


def user(*blocks: Block) -> Message:
    return Message(role=conversation.ROLE_USER, blocks=blocks)


def test_what_a_step_sets_replaces_and_the_rest_stays():
    outer = request(temperature=1, stop_sequences=["a", "b"], top_k=3, messages=[user()])
    over = merged(outer, pb.GenerateRequest(temperature=0, stop_sequences=["c"]))
    assert (over.temperature, list(over.stop_sequences), over.top_k) == (0, ["c"], 3)
    assert (outer.temperature, list(outer.stop_sequences)) == (1, ["a", "b"])


@pytest.mark.parametrize(
    ("limit", "budget", "dropped"), [(9000, 8000, []), (4000, 3999, []), (1000, None, ["thinking"])]
)
def test_a_budget_of_thinking_stays_below_the_tokens(limit, budget, dropped):
    thinking = pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_ENABLED, budget_tokens=8000)
    outer = request(max_tokens=10_000, thinking=thinking)
    fitting, dropped_fields = clamped(outer, limit)
    assert (fitting.max_tokens, dropped_fields) == (limit, dropped)
    kept = fitting.thinking.budget_tokens if fitting.HasField("thinking") else None
    assert kept == budget
    assert (outer.max_tokens, outer.thinking.budget_tokens) == (10_000, 8000)


@in_no_time
async def test_a_text_for_one_model_is_still_a_file_for_the_next():
    scripted = ScriptedEngine(inputs={"b": ["pdf"]})
    scripted.p.plays("a", [failing(404)])
    chained = chain("a", "b")
    chained.messages.append(user(Block(media=TEXT_FILE)))
    await scripted.ask(True, chained)
    first, second = (call.request.messages[-1].blocks[0] for _, call in scripted.p.calls)
    assert first == Block(text="[a.txt]\nwords")
    assert second.media == TEXT_FILE


@in_no_time
async def test_a_model_of_which_nothing_is_known_is_sent_every_medium():
    scripted = ScriptedEngine()
    image = Media(kind=conversation.MEDIA_KIND_IMAGE, data=b"x", mime_type="image/png")
    with_image = request()
    with_image.messages.append(user(Block(media=image)))
    _, served, _ = await scripted.ask(True, with_image)
    (sent,) = (call.request for _, call in scripted.p.calls)
    assert (served.step, sent.messages[-1].blocks[0].media.data) == ("primary", b"x")


@in_no_time
async def test_a_model_that_cannot_read_a_medium_is_left_out():
    scripted = ScriptedEngine(inputs={"a": ["text"], "b": ["image"]})
    image = Media(kind=conversation.MEDIA_KIND_IMAGE, data=b"x", mime_type="image/png")
    with_image = request()
    with_image.messages.append(user(Block(media=image)))
    with_image.multimodal.image.model = "nobody"  # who could describe it for the first
    text, served, _ = await scripted.ask(True, with_image)
    assert (text, served.attempts) == ("I am b", 1)


@in_no_time
async def test_files_are_placed_in_the_conversation_of_a_step_too():
    scripted = ScriptedEngine()
    file = Media(kind=DOCUMENT, file_id="file-00000000000000000000000000")
    parameters = pb.GenerateRequest(messages=[user(Block(media=file))])
    with pytest.raises(GatewayError) as refused:
        await scripted.ask(True, chain("a", {"model": "b", "parameters": parameters}))
    assert refused.value.param == ("fallback_config.steps[1].parameters.messages[0].blocks[0]")
    assert not scripted.p.calls


@in_no_time
async def test_ids_of_one_providers_own_files_are_for_it_to_judge():
    scripted = ScriptedEngine()
    scripted.q.pass_stateful = True
    foreign = Media(kind=DOCUMENT, file_id="file-abc")
    chained = chain("pre", "b", multimodal=pb.Multimodal(enabled=False))
    chained.messages.append(user(Block(media=foreign)))
    text, _, _ = await scripted.ask(True, chained)
    assert text == "I am pre"


UNSUPPORTED = '{"error": {"message": "Unsupported parameter: %s", "param": "%s"}}'


@pytest.mark.parametrize("stream", [False, True])
@in_no_time
async def test_a_field_that_a_model_refuses_is_left_out_from_then_on(stream):
    scripted = ScriptedEngine()
    refusals = [failing(400, UNSUPPORTED % (name, name)) for name in ("temperature", "top_p")]
    scripted.p.plays("a", [refusals[0]], [refusals[1]], answer("I am a"))
    text, served, _ = await scripted.ask(stream, request())
    assert (text, served.step) == ("I am a", "primary")
    await scripted.ask(stream, request())
    assert [call.refused_fields for _, call in scripted.p.calls] == [
        frozenset(),
        {"temperature"},
        {"temperature", "top_p"},
        {"temperature", "top_p"},
    ]


@in_no_time
async def test_a_field_refused_after_it_was_dropped_is_an_error():
    scripted = ScriptedEngine(fallbacks=())
    scripted.p.plays("a", [failing(400, UNSUPPORTED % ("seed", "seed"))])
    with pytest.raises(UpstreamError):
        await scripted.ask(False, request())
    assert len(scripted.p.calls) == 2


@in_no_time
async def test_max_tokens_of_agents_are_lowered_and_reported():
    scripted = ScriptedEngine()
    with pytest.raises(GatewayError):
        await scripted.ask(False, request("short", max_tokens=32_000))
    _, served, _ = await scripted.ask(
        False, request("short", max_tokens=32_000, lowers_max_tokens=True)
    )
    (sent,) = (call.request for _, call in scripted.p.calls)
    assert (sent.max_tokens, list(served.dropped)) == (100, ["max_tokens"])
