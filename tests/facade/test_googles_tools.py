"""Google's own search, pages and programs, for callers of other dialects."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from aiohttp import web
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.facade.google_callers import ask
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.waiting import until
from tests.web_tools import Web, with_web

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

TEXT = "Bern is dry."
QUESTION: Any = [{"role": "user", "content": "How is the weather?"}]
FUNCTION: Json = {"name": "f", "parameters": {"type": "object", "properties": {}}}
CODE = "print(6 * 7)"
SEARCH, FETCH, RUN = {"googleSearch": {}}, {"urlContext": {}}, {"codeExecution": {}}
GROUNDING: Json = {
    "webSearchQueries": ["weather Bern", "rain Bern"],
    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
    "groundingSupports": [
        {"segment": {"endIndex": len(TEXT)}, "groundingChunkIndices": [0]},
    ],
}
PROGRAM: Sequence[Json] = (
    {"text": "I compute."},
    {"executableCode": {"language": "PYTHON", "code": CODE}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
    {"text": "It is 42."},
)
MESSAGES_SEARCH: Json = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
MESSAGES_FETCH: Json = {"type": "web_fetch_20250910", "name": "web_fetch"}
MESSAGES_CODE: Json = {"type": "code_execution_20250825", "name": "code_execution"}
INTERPRETER: Json = {"type": "code_interpreter", "container": {"type": "auto"}}


# A search costs a dollar.
PRICED: Json = {
    "name": "priced",
    "provider": "gemini",
    "upstream": "gemini-3-pro",
    "price": {"input": 0, "output": 0, "web_search": 1000},
}


class Google(NamedTuple):
    """A server of Google's API, with the bodies it was sent; `parts` are its answer."""

    bodies: list[Json]
    parts: list[Json]

    async def serve(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response({"models": []})
        self.bodies.append(await request.json())
        candidate = {"content": {"parts": self.parts}, "finishReason": "STOP"}
        if SEARCH in self.bodies[-1].get("tools", ()):
            candidate["groundingMetadata"] = GROUNDING
        answer = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 5}}
        if "stream" in request.path:
            text = f"data: {json.dumps(answer)}\n\n"
            return web.Response(text=text, content_type="text/event-stream")
        return web.json_response(answer)


class Front(NamedTuple):
    """A gateway in front of Google, with clients of two dialects."""

    gateway: Gateway
    google: Google
    openai: AsyncOpenAI
    anthropic: AsyncAnthropic


async def fronts(folder: Any, engine: Web | None) -> AsyncIterator[Front]:
    google = Google([], [])
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", google.serve)
    async with serving(app) as url:
        one = {"kind": "gemini", "base_url": f"{url}/v1beta", "api_key": "k"}
        providers = {
            "gemini": one,
            "always": {**one, "native_tools": True},
            "never": {**one, "native_tools": False},
        }
        with with_web(engine):
            async with running_gateway(
                folder, url, providers=providers, models=[PRICED]
            ) as gateway:
                async with (
                    AsyncOpenAI(
                        base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0
                    ) as openai,
                    AsyncAnthropic(
                        base_url=gateway.url, api_key=gateway.key, max_retries=0
                    ) as anthropic,
                ):
                    yield Front(gateway, google, openai, anthropic)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Front]:
    async for one in fronts(tmp_path_factory.mktemp("alone"), None):
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Front]:
    async for one in fronts(tmp_path_factory.mktemp("engine"), Web()):
        yield one


def plays(front: Front, *parts: Json) -> None:
    front.google.bodies.clear()
    front.google.parts[:] = parts


async def post(front: Front, path: str, model: str, **fields: Any) -> tuple[int, Any, Json]:
    """Ask over HTTP; return the status, the headers and the answer."""
    body: Json = {"model": model, **fields}
    if path == "responses":
        body |= {"input": "How is the weather?", "store": False}
    else:
        body |= {"messages": QUESTION, "max_tokens": 100}
    headers = front.gateway.api_key() if path == "messages" else front.gateway.bearer()
    url = f"{front.gateway.url}/v1/{path}"
    async with front.gateway.http.post(url, json=body, headers=headers) as answer:
        return answer.status, answer.headers, await answer.json()


# Requests and Google's tools for them, with the fields that are named as dropped.
ASKED: Sequence[tuple[str, Json, list[Json], str]] = (
    ("chat/completions", {"web_search_options": {}}, [SEARCH], ""),
    (
        "chat/completions",
        {"web_search_options": {"user_location": {"approximate": {"city": "Bern"}}}},
        [SEARCH],
        "web_search_options.user_location",
    ),
    ("responses", {"tools": [{"type": "web_search"}, INTERPRETER]}, [SEARCH, RUN], ""),
    (
        "responses",
        {"tools": [{"type": "web_search"}], "max_tool_calls": 2},
        [SEARCH],
        "max_tool_calls",
    ),
    ("messages", {"tools": [MESSAGES_SEARCH]}, [SEARCH], "tools[].max_uses"),
    ("messages", {"tools": [MESSAGES_FETCH, MESSAGES_CODE]}, [FETCH, RUN], ""),
    (
        "chat/completions",
        {
            "extra_body": {
                "google": {
                    "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT"}],
                    "media_resolution": "MEDIA_RESOLUTION_LOW",
                }
            }
        },
        [],
        "",
    ),
)


async def test_tools_are_googles(front: Front):
    failures = []
    for path, fields, tools, dropped in ASKED:
        plays(front, {"text": TEXT})
        status, headers, answer = await post(front, path, "gemini/gemini-3-pro", **fields)
        sent = front.google.bodies[-1] if front.google.bodies else {}
        # The queries of a search have no place in two of the dialects.
        named = headers.get("x-gateway-dropped", "").removesuffix("answer.groundingMetadata")
        outcome = (status, sent.get("tools", []), named.removesuffix(", "))
        if outcome != (200, tools, dropped):
            failures.append(f"{path} {fields}: {outcome} {answer}")
    assert not failures, "\n".join(failures)
    assert sent["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT"}]
    assert sent["generationConfig"]["mediaResolution"] == "MEDIA_RESOLUTION_LOW"


# Requests that Google's tools cannot serve, with what the error is about.
REFUSED: Sequence[tuple[str, str, Json, str]] = (
    (
        "chat/completions",
        "gemini",
        {"web_search_options": {}, "tools": [{"type": "function", "function": FUNCTION}]},
        "beside functions",
    ),
    ("chat/completions", "never", {"web_search_options": {}}, "cannot search the web itself"),
    (
        "messages",
        "gemini",
        {"tools": [{**MESSAGES_SEARCH, "allowed_domains": ["a.example"]}]},
        "some hosts alone",
    ),
    (
        "responses",
        "gemini",
        {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        "forced call",
    ),
    (
        "responses",
        "gemini",
        {"tools": [{**INTERPRETER, "container": "cntr_68af0123456789"}]},
        "refers to an object stored",
    ),
    (
        "messages",
        "gemini",
        {"tools": [MESSAGES_CODE, {"name": "f", "input_schema": FUNCTION["parameters"]}]},
        "code_execution_20250825",
    ),
    (
        "chat/completions",
        "gemini",
        {"extra_body": {"google": {"cached_content": "cachedContents/1"}}},
        "refers to an object stored",
    ),
)


async def test_what_google_cannot_do_is_refused(front: Front):
    failures = []
    for path, provider, fields, words in REFUSED:
        plays(front, {"text": TEXT})
        status, _, answer = await post(front, path, f"{provider}/gemini-2.5-pro", **fields)
        if status != 400 or words not in answer["error"]["message"] or front.google.bodies:
            failures.append(f"{path} {fields}: {status} {answer}")
    assert not failures, "\n".join(failures)


async def test_the_search_engine_comes_first_unless_told(with_engine: Front):
    sent: list[Any] = []
    for provider in ("gemini", "always"):
        plays(with_engine, {"text": TEXT})
        fields = {"tools": [{"type": "web_search"}]}
        status, _, answer = await post(with_engine, "responses", f"{provider}/gemini-3", **fields)
        assert status == 200, answer
        sent.append(with_engine.google.bodies[0]["tools"])
    assert sent[0][0]["functionDeclarations"][0]["name"] == "web_search"
    assert sent[1] == [SEARCH]


async def test_searches_are_cited_and_counted(front: Front):
    plays(front, {"text": TEXT})
    made = await front.anthropic.messages.create(
        model="gemini/gemini-3-pro",
        max_tokens=100,
        messages=QUESTION,
        tools=[MESSAGES_SEARCH],  # type: ignore[list-item]  # one dict for three clients
    )
    (text,) = made.to_dict()["content"]  # type: ignore[misc]  # its type is object
    assert text["citations"][0]["url"] == "https://a.example"
    used = made.usage.server_tool_use
    assert used is not None and used.web_search_requests == 2
    chat = await front.openai.chat.completions.create(
        model="gemini/gemini-3-pro", messages=QUESTION, web_search_options={}
    )
    (cited,) = chat.choices[0].message.annotations or ()
    assert cited.url_citation.url == "https://a.example"


TOOL_PARTS: Sequence[Json] = (
    {
        "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["Bern"]}, "id": "s1"},
        "thoughtSignature": "c2VhcmNo",
    },
    {
        "toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"a": 1}, "id": "s1"},
        "thoughtSignature": "Zm91bmQ=",
    },
    {
        "functionCall": {"id": "call_1", "name": "f", "args": {}},
        "thoughtSignature": "Y2FsbGVk",
    },
)
COMBINED: Sequence[Json] = [SEARCH, {"functionDeclarations": [{"name": "f"}]}]


async def test_googles_tools_beside_functions(front: Front):
    plays(front, *TOOL_PARTS)
    used: Json = {"type": "tool_result", "tool_use_id": "call_1", "content": "dry"}
    fields: Any = {
        "model": "gemini/gemini-3-pro",
        "max_tokens": 100,
        "tools": [MESSAGES_SEARCH, {"name": "f", "input_schema": FUNCTION["parameters"]}],
    }
    whole = await front.anthropic.messages.create(messages=QUESTION, **fields)
    async with front.anthropic.messages.stream(messages=QUESTION, **fields) as stream:
        streamed = await stream.get_final_message()
    bodies = front.google.bodies
    assert all(body["tools"] == COMBINED for body in bodies), bodies
    assert all(body["toolConfig"] == {"includeServerSideToolInvocations": True} for body in bodies)
    for made in (whole, streamed):
        history = [*QUESTION, {"role": "assistant", "content": made.content}]
        await front.anthropic.messages.create(
            messages=[*history, {"role": "user", "content": [used]}], **fields
        )
        assert bodies[-1]["contents"][1]["parts"] == list(TOOL_PARTS), bodies[-1]
    item: Json = {"type": "function_call_output", "call_id": "call_1", "output": "dry"}
    search: Json = {"type": "web_search"}
    wanted: Any = {
        "model": "gemini/gemini-3-pro",
        "tools": [search, {"type": "function", **FUNCTION}],
        "store": False,
    }
    response = await front.openai.responses.create(input="How is the weather?", **wanted)
    again: Any = [*QUESTION, *response.to_dict()["output"], item]  # type: ignore[misc]  # a list
    await front.openai.responses.create(input=again, **wanted)
    assert bodies[-1]["contents"][1]["parts"] == list(TOOL_PARTS), bodies[-1]
    # A model that does not combine them is sent neither the tools nor their parts.
    status, _, answer = await post(
        front, "messages", "gemini/gemini-2.5-pro", tools=fields["tools"]
    )
    assert status == 400 and "beside functions" in answer["error"]["message"], answer


async def test_searches_in_googles_own_format_are_priced(front: Front):
    async def spent() -> str:
        url = f"{front.gateway.url}/v1/usage/me"
        async with front.gateway.http.get(url, headers=front.gateway.bearer()) as answer:
            return str((await answer.json())["usage"]["day"]["cost"])

    asked = {"contents": [{"parts": [{"text": "weather?"}]}], "tools": [SEARCH]}
    for method, cost in (("generateContent", "2"), ("streamGenerateContent?alt=sse", "4")):
        plays(front, {"text": TEXT})
        status, _, answer = await ask(front.gateway, "priced", asked, method)
        assert status == 200 and "server_tool_use" not in json.dumps(answer), answer

        async def is_priced(cost: str = cost) -> bool:
            return await spent() == cost

        await until(is_priced)


async def test_programs_are_blocks_of_messages(front: Front):
    plays(front, *PROGRAM)
    fields: Any = {"model": "gemini/gemini-3-pro", "max_tokens": 100, "tools": [MESSAGES_CODE]}
    whole = await front.anthropic.messages.create(messages=QUESTION, **fields)
    async with front.anthropic.messages.stream(messages=QUESTION, **fields) as stream:
        streamed = await stream.get_final_message()
    for made in (whole, streamed):
        before, call, result, after = (one.to_dict() for one in made.content)
        assert (before["text"], after["text"]) == ("I compute.", "It is 42.")
        assert (call["name"], call["input"]) == ("code_execution", {"code": CODE})
        assert result["tool_use_id"] == call["id"]
        assert result["content"]["stdout"] == "42\n"  # type: ignore[index]  # a dict
    history = [*QUESTION, {"role": "assistant", "content": whole.content}, *QUESTION]
    await front.anthropic.messages.create(messages=history, **fields)
    sent = front.google.bodies[-1]["contents"][1]["parts"]
    assert sent == list(PROGRAM)


async def test_programs_are_items_of_responses(front: Front):
    plays(front, *PROGRAM)
    fields: Any = {"model": "gemini/gemini-3-pro", "tools": [INTERPRETER], "store": False}
    whole = await front.openai.responses.create(input="6 * 7?", **fields)
    async with front.openai.responses.stream(input="6 * 7?", **fields) as stream:
        kinds = [event.type async for event in stream]
        streamed = await stream.get_final_response()
    assert "response.code_interpreter_call_code.done" in kinds
    for made in (whole, streamed):
        items = [item.to_dict() for item in made.output]
        assert [one["type"] for one in items] == ["message", "code_interpreter_call", "message"]
        assert (items[1]["code"], items[1]["status"]) == (CODE, "completed")
        assert items[1]["outputs"] == [{"type": "logs", "logs": "42\n"}]
    history = [*QUESTION, *whole.to_dict()["output"], *QUESTION]  # type: ignore[misc]  # a list
    await front.openai.responses.create(input=history, **fields)
    sent = front.google.bodies[-1]["contents"][1]["parts"]
    assert sent == list(PROGRAM)
