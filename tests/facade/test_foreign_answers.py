"""Answers of a provider whose dialect has parts that the caller's lacks."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

PAGE = {"url": "https://a.example", "title": "A"}
CITED = {"type": "web_search_result_location", **PAGE, "cited_text": "so", "encrypted_index": "e"}
OF_A_FILE = {"type": "page_location", "document_index": 0, "cited_text": "so"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
SAYS = {"type": "text", "text": "Found", "citations": [CITED]}
CALLS = {**{"type": "tool_use", "id": "t1", "name": "f", "input": {}}, "caller": {"type": "direct"}}
USAGE = {"input_tokens": 1, "output_tokens": 1}
REFUSED = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "No."}}
LEGACY = {"function_call": {"name": "f", "arguments": '{"a": 1}'}, "content": None}
ANNOTATION = {"type": "url_citation", "url_citation": {**PAGE, "start_index": 0, "end_index": 0}}
NAMED = "answer.server_tool_use, answer.web_search_tool_result"


@dataclass
class Server:
    """A provider of every dialect that answers as it is told.

    Attributes:
        answer: a whole answer, or the events of a stream.
        later: events that are sent once `begun` is set.
    """

    answer: Any = None
    later: list[str] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if not isinstance(self.answer, list):
            return web.json_response(self.answer)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write("".join(self.answer).encode())
        if self.later:
            await self.begun.wait()
            await response.write("".join(self.later).encode())
        return response


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Server]:
    one, app = Server(), web.Application()
    app.router.add_post("/{path:.*}", one.serve)
    async with serving(app) as one.url:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    server: Server, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    providers = {
        "openai": {"kind": "openai", "base_url": f"{server.url}/v1", "responses": False},
        "anthropic": {"kind": "anthropic", "base_url": server.url},
        "gemini": {"kind": "gemini", "base_url": f"{server.url}/v1beta"},
    }
    settings = {name: {**one, "api_key": "k"} for name, one in providers.items()}
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder, server.url, providers=settings) as running:
        yield running


def message(*content: Json, **end: Any) -> Json:
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": USAGE}
    return {**start, "content": content, "stop_reason": "end_turn", **end}


def events(*content: Json, **end: Any) -> list[str]:
    """Return the stream of a message; the text and the citations of its texts are deltas."""
    told: list[Json] = [{"type": "message_start", "message": message()}]
    for index, block in enumerate(content):
        deltas = [
            {"type": "citations_delta", "citation": one} for one in block.get("citations", ())
        ]
        if "text" in block:
            deltas += [{"type": "text_delta", "text": piece} for piece in block["text"]]
            block = {"type": "text", "text": "", "citations": []}
        told += [
            {"type": "content_block_start", "index": index, "content_block": block},
            *({"type": "content_block_delta", "index": index, "delta": one} for one in deltas),
            {"type": "content_block_stop", "index": index},
        ]
    told += [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", **end}, "usage": USAGE},
        {"type": "message_stop"},
    ]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in told]


def completion(said: Json, reason: str = "stop") -> Json:
    choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": reason}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**{"id": "chatcmpl-1", "object": "chat.completion"}, "choices": [choice]} | {
        **{"created": 1, "model": "m", "usage": usage}
    }


def chunks(*deltas: Json, reason: str = "stop") -> list[str]:
    choices: list[Json] = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    start = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    told = [json.dumps({**start, "choices": [one]}) for one in choices]
    return [f"data: {one}\n\n" for one in (*told, "[DONE]")]


async def ask(
    gateway: Gateway, path: str, model: str, *, server: Server | None = None, **fields: Any
) -> tuple[str, Any]:
    """Return the dropped parts of an answer, and the answer: its text if it is streamed.

    Args:
        server: sends the rest of its stream once the head of the response has arrived.
    """
    messages = [{"role": "user", "content": "Hi"}]
    body: Json = {"model": model, "fallback": "disabled", **fields}
    body |= {"input": "Hi", "store": False} if path == "responses" else {"messages": messages}
    body |= {"max_tokens": 100} if path == "messages" else {}
    headers = gateway.api_key() if path == "messages" else gateway.bearer()
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        if server is not None:
            server.begun.set()
        text = await answer.text()
        assert answer.status == 200, text
        dropped = answer.headers.get("x-gateway-dropped", "")
        return dropped, text if "stream" in fields else json.loads(text)


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_blocks_of_another_dialect_are_named(
    gateway: Gateway, server: Server, path: str
) -> None:
    server.answer = message(SEARCH, FOUND, SAYS)
    dropped, answer = await ask(gateway, path, "anthropic/m")
    assert dropped == NAMED
    assert "Found" in json.dumps(answer)


async def test_parts_of_the_own_dialect_are_not_named(gateway: Gateway, server: Server) -> None:
    server.answer = message(SEARCH, FOUND, SAYS)
    dropped, answer = await ask(gateway, "messages", "anthropic/m")
    assert not dropped and answer["content"] == [SEARCH, FOUND, SAYS]
    server.answer = events(SEARCH, FOUND, SAYS)
    dropped, text = await ask(gateway, "messages", "anthropic/m", stream=True)
    assert not dropped and "x-gateway-dropped" not in text


async def test_dropped_parts_join_dropped_fields(gateway: Gateway, server: Server) -> None:
    server.answer = message(FOUND, SAYS)
    dropped, _ = await ask(gateway, "chat/completions", "anthropic/m", seed=1)
    assert dropped == "seed, answer.web_search_tool_result"


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_stream_names_late_parts_at_its_end(
    gateway: Gateway, server: Server, path: str
) -> None:
    sent = events(SAYS, SEARCH, FOUND, {**SAYS, "citations": [OF_A_FILE]})
    server.begun.clear()
    server.answer, server.later = sent[:4], sent[4:]
    dropped, text = await ask(gateway, path, "anthropic/m", stream=True, server=server)
    server.later = []
    assert not dropped
    assert f": x-gateway-dropped: {NAMED}, answer.citations\n\n" in text


async def test_a_stream_names_early_parts_in_its_head(gateway: Gateway, server: Server) -> None:
    server.answer = events(SEARCH, SAYS)
    dropped, text = await ask(gateway, "chat/completions", "anthropic/m", stream=True)
    assert dropped == "answer.server_tool_use"
    assert "x-gateway-dropped" not in text


async def test_an_answer_of_unknown_parts_alone_is_not_empty(
    gateway: Gateway, server: Server
) -> None:
    note = "[The model answered with server_tool_use, which this endpoint cannot show.]"
    server.answer = message(SEARCH, stop_reason="pause_turn")
    _, answer = await ask(gateway, "chat/completions", "anthropic/m")
    assert answer["choices"][0]["message"]["content"] == note
    server.answer = events(SEARCH, stop_reason="pause_turn")
    _, text = await ask(gateway, "chat/completions", "anthropic/m", stream=True)
    assert note in text


async def test_pages_cited_by_anthropic_are_annotations(gateway: Gateway, server: Server) -> None:
    server.answer = message({**SAYS, "text": "Well. "}, SAYS)
    _, answer = await ask(gateway, "chat/completions", "anthropic/m")
    ranges = [one["url_citation"] for one in answer["choices"][0]["message"]["annotations"]]
    assert ranges == [
        {**PAGE, "start_index": 0, "end_index": 6},
        {**PAGE, "start_index": 6, "end_index": 11},
    ]
    server.answer = events({**SAYS, "text": "Well. "}, SAYS)
    dropped, text = await ask(gateway, "chat/completions", "anthropic/m", stream=True)
    (line,) = (one for one in text.splitlines() if '"annotations"' in one)
    delta = json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
    assert not dropped and [one["url_citation"] for one in delta["annotations"]] == ranges


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_the_explanation_of_a_refusal_is_its_text(
    gateway: Gateway, server: Server, path: str
) -> None:
    server.answer = message(**REFUSED)
    _, answer = await ask(gateway, path, "anthropic/m")
    assert '"refusal": "No."' in json.dumps(answer)
    server.answer = events(**REFUSED)
    _, text = await ask(gateway, path, "anthropic/m", stream=True)
    assert '"refusal":"No."' in text


async def test_a_direct_caller_of_a_tool_is_not_named(gateway: Gateway, server: Server) -> None:
    server.answer = message(CALLS, stop_reason="tool_use")
    assert not (await ask(gateway, "chat/completions", "anthropic/m"))[0]
    server.answer = message({**CALLS, "caller": {"type": "code_execution_20260120"}})
    dropped, _ = await ask(gateway, "chat/completions", "anthropic/m")
    assert dropped == "answer.caller"


async def test_a_deprecated_function_call_is_a_call(gateway: Gateway, server: Server) -> None:
    server.answer = completion(LEGACY, "function_call")
    dropped, answer = await ask(gateway, "messages", "openai/m")
    (call,) = answer["content"]
    assert (call["name"], call["input"], answer["stop_reason"]) == ("f", {"a": 1}, "tool_use")
    assert not dropped
    pieces = [{"function_call": {"arguments": piece}} for piece in ('{"a"', ": 1}")]
    server.answer = chunks({"function_call": {"name": "f"}}, *pieces, reason="function_call")
    _, text = await ask(gateway, "responses", "openai/m", stream=True)
    (done,) = (one for one in text.split("\n\n") if "function_call_arguments.done" in one)
    assert json.loads(done.partition("data: ")[2])["arguments"] == '{"a": 1}'


async def test_annotations_of_a_chat_are_citations(gateway: Gateway, server: Server) -> None:
    server.answer = completion({"content": "Found", "annotations": [ANNOTATION]})
    dropped, answer = await ask(gateway, "responses", "openai/m")
    (part,) = answer["output"][0]["content"]
    cited = {"type": "url_citation", **PAGE, "start_index": 0, "end_index": 5}
    assert not dropped and part["annotations"] == [cited]


async def test_unknown_parts_of_a_chat_are_named(gateway: Gateway, server: Server) -> None:
    parts = [{"type": "text", "text": "Found"}, {"type": "hologram", "data": "x"}]
    server.answer = completion({"content": parts, "mood": "glad", "annotations": [1]})
    dropped, answer = await ask(gateway, "messages", "openai/m")
    assert dropped == "answer.hologram, answer.mood, answer.annotations"
    assert [one["text"] for one in answer["content"]] == ["Found"]


async def test_parts_of_gemini_are_named_where_they_have_no_place(
    gateway: Gateway, server: Server
) -> None:
    parts = [{"ofTomorrow": {"a": 1}}, {"text": "Found"}]
    server.answer = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    dropped, answer = await ask(gateway, "messages", "gemini/m")
    assert not dropped and answer["content"][0]["type"] == "google_part"
    assert (await ask(gateway, "responses", "gemini/m"))[0] == "answer.ofTomorrow"


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_background_response_says_what_was_dropped(
    gateway: Gateway, server: Server, is_streamed: bool
) -> None:
    server.answer = events(SAYS, SEARCH, FOUND)
    body = {"model": "anthropic/m", "input": "Hi", "background": True, "safety_identifier": "x"}
    body |= {"fallback": "disabled", "prompt_cache_key": "k", "stream": is_streamed}
    url = f"{gateway.url}/beta/v1/responses"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        text = await answer.text()
    if is_streamed:
        response = json.loads(text.rsplit("data: ", 1)[1])["response"]
    else:
        response = await ended(gateway, json.loads(text)["id"])
    assert response["status"] == "completed"
    named = [
        "prompt_cache_key",
        "safety_identifier",
        "answer.server_tool_use",
        "answer.web_search_tool_result",
    ]
    assert response["gateway"] == {"dropped": named}


async def test_a_background_response_without_changes(gateway: Gateway, server: Server) -> None:
    server.answer = events(SAYS)
    body = {"model": "anthropic/m", "input": "Hi", "background": True, "fallback": "disabled"}
    url = f"{gateway.url}/beta/v1/responses"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        queued = await answer.json()
    assert "gateway" not in await ended(gateway, queued["id"])


async def ended(gateway: Gateway, response_id: str) -> Json:
    """Return a response once it has ended."""
    url = f"{gateway.url}/beta/v1/responses/{response_id}"

    async def retrieve() -> Json | None:
        async with gateway.http.get(url, headers=gateway.bearer()) as answer:
            response: Json = await answer.json()
        return None if response["status"] in ("queued", "in_progress") else response

    return await until(retrieve)
