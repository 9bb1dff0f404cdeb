"""Memories over HTTP, in both formats: looking into them and forgetting."""

import jsonschema_rs
import pytest
import pytest_asyncio

from facade.dialects.memory.examples import ANSWERS, CORRECTION, SEARCH
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    Message,
    Opaque,
    ToolResult,
    ToolUse,
)
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1 import memory_pb2 as pb
from services.common.errors import GatewayError, invalid
from tests.facade.memory_facade import ANTHROPIC, A, B, memory_facade
from tests.openapi import openapi_document

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMORIES = "/beta/v1/memories"
PROFILE = "/beta/v1/memory/profile"
DAY_MS, HOUR_MS = 1_793_232_000_000, 1_793_235_600_000
NAMES = {
    "trip": "trip",
    "trip%2Foslo": "trip/oslo",
    "%2Fa%2F%2Fb%2F": "/a//b/",
    "%C3%A9%E2%98%95": "é☕",
    "a%20b%3Fc%23d%25e": "a b?c#d%e",
    "x%2Fturns": "x/turns",
    "%2E%2E": "..",
    "a+b": "a+b",
}
MEMORY = pb.Memory(
    memory_id="trip/oslo",
    created_at_ms=DAY_MS,
    updated_at_ms=HOUR_MS,
    turns=21,
    summarised=10,
    pending=1,
    state=pb.Memory.STATE_IDLE,
)
SUMMARY = "User: My sister Mo lives in Oslo."
TURN = pb.Turn(
    number=21,
    created_at_ms=HOUR_MS,
    messages=[
        Message(role=conversation.ROLE_USER, blocks=[Block(text="Where does Mo live?")]),
        Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="In Oslo.")]),
    ],
)
FACT = pb.Fact(
    id="fact_01M835CFX0BH6JDAB4AZQTB778",
    topic="family",
    sub_topic="sister",
    value="Mo, in Oslo",
    sources=[pb.FactSource(memory_id="trip/oslo", turn=3)],
    updated_at_ms=DAY_MS,
)
BODIES = {"POST": SEARCH, "PATCH": CORRECTION}
ONE = f"{MEMORIES}/trip%2Foslo"
# Of each operation: how it is asked for, what the service is asked then, what that answers.
OPERATIONS = {
    "listMemories": (
        ("GET", MEMORIES),
        pb.ListMemoriesRequest(page_size=20),
        pb.ListMemoriesResponse(memories=[MEMORY]),
    ),
    "getMemory": (
        ("GET", ONE),
        pb.GetMemoryRequest(memory_id="trip/oslo"),
        pb.GetMemoryResponse(memory=MEMORY),
    ),
    "deleteMemory": (
        ("DELETE", ONE),
        pb.DeleteMemoryRequest(memory_id="trip/oslo"),
        pb.DeleteMemoryResponse(),
    ),
    "listMemoryTurns": (
        ("GET", f"{ONE}/turns"),
        pb.ListTurnsRequest(memory_id="trip/oslo", page_size=20),
        pb.ListTurnsResponse(turns=[TURN], next_page_token="MjA"),
    ),
    "searchMemory": (
        ("POST", f"{ONE}/search"),
        pb.SearchMemoryRequest(memory_id="trip/oslo", query=SEARCH["query"], top_k=SEARCH["limit"]),
        pb.SearchMemoryResponse(
            snippets=[pb.Snippet(turn=3, text=SUMMARY, created_at_ms=DAY_MS, score=0.0328)]
        ),
    ),
    "getProfile": (
        ("GET", PROFILE),
        pb.GetProfileRequest(),
        pb.GetProfileResponse(facts=[FACT]),
    ),
    "updateFact": (
        ("PATCH", f"{PROFILE}/facts/{FACT.id}"),
        pb.UpdateFactRequest(id=FACT.id, value="Mo, in Bergen"),
        pb.UpdateFactResponse(fact=pb.Fact()),
    ),
    "deleteFact": (
        ("DELETE", f"{PROFILE}/facts/{FACT.id}"),
        pb.DeleteFactRequest(id=FACT.id),
        pb.DeleteFactResponse(),
    ),
    "deleteProfile": (("DELETE", PROFILE), pb.DeleteProfileRequest(), pb.DeleteProfileResponse()),
}
OPERATIONS["getMemory"][2].memory.summary = SUMMARY
OPERATIONS["updateFact"][2].fact.MergeFrom(FACT)
OPERATIONS["updateFact"][2].fact.value = "Mo, in Bergen"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_facade():
    async with memory_facade() as facade:
        yield facade


@pytest.fixture
def facade(shared_facade):
    shared_facade.service.clear()
    return shared_facade


def described(name):
    (operation,) = [
        operation
        for operations in openapi_document()["paths"].values()
        for operation in operations.values()
        if operation["operationId"] == name
    ]
    return operation


def schema(of):
    return jsonschema_rs.validator_for({**of, "components": openapi_document()["components"]})


@pytest.mark.parametrize("headers", [A, B, ANTHROPIC])
@pytest.mark.parametrize("name", OPERATIONS)
async def test_every_endpoint_answers_as_the_document_shows(facade, name, headers):
    (method, path), asked, facade.service.answer = OPERATIONS[name]
    options = {"json": BODIES[method]} if method in BODIES else {}
    answer, body = await facade.ask(method, path, headers=headers, **options)
    assert answer.status == 200
    assert facade.service.calls == [asked]
    assert body == ANSWERS[name][headers is not A]
    content = described(name)["responses"]["200"]["content"]["application/json"]
    schema(content["schema"]).validate(body)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_the_examples_fit_the_document(name):
    content = described(name)["responses"]["200"]["content"]["application/json"]
    for letter, credential, told in zip(
        "AB", ("Authorization", "x-api-key"), ANSWERS[name], strict=True
    ):
        assert content["examples"][credential] == {"value": told}
        of_format = openapi_document()["components"]["schemas"][f"MemoryFormat{letter}.{name}"]
        schema(of_format).validate(told)


async def test_the_example_of_a_search_fits_the_document():
    content = described("searchMemory")["requestBody"]["content"]["application/json"]
    schema(content["schema"]).validate(content["example"])
    assert content["example"] == SEARCH


@pytest.mark.parametrize("written", NAMES)
async def test_a_name_is_read_with_its_encoding_undone(facade, written):
    for path in ("", "/turns"):
        facade.service.failure = GatewayError(errors_pb2.REASON_NOT_FOUND, "there is none")
        answer, _ = await facade.ask("GET", f"{MEMORIES}/{written}{path}")
        assert answer.status == 404
    assert [call.memory_id for call in facade.service.calls] == [NAMES[written]] * 2


@pytest.mark.parametrize("written", ["a%0Ab", "%00", "a" * 257, "%C2%85"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_name_that_no_memory_can_have_is_refused(facade, method, written):
    answer, body = await facade.ask(method, f"{MEMORIES}/{written}")
    assert (answer.status, body["error"]["param"]) == (400, "memory_id")
    assert not facade.service.calls


async def test_a_list_continues_at_its_next_page(facade):
    facade.service.answer = pb.ListMemoriesResponse(memories=[MEMORY], next_page_token="abc-_1")
    _, body = await facade.ask("GET", f"{MEMORIES}?limit=1")
    assert (body["has_more"], body["next_page"]) == (True, "abc-_1")
    await facade.ask("GET", f"{MEMORIES}?limit=1&page={body['next_page']}")
    assert facade.service.calls[-1] == pb.ListMemoriesRequest(page_size=1, page_token="abc-_1")
    facade.service.answer = pb.ListTurnsResponse()
    _, body = await facade.ask("GET", f"{MEMORIES}/m/turns?limit=1000&page=x")
    assert body["data"] == []
    assert (body["first_id"], body["last_id"], body["has_more"]) == (None, None, False)
    assert facade.service.calls[-1] == pb.ListTurnsRequest(
        memory_id="m", page_size=1000, page_token="x"
    )


@pytest.mark.parametrize("path", [MEMORIES, f"{MEMORIES}/m/turns"])
@pytest.mark.parametrize(
    ("query", "param"),
    [("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("page=", "page")],
)
async def test_a_wrong_page_is_refused(facade, path, query, param):
    answer, body = await facade.ask("GET", f"{path}?{query}")
    assert (answer.status, body["error"]["param"]) == (400, param)
    assert not facade.service.calls


@pytest.mark.parametrize("path", [MEMORIES, f"{MEMORIES}/m/turns"])
async def test_a_page_that_the_service_refuses_has_the_callers_name(facade, path):
    facade.service.failure = invalid("page_token", "page_token: is none")
    answer, body = await facade.ask("GET", f"{path}?page=x")
    assert (answer.status, body["error"]["param"]) == (400, "page")
    assert body["error"]["message"].startswith("page: ")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "x" * 10_001}, "query"),
        ({"query": 1}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 101}, "limit"),
        ({"query": "x", "top": 1}, "top"),
    ],
)
async def test_a_wrong_search_is_refused(facade, body, param):
    answer, answer_body = await facade.ask("POST", f"{MEMORIES}/m/search", json=body)
    assert (answer.status, answer_body["error"]["param"]) == (400, param)
    assert not facade.service.calls


async def test_a_search_without_a_limit_asks_for_eight(facade):
    await facade.ask("POST", f"{MEMORIES}/m/search", json={"query": "x"})
    assert facade.service.calls[0].top_k == 8


async def test_messages_are_shown_with_all_they_hold(facade):
    picture = Media(
        kind=conversation.MEDIA_KIND_IMAGE, sha256=b"\1" * 32, mime_type="image/png", name="a.png"
    )
    linked = Media(kind=conversation.MEDIA_KIND_DOCUMENT, url="https://x/y", description="A map.")
    filed = Media(kind=conversation.MEDIA_KIND_AUDIO, file_id="file-1")
    opaque = Opaque(dialect=conversation.DIALECT_ANTHROPIC, json=b'{"type":"search"}')
    call = ToolUse(id="c1", name="look", input='{"a":1}')
    result = ToolResult(tool_use_id="c1", blocks=[Block(text="It is")], is_error=True)
    turn = pb.Turn(
        number=1,
        created_at_ms=DAY_MS,
        open=True,
        messages=[
            Message(
                role=conversation.ROLE_USER,
                name="ada",
                blocks=[Block(media=one) for one in (picture, linked, filed)],
            ),
            Message(
                role=conversation.ROLE_ASSISTANT,
                blocks=[Block(refusal="No"), Block(tool_use=call), Block(opaque=opaque)],
            ),
            Message(role=conversation.ROLE_USER, blocks=[Block(tool_result=result)]),
        ],
    )
    facade.service.answer = pb.ListTurnsResponse(turns=[turn])
    _, body = await facade.ask("GET", f"{MEMORIES}/m/turns")
    assert body["data"][0]["open"] is True
    assert body["data"][0]["messages"] == [
        {
            "role": "user",
            "name": "ada",
            "content": [
                {
                    "type": "image",
                    "sha256": "01" * 32,
                    "mime_type": "image/png",
                    "name": "a.png",
                },
                {"type": "document", "url": "https://x/y", "description": "A map."},
                {"type": "audio", "file_id": "file-1"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "refusal", "refusal": "No"},
                {"type": "tool_use", "id": "c1", "name": "look", "input": '{"a":1}'},
                {"type": "other", "value": {"type": "search"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "It is"}],
                    "is_error": True,
                }
            ],
        },
    ]
    content = described("listMemoryTurns")["responses"]["200"]["content"]["application/json"]
    schema(content["schema"]).validate(body)


FAILURES = [
    (errors_pb2.REASON_MEMORY_BUSY, 429, "memory_busy", "rate_limit_error", "rate_limit_error"),
    (
        errors_pb2.REASON_MEMORY_QUOTA_EXCEEDED,
        403,
        "memory_quota_exceeded",
        "permission_error",
        "permission_error",
    ),
    (
        errors_pb2.REASON_MEMORY_NOT_SYNCHRONIZED,
        503,
        "memory_not_synchronized",
        "server_error",
        "overloaded_error",
    ),
]


@pytest.mark.parametrize("failure", FAILURES)
async def test_failures_of_memory_have_their_status_and_code(facade, failure):
    reason, status, code, *types = failure
    waits = 3 if status != 403 else None
    facade.service.failure = GatewayError(reason, "it is so", retry_after_s=waits)
    for headers, kind in ((A, types[0]), (B, types[1])):
        answer, body = await facade.ask("DELETE", f"{MEMORIES}/m", headers=headers)
        assert answer.status == status
        assert answer.headers.get("Retry-After") == ("3" if waits else None)
        assert (body["error"]["code"], body["error"]["type"]) == (code, kind)


async def test_the_version_is_needed_with_an_api_key(facade):
    answer, body = await facade.ask("GET", MEMORIES, headers={"x-api-key": B["x-api-key"]})
    assert (answer.status, body["error"]["param"]) == (400, "compat-version")
    assert not facade.service.calls


@pytest.mark.parametrize("name", OPERATIONS)
async def test_nobody_gets_in_without_a_key(facade, name):
    (method, path), _, _ = OPERATIONS[name]
    answer, _ = await facade.ask(method, path, headers={})
    assert answer.status == 401
    assert not facade.service.calls
