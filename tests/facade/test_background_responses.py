"""Background responses with OpenAI's client: polling, streams, cancelling, limits, drains."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import orjson
import pytest
import pytest_asyncio

from tests.facade.response_clients import ECHO, Gate, ResponseGateway, response_gateway
from tests.faults import actions
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "openai/model"
ASKED: Any = {"model": MODEL, "input": "Hi", "background": True}
LIMITS = {"max_background_responses": 1, "max_queued_responses": 1, "keepalive_s": 0.05}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResponseGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    async with response_gateway(folder, limits=LIMITS) as one:
        yield one


@pytest.fixture
def gate(at: ResponseGateway) -> Iterator[Gate]:
    gate = Gate()
    at.upstream.forget()
    at.upstream.plays("model", gate.action)
    yield gate
    gate.opened.set()


def counted(at: ResponseGateway) -> float | None:
    return at.gateway.counters.get_sample_value("gateway_http_background_responses")


async def test_a_background_response_is_polled(at: ResponseGateway, gate: Gate) -> None:
    queued = await at.ada.responses.create(**ASKED)
    assert (queued.status, queued.background, queued.output) == ("queued", True, [])
    await at.until_status(queued.id, "in_progress")
    gate.opened.set()
    done = await at.ended(queued.id)
    assert (done.status, done.output_text) == ("completed", actions.TEXT)
    assert (done.id, done.created_at) == (queued.id, queued.created_at)
    assert len(at.upstream.asked("model")) == 1
    after = await at.ada.responses.create(
        model=ECHO, input="(sandbox: recite)", previous_response_id=done.id
    )
    assert actions.TEXT in after.output_text


async def test_others_neither_see_nor_cancel_it(at: ResponseGateway, gate: Gate) -> None:
    queued = await at.ada.responses.create(**ASKED)
    for call in (at.bob.responses.retrieve(queued.id), at.bob.responses.cancel(queued.id)):
        with pytest.raises(openai.NotFoundError):
            await call
    gate.opened.set()
    assert (await at.ended(queued.id)).status == "completed"


async def test_cancelling_ends_the_call_at_the_provider(at: ResponseGateway, gate: Gate) -> None:
    queued = await at.ada.responses.create(**ASKED)
    await until(lambda: at.upstream.asked("model"))
    cancelled = await at.ada.responses.cancel(queued.id)
    assert (cancelled.id, cancelled.status) == (queued.id, "cancelled")
    await at.upstream.asked("model")[0].left.wait()
    assert (await at.ada.responses.cancel(queued.id)).to_dict() == cancelled.to_dict()
    assert (await at.ada.responses.retrieve(queued.id)).to_dict() == cancelled.to_dict()


async def test_cancelling_what_has_ended_changes_nothing(at: ResponseGateway, gate: Gate) -> None:
    gate.opened.set()
    queued = await at.ada.responses.create(**ASKED)
    done = await at.ended(queued.id)
    assert (await at.ada.responses.cancel(queued.id)).to_dict() == done.to_dict()


async def test_deleting_ends_the_call_at_the_provider(at: ResponseGateway, gate: Gate) -> None:
    queued = await at.ada.responses.create(**ASKED)
    await until(lambda: at.upstream.asked("model"))
    await at.ada.responses.delete(queued.id)
    await at.upstream.asked("model")[0].left.wait()
    with pytest.raises(openai.NotFoundError):
        await at.ada.responses.retrieve(queued.id)


async def test_its_stream_is_resumed_where_it_was_left(at: ResponseGateway, gate: Gate) -> None:
    stream = await at.ada.responses.create(**ASKED, stream=True)
    seen = []
    async for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    assert [event.type for event in seen[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    response_id = seen[0].response.id
    await at.until_status(response_id, "in_progress")
    gate.opened.set()
    last_seen = seen[-1].sequence_number
    rest = [event async for event in await at.stream(f"{response_id}:{last_seen}")]
    numbers = [event.sequence_number for event in (*seen, *rest)]
    assert numbers == list(range(len(numbers)))
    texts = [e.delta for e in (*seen, *rest) if e.type == "response.output_text.delta"]
    assert "".join(texts) == actions.TEXT
    assert rest[-1].type == "response.completed"
    whole = [event async for event in await at.stream(response_id)]
    assert [event.to_dict() for event in whole] == [event.to_dict() for event in (*seen, *rest)]


async def test_the_client_of_a_stream_gets_all_of_it(at: ResponseGateway, gate: Gate) -> None:
    gate.opened.set()
    stream = await at.ada.responses.create(**ASKED, stream=True)
    events = [event async for event in stream]
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(events)))
    retrieved = await at.ada.responses.retrieve(events[0].response.id)
    assert retrieved.to_dict() == events[-1].response.to_dict()


async def test_a_stream_that_is_too_large_breaks_off(
    at: ResponseGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.responses.live_events.MAX_EVENTS", 10_000)
    at.upstream.plays("model", actions.answers("word " * 500))
    url = f"{at.gateway.url}/beta/v1/responses"
    body = {**ASKED, "stream": True}
    async with at.gateway.http.post(url, json=body, headers=at.gateway.bearer()) as answer:
        await answer.content.readline()
        created = await answer.content.readline()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    response_id = orjson.loads(created.removeprefix(b"data: "))["response"]["id"]
    assert (await at.ended(response_id)).status == "completed"
    made = [event async for event in await at.stream(response_id)]
    assert made[-1].type == "response.completed"
    assert sum(event.type == "response.output_text.delta" for event in made) == 1


async def test_a_stream_waits_for_a_running_response(at: ResponseGateway, gate: Gate) -> None:
    queued = await at.ada.responses.create(**ASKED)
    url = f"{at.gateway.url}/beta/v1/responses/{queued.id}?stream=true"
    async with at.gateway.http.get(url, headers=at.gateway.bearer()) as answer:
        assert await answer.content.readline() == b": keep-alive\n"
        gate.opened.set()
        rest = await answer.text()
    types = [line[7:] for line in rest.splitlines() if line.startswith("event: ")]
    assert types[:3] == ["response.created", "response.queued", "response.in_progress"]
    assert types[-1] == "response.completed"


async def test_one_runs_and_another_waits(at: ResponseGateway, gate: Gate) -> None:
    first = await at.ada.responses.create(**ASKED)
    await at.until_status(first.id, "in_progress")
    second = await at.ada.responses.create(**ASKED)
    with pytest.raises(openai.RateLimitError) as raised:
        await at.ada.responses.create(**ASKED)
    assert raised.value.param == "background"
    theirs = await at.bob.responses.create(**ASKED)
    await until(lambda: len(at.upstream.asked("model")) == 2)
    assert (await at.ada.responses.retrieve(second.id)).status == "queued"
    assert counted(at) == 3
    gate.opened.set()
    assert (await at.ended(second.id)).status == "completed"
    assert (await at.ended(first.id)).status == "completed"
    assert len(at.upstream.asked("model")) == 3
    await at.bob.responses.delete(theirs.id)
    again = await at.ada.responses.create(**ASKED)
    assert (await at.ended(again.id)).status == "completed"
    await until(lambda: counted(at) == 0)


async def test_a_queued_response_is_cancelled(at: ResponseGateway, gate: Gate) -> None:
    first = await at.ada.responses.create(**ASKED)
    await at.until_status(first.id, "in_progress")
    second = await at.ada.responses.create(**ASKED)
    assert (await at.ada.responses.cancel(second.id)).status == "cancelled"
    gate.opened.set()
    await at.ended(first.id)
    assert len(at.upstream.asked("model")) == 1


async def test_a_failure_of_the_provider_is_stored(at: ResponseGateway) -> None:
    at.upstream.plays("model", actions.fails(400, "no luck"))
    queued = await at.ada.responses.create(**ASKED)
    failed = await at.ended(queued.id)
    assert failed.status == "failed"
    assert "no luck" in failed.error.message
    stream = await at.ada.responses.create(**ASKED, stream=True)
    *_, last = [event async for event in stream]
    assert last.type == "response.failed"
    assert last.response.model == MODEL


async def test_a_refusal_names_fields_of_the_body(at: ResponseGateway) -> None:
    missing = {"type": "input_file", "file_id": "file_gw_missing"}
    asked: Any = {"model": ECHO, "input": [{"role": "user", "content": [missing]}]}
    before = await at.ada.responses.create(model=ECHO, input="Hi")
    for continued in ({}, {"previous_response_id": before.id}):
        with pytest.raises(openai.APIStatusError) as raised:
            await at.ada.responses.create(**asked, **continued)
        assert raised.value.param == "input[0].content[0]"
        stream = await at.ada.responses.create(**asked, **continued, background=True, stream=True)
        *_, error, last = [event async for event in stream]
        assert (error.type, error.param) == ("error", raised.value.param)
        failed = await at.ada.responses.retrieve(last.response.id)
        assert failed.error.message == error.message == raised.value.body["message"]


async def test_a_running_response_is_not_continued(at: ResponseGateway, gate: Gate) -> None:
    queued = await at.ada.responses.create(**ASKED)
    with pytest.raises(openai.BadRequestError) as raised:
        await at.ada.responses.create(model=ECHO, input="x", previous_response_id=queued.id)
    assert raised.value.param == "previous_response_id"
    gate.opened.set()
    await at.ended(queued.id)


async def test_background_needs_store(at: ResponseGateway) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await at.ada.responses.create(**ASKED, store=False)
    assert raised.value.param == "background"


async def test_an_answer_that_does_not_fit_is_a_failure(tmp_path: Path) -> None:
    memory = {"storage": {"enterprise": 10_000}}
    async with response_gateway(tmp_path, memory=memory) as at:
        at.upstream.plays("model", actions.answers("x" * 20_000))
        for stream in (False, True):
            if stream:
                events = await at.ada.responses.create(**ASKED, stream=True)
                *_, last = [event async for event in events]
                assert last.type == "response.failed"
                response_id = last.response.id
            else:
                response_id = (await at.ada.responses.create(**ASKED)).id
            failed = await at.ended(response_id)
            assert (failed.status, failed.output) == ("failed", [])
            assert "exceeds your plan's storage quota" in failed.error.message


async def test_half_a_message_is_no_bound_on_a_body(tmp_path: Path) -> None:
    async with response_gateway(tmp_path, limits={"max_message_bytes": 100_000}) as at:
        queued = await at.ada.responses.create(model=ECHO, input="x" * 90_000, background=True)
        assert (await at.ended(queued.id)).status == "completed"


async def test_a_stopping_gateway_ends_what_it_cannot_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may need longer than half a second to store them.
    monkeypatch.setattr("services.responses.background._STOPPING_S", 20.0)
    limits = {"drain_s": 0, "max_background_responses": 1}
    async with response_gateway(tmp_path, limits=limits) as at:
        at.upstream.plays("model", Gate().action)
        running = await at.ada.responses.create(**ASKED)
        await until(lambda: at.upstream.asked("model"))
        waiting = await at.ada.responses.create(**ASKED)
        key = at.gateway.key
    async with response_gateway(tmp_path) as again:
        ada = again.ada.with_options(api_key=key)
        for response_id in (running.id, waiting.id):
            failed = await ada.responses.retrieve(response_id)
            assert failed.status == "failed"
            assert "stopping" in failed.error.message


async def test_a_stopping_gateway_lets_responses_end(tmp_path: Path) -> None:
    async with response_gateway(tmp_path) as at:
        gate = Gate()
        at.upstream.plays("model", gate.action)
        running = await at.ada.responses.create(**ASKED)
        await until(lambda: at.upstream.asked("model"))
        key = at.gateway.key
        # It goes on while the gateway drains.
        gate.opened.set()
    async with response_gateway(tmp_path) as again:
        done = await again.ada.with_options(api_key=key).responses.retrieve(running.id)
        assert (done.status, done.output_text) == ("completed", actions.TEXT)
