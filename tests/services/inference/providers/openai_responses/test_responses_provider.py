"""The adapter of responses over HTTP, in front of a server that plays scripts."""

from collections.abc import AsyncIterator

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_RESPONSES,
    MEDIA_KIND_DOCUMENT,
    MEDIA_KIND_IMAGE,
)
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest, GenerateResponse
from services.common.errors import UpstreamError
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.learned.refusals import ENCRYPTED_REASONING, new_refusals
from services.inference.providers.base import AnswerForm, Call, MissingEndpointError
from services.inference.providers.openai_responses import ResponsesProvider
from services.inference.providers.openai_responses.endpoint import EndpointSupport, is_about_path
from tests.services.inference.providers.openai_responses.responses_answers import (
    answer,
    data,
    events_of,
    function_call,
    handed_on,
    message,
    natives,
    reasoning,
    response,
    text,
)
from tests.services.inference.providers.openai_responses.responses_calls import call_of
from tests.services.inference.providers.scripted_server import (
    END,
    SSE_HEAD,
    Connection,
    Script,
    ScriptedUpstream,
    scripted_upstream,
)

ANSWER = response(reasoning("a"), message(text("Hello")), function_call())
BOTH = pytest.mark.parametrize("stream", [False, True])


@pytest.fixture
async def here() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as made:
        yield made
        assert made.live.count == 0, "every call that began is over"


def provider(
    here: ScriptedUpstream, unsupported_urls: set[str] | None = None, *, fetches_urls: bool = False
) -> ResponsesProvider:
    endpoint = EndpointSupport(
        here.server.url, set() if unsupported_urls is None else unsupported_urls
    )
    return ResponsesProvider(
        "acme",
        here.upstream(classify=endpoint.classify),
        here.upstream(),
        endpoint,
        here.upstream(),
        endpoint,
        pass_stateful=False,
        newest=True,
        fetches_urls=fetches_urls,
    )


def streams(*pieces: bytes, end: bytes = END) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        for piece in pieces:
            await connection.chunk(piece)
        await connection.send(end)

    return script


async def events_from(adapter: ResponsesProvider, call: Call) -> list[Event]:
    if not call.stream:
        return await adapter.whole(call)
    return [event async for batch in adapter.stream(call) for event in batch]


async def answer_of(adapter: ResponsesProvider, call: Call) -> GenerateResponse:
    return answer(await events_from(adapter, call))


def plays_answer(here: ScriptedUpstream, stream: bool) -> None:
    if stream:
        here.server.plays(streams(data(*events_of(ANSWER))))
    else:
        here.server.plays(lambda c: c.answer(orjson.dumps(ANSWER)))


@BOTH
async def test_a_request_goes_to_the_endpoint(here: ScriptedUpstream, stream: bool) -> None:
    plays_answer(here, stream)
    call = call_of(stream=stream, headers={"openai-beta": "x=1", "openai-project": "p"})
    found = await answer_of(provider(here), call)
    assert [block.WhichOneof("kind") for block in found.choices[0].blocks] == [
        *("thinking", "text", "tool_use")
    ]
    (request,) = here.server.requests
    assert request.target == "/v1/responses"
    assert request.headers["authorization"] == "Bearer very-secret-word"
    assert request.headers["openai-beta"] == "x=1"
    assert "openai-project" not in request.headers
    assert ("stream" in orjson.loads(request.body)) == stream
    assert call.answer_headers is not None


async def test_a_whole_answer_goes_as_it_is_where_that_is_taken(here: ScriptedUpstream) -> None:
    plays_answer(here, False)
    found = await provider(here).whole(call_of(accepts=AnswerForm.PASSTHROUGH))
    assert isinstance(found, PassthroughAnswer)
    assert {"id": ANSWER["id"], **orjson.loads(found.passthrough)} == ANSWER
    assert found.usage.output_tokens == 7


async def test_events_go_as_they_are_where_that_is_taken(here: ScriptedUpstream) -> None:
    plays_answer(here, True)
    events = await events_from(provider(here), call_of(stream=True, accepts=AnswerForm.PASSTHROUGH))
    sent = [orjson.loads(event) for event in natives(events)]
    assert sent == [*map(handed_on, events_of(ANSWER))]
    assert not any(e.native for e in await events_from(provider(here), call_of(stream=True)))


@pytest.mark.parametrize("at", [1, 4, 7, 10])
async def test_a_stream_that_is_killed_has_no_end(here: ScriptedUpstream, at: int) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(data(*events_of(ANSWER)[:at]))
        connection.reset()

    here.server.plays(script)
    found: list[Event] = []
    with pytest.raises(UpstreamError) as raised:
        async for batch in provider(here).stream(call_of(stream=True)):
            found += batch
    assert raised.value.reason == Reason.REASON_UPSTREAM_CONNECTION
    assert found[0].HasField("start")
    assert not any(event.HasField("finish") for event in found)


@BOTH
async def test_a_failed_response_is_a_failure(here: ScriptedUpstream, stream: bool) -> None:
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    failed = response(status="failed", error=error)
    if stream:
        here.server.plays(streams(data({"type": "response.failed", "response": failed})))
    else:
        here.server.plays(lambda c: c.answer(orjson.dumps(failed)))
    with pytest.raises(UpstreamError) as raised:
        await events_from(provider(here), call_of(stream=stream))
    assert raised.value.reason == Reason.REASON_UPSTREAM_RATE_LIMITED


@BOTH
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b'{"detail":"Not Found"}'),
        (404, b"404 page not found"),
        (404, b""),
        (404, b'{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}'),
        (404, b'{"error":{"message":"Invalid URL (POST /v1/responses)","code":null}}'),
        (405, b'{"detail":"Method Not Allowed"}'),
        (501, b""),
    ],
)
async def test_a_server_without_the_path_is_remembered(
    here: ScriptedUpstream, stream: bool, status: int, body: bytes
) -> None:
    here.server.plays(lambda c: c.answer(body, status))
    unsupported_urls: set[str] = set()
    adapter = provider(here, unsupported_urls)
    assert adapter.is_supported
    with pytest.raises(MissingEndpointError):
        await events_from(adapter, call_of(stream=stream))
    assert not adapter.is_supported
    assert not provider(here, unsupported_urls).is_supported, "also once settings are reloaded"


async def test_a_server_without_counts_keeps_its_responses(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b'{"detail":"Not Found"}', 404))
    adapter = provider(here)
    with pytest.raises(UpstreamError) as raised:
        await adapter.count_tokens(call_of(stream=False))
    assert not isinstance(raised.value, MissingEndpointError)
    assert adapter.is_supported


@pytest.mark.parametrize(
    "message",
    [
        "The model `x` does not exist or you do not have access to it.",
        "The API deployment for this resource does not exist.",
        "Item with id 'rs_1' not found.",
        "Previous response with id 'resp_1' not found.",
    ],
)
def test_a_404_of_something_else_is_not_about_the_path(message: str) -> None:
    assert not is_about_path(404, orjson.dumps({"error": {"message": message}}))
    assert not is_about_path(400, b"")


async def test_a_refusal_of_encrypted_thoughts_is_learnt(here: ScriptedUpstream) -> None:
    error = {"message": "Encrypted content is not supported with this model.", "param": "include"}
    here.server.plays(lambda c: c.answer(orjson.dumps({"error": error}), 400))
    with pytest.raises(UpstreamError) as raised:
        await events_from(provider(here), call_of(thinks=None))
    assert new_refusals(raised.value, frozenset()) == [ENCRYPTED_REASONING]
    with pytest.raises(UpstreamError):
        await events_from(provider(here), call_of(refused_fields=frozenset({ENCRYPTED_REASONING})))
    first, second = (orjson.loads(request.body) for request in here.server.requests)
    assert first["include"] == ["reasoning.encrypted_content"]
    assert "include" not in second


@pytest.mark.parametrize(
    ("fields", "refused_fields", "goes"),
    [
        ({}, frozenset(), True),
        ({}, frozenset({"temperature"}), True),
        ({}, frozenset({ENCRYPTED_REASONING}), True),
        ({"include": []}, frozenset({ENCRYPTED_REASONING}), False),
        ({"reasoning": {"effort": "low"}}, frozenset({"reasoning_effort"}), False),
        ({"text": {"verbosity": "low"}}, frozenset({"verbosity"}), False),
        ({"text": {"verbosity": "low"}}, frozenset({"long_ids"}), False),
        ({"tools": [{"type": "function", "name": "f"}]}, frozenset(), True),
    ],
)
async def test_a_conversation_goes_as_it_is_unless_fields_are_refused(
    here: ScriptedUpstream, fields: dict[str, object], refused_fields: frozenset[str], goes: bool
) -> None:
    request_fields = {"input": "hi", **fields}
    lazy = LazyRequest(
        GenerateRequest(dialect=DIALECT_RESPONSES),
        request_fields,
        size=1,
        requires_official_api=True,
    )
    assert provider(here).takes_lazy(lazy, refused_fields) == goes


async def test_documents_may_be_fetched_as_images_are(here: ScriptedUpstream) -> None:
    assert provider(here).fetches == frozenset()
    assert provider(here, fetches_urls=True).fetches == {MEDIA_KIND_IMAGE, MEDIA_KIND_DOCUMENT}
