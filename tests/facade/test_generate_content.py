"""Google's generateContent: translated for other providers, and unchanged for Google's own API."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from tests.facade.conversations import png
from tests.facade.google_callers import ask, says, sent_to
from tests.gateway_in_process import Gateway, running_gateway

Json = dict[str, Any]

PICTURE = base64.b64encode(png(7, 5)).decode()
CALLS: Json = {
    "name": "look_up",
    "description": "Look it up.",
    "parameters": {
        "type": "OBJECT",
        "properties": {"thread_id": {"type": "STRING", "nullable": True}},
        "propertyOrdering": ["thread_id"],
    },
}
# Google's answer to a request of its own dialect, with fields that nobody here knows.
ANSWER: Json = {
    "candidates": [
        {
            "content": {
                "parts": [
                    {"text": "Hmm.", "thought": True, "thoughtSignature": "c2lnbmVk"},
                    {"text": "Found it. ", "newest": {"a": 1}},
                    {"executableCode": {"language": "PYTHON", "code": "1", "id": "e1"}},
                    {"functionCall": {"name": "look_up", "args": {}}, "thoughtSignature": "Yg=="},
                ],
                "role": "model",
            },
            "finishReason": "STOP",
            "index": 0,
            "safetyRatings": [{"category": "X", "probability": "LOW"}],
            "groundingMetadata": {"webSearchQueries": ["q"]},
            "avgLogprobs": -0.5,
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 7,
        "toolUsePromptTokenCount": 3,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 4,
        "totalTokenCount": 16,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 7}],
    },
    "modelVersion": "gemini-9",
    "responseId": "r1",
    "createTime": "2026-01-01T00:00:00Z",
}


class Google:
    """Google's API, which answers with `answer` and keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.headers: list[Any] = []
        self.answer = ANSWER

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1beta/models/{rest:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(orjson.loads(await request.read()))
        self.headers.append(request.headers)
        if "stream" not in request.path:
            return web.json_response(self.answer)
        candidate = self.answer["candidates"][0]
        others = {name: value for name, value in self.answer.items() if name != "candidates"}
        chunks = []
        for part in candidate["content"]["parts"]:
            content = {"parts": [part], "role": "model"}
            chunks.append({"candidates": [{"content": content, "index": 0}], **others})
        end = {name: value for name, value in candidate.items() if name != "content"}
        chunks.append({"candidates": [end], **others})
        text = b"".join(b"data: " + orjson.dumps(chunk) + b"\r\n\r\n" for chunk in chunks)
        return web.Response(body=text, content_type="text/event-stream")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def google() -> Google:
    return Google()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own(tmp_path_factory: Any, google: Google) -> AsyncIterator[Gateway]:
    """Return a gateway in front of Google's API."""
    async with running_gateway(tmp_path_factory.mktemp("own"), google.app()) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: Any) -> AsyncIterator[Gateway]:
    """Return a gateway in front of the sandbox."""
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


def parts_of(chunks: list[Json]) -> list[Json]:
    """Return the parts of the first candidate of a stream, with its texts joined."""
    joined: list[Json] = []
    for chunk in chunks:
        for part in chunk["candidates"][0]["content"]["parts"]:
            last = joined[-1] if joined else {}
            kinds = part.get("thought"), last.get("thought")
            if part.keys() <= {"text", "thought"} and "text" in last and kinds[0] == kinds[1]:
                last["text"] += part["text"]
            else:
                joined.append({**part})
    return joined


pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERYTHING: Json = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        says(
            {"text": "Look.", "partMetadata": {"x": 1}},
            {"inlineData": {"mimeType": "text/csv", "data": "YSxi", "displayName": "a.csv"}},
        ),
        says(
            {"text": "Hmm.", "thought": True, "thoughtSignature": "c2lnbmVk"},
            {"functionCall": {"name": "look_up", "args": {"n": 1.50}}, "thoughtSignature": "Yg=="},
            {"text": "", "thoughtSignature": "Yw=="},
            role="model",
        ),
        says({"functionResponse": {"name": "look_up", "response": {"result": ["file-abc1"]}}}),
        says({"executableCode": {"id": "e1", "language": "PYTHON", "code": "1"}}, role="model"),
        says(
            {"inlineData": {"mimeType": "video/mp4", "data": "YQ=="}, "videoMetadata": {"fps": 2}}
        ),
    ],
    "tools": [
        {"functionDeclarations": [CALLS, {"name": "b$", "parametersJsonSchema": {"x-y": 1}}]},
        {"googleSearch": {"timeRangeFilter": {}}},
        {"codeExecution": {}},
    ],
    "toolConfig": {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look_up", "b$"]},
        "retrievalConfig": {"languageCode": "de"},
    },
    "safetySettings": [{"category": "HARM", "threshold": "OFF"}],
    "labels": {"run": "run-1"},
    "generationConfig": {
        "temperature": 0.5,
        "topK": 3,
        "stopSequences": ["x"],
        "responseMimeType": "text/x.enum",
        "responseSchema": {"type": "STRING", "enum": ["a", "b"]},
        "responseModalities": ["TEXT", "AUDIO"],
        "thinkingConfig": {"thinkingBudget": -1, "includeThoughts": True},
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
    },
    "newest": {"a": [1]},
}


async def test_google_is_sent_what_was_written(own: Gateway, google: Google):
    status, _, answer = await ask(own, "gemini/gemini-9", EVERYTHING)
    assert status == 200, answer
    assert google.bodies[-1] == EVERYTHING
    snake = {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"parts": [{"inline_data": {"mime_type": "image/png", "data": PICTURE}}]}],
        "generation_config": {"max_output_tokens": 5},
    }
    assert (await ask(own, "gemini/gemini-9", snake))[0] == 200
    assert google.bodies[-1]["generationConfig"] == {"maxOutputTokens": 5}
    assert google.bodies[-1]["contents"][0]["parts"][0]["inlineData"]["data"] == PICTURE


async def test_googles_answers_arrive_as_they_are(own: Gateway):
    question = {"contents": [says({"text": "hello"})]}
    status, headers, whole = await ask(own, "gemini/gemini-9", question)
    assert (status, whole) == (200, ANSWER) and headers["x-gateway-provider"] == "gemini"
    for form in ("streamGenerateContent?alt=sse", "streamGenerateContent"):
        _, _, chunks = await ask(own, "gemini/gemini-9", question, form)
        parts = parts_of(chunks[:-1])
        assert parts == ANSWER["candidates"][0]["content"]["parts"]
        last = chunks[-1]
        candidate, wanted = last["candidates"][0], ANSWER["candidates"][0]
        assert {**candidate, "content": wanted["content"]} == wanted
        assert last["usageMetadata"] == ANSWER["usageMetadata"]
        assert (last["responseId"], last["createTime"]) == ("r1", ANSWER["createTime"])
    # A chat of the same server counts the same tokens.
    body = {"model": "gemini/gemini-9", "messages": [{"role": "user", "content": "hello"}]}
    url = f"{own.url}/v1/chat/completions"
    async with own.http.post(url, json=body, headers=own.bearer()) as answer:
        assert (await answer.json())["usage"]["total_tokens"] == 16


async def test_other_providers_get_a_translation(gateway: Gateway):
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            says({"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PICTURE}}),
            says({"functionCall": {"name": "look_up", "args": {"n": 1}}}, role="model"),
            says({"functionResponse": {"name": "look_up", "response": {"output": "sunny"}}}),
            says({"executableCode": {"language": "PYTHON", "code": "1 + 1"}}, role="model"),
            says({"text": "Go on."}),
        ],
        "tools": [{"functionDeclarations": [CALLS, {"name": "other"}]}],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look_up"]}
        },
        "safetySettings": [{"category": "HARM", "threshold": "OFF"}],
        "generationConfig": {
            **{"temperature": 0.5, "maxOutputTokens": 4000, "stopSequences": ["x"]},
            **{"mediaResolution": "MEDIA_RESOLUTION_LOW", "seed": 3},
            "thinkingConfig": {"thinkingBudget": 0},
        },
    }
    status, headers, answer = await ask(gateway, "openai/echo", body)
    assert status == 200, answer
    chat = await sent_to(gateway, "openai")
    assert [one["role"] for one in chat["messages"]][:3] == ["system", "user", "assistant"]
    call, result = chat["messages"][2]["tool_calls"][0], chat["messages"][3]
    assert call["function"] == {"name": "look_up", "arguments": '{"n":1}'}
    assert (result["content"], result["tool_call_id"]) == ("sunny", call["id"])
    assert "1 + 1" in str(chat["messages"][4])
    schema = chat["tools"][0]["function"]["parameters"]
    assert schema["properties"] == {"thread_id": {"type": ["string", "null"]}}
    assert chat["tool_choice"]["function"]["name"] == "look_up" and chat["seed"] == 3
    dropped = headers["x-gateway-dropped"].split(", ")
    # Whether the sandbox's model can be kept from thinking is not known.
    assert sorted(dropped) == [
        *("generationConfig.mediaResolution", "generationConfig.thinkingConfig", "safetySettings"),
    ]
    adapted = headers["x-gateway-adapted"]
    assert adapted == "contents[3].parts[0]:text"
    assert answer["candidates"][0]["content"]["parts"][-1]["functionCall"]["name"] == "look_up"

    status, headers, answer = await ask(gateway, "anthropic/echo", body)
    assert status == 200, answer
    message = await sent_to(gateway, "anthropic")
    assert message["tool_choice"] == {"type": "tool", "name": "look_up"}
    assert message["max_tokens"] == 4000 and message["stop_sequences"] == ["x"]
    assert "generationConfig.seed" in headers["x-gateway-dropped"]


async def test_what_would_change_the_answer_is_refused(gateway: Gateway):
    text = {"contents": [says({"text": "hello"})]}
    call = {"functionCall": {"name": "f"}}
    found = {}
    for name, body in {
        "tools[0].codeExecution": {**text, "tools": [{"codeExecution": {}}]},
        "tools[1].googleSearch": {
            **text,
            "tools": [{"functionDeclarations": [CALLS]}, {"googleSearch": {}}],
        },
        "cachedContent": {**text, "cachedContent": "cachedContents/1"},
        "generationConfig.responseMimeType": {
            **text,
            "generationConfig": {"responseMimeType": "text/x.enum"},
        },
        "generationConfig.responseModalities": {
            **text,
            "generationConfig": {"responseModalities": ["AUDIO"]},
        },
        "generationConfig.candidateCount": {**text, "generationConfig": {"candidateCount": 2}},
        "contents": {"contents": [{"parts": []}]},
        "contents[0].parts[0].text": {"contents": [says({"text": 1})]},
        "contents[0].parts[1].inlineData.data": {
            "contents": [says({"text": "a"}, {"inlineData": {"mimeType": "a/b", "data": "%"}})]
        },
        "contents[0].parts[0].functionCall": {"contents": [says(call)]},
        "contents[0].parts[0].functionResponse.id": {
            "contents": [says({"functionResponse": {"name": "f"}})]
        },
        "contents[0].parts[0]": {
            "contents": [says({"fileData": {"fileUri": f"files/{'0' * 26}"}})]
        },
        "toolConfig.functionCallingConfig.allowedFunctionNames[0]": {
            **text,
            "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["f"]}},
        },
        "systemInstruction.parts[0]": {**text, "systemInstruction": {"parts": [call]}},
    }.items():
        status, _, answer = await ask(gateway, "anthropic/echo", body)
        assert status >= 400, name
        error = answer["error"]
        fields = [
            one["fieldViolations"][0]["field"]
            for one in error["details"]
            if "fieldViolations" in one
        ]
        known = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND"}[status]
        assert (error["code"], error["status"]) == (status, known)
        found[name] = fields[0]
    assert {name: field for name, field in found.items() if not field.startswith(name)} == {}


async def test_errors_have_googles_shape(gateway: Gateway):
    text = {"contents": [says({"text": "hello"})]}
    key = gateway.key
    for model, headers, status, name in (
        ("sandbox/echo", {"x-goog-api-key": "nonsense"}, 401, "UNAUTHENTICATED"),
        ("sandbox/echo", {"x-api-key": key}, 401, "UNAUTHENTICATED"),
        (
            "sandbox/echo",
            {"Authorization": "Bearer x", "x-goog-api-key": key},
            400,
            "INVALID_ARGUMENT",
        ),
        ("no/body", {"x-goog-api-key": key}, 404, "NOT_FOUND"),
        ("sandbox/fail-429", {"Authorization": f"Bearer {key}"}, 429, "RESOURCE_EXHAUSTED"),
        ("sandbox/fail-500", {"x-goog-api-key": key}, 502, "UNAVAILABLE"),
        ("sandbox/fail-529", {"x-goog-api-key": key}, 503, "UNAVAILABLE"),
    ):
        for method in ("generateContent", "streamGenerateContent?alt=sse"):
            got, _, answer = await ask(gateway, model, text, method, **headers)
            error = answer["error"]
            assert (got, error["code"], error["status"]) == (status, status, name), answer
            assert error["details"][0]["domain"] == "gateway"
            assert key not in str(answer)
    status, _, chunks = await ask(
        gateway, "anthropic/fail-late", text, "streamGenerateContent?alt=sse"
    )
    assert status == 200 and chunks[-1]["error"]["status"] == "UNAVAILABLE", chunks
    status, _, chunks = await ask(gateway, "anthropic/fail-late", text, "streamGenerateContent")
    assert status == 200 and chunks[-1]["error"]["status"] == "UNAVAILABLE", chunks
    async with gateway.http.get(f"{gateway.url}/v1beta/nothing?key={key}") as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["status"]) == (404, "NOT_FOUND")


async def test_thoughts_travel_in_signatures(gateway: Gateway):
    body: Json = {
        "contents": [says({"text": "use the tool look_up"})],
        "tools": [{"functionDeclarations": [CALLS]}],
        "generationConfig": {
            "maxOutputTokens": 4000,
            "thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": True},
        },
    }
    for model, form in (
        ("anthropic/echo", "generateContent"),
        ("anthropic/echo", "streamGenerateContent?alt=sse"),
        ("openai/echo", "generateContent"),
    ):
        _, _, answer = await ask(gateway, model, body, form)
        contents = [
            candidate["content"]
            for chunk in (answer if isinstance(answer, list) else [answer])
            for candidate in chunk["candidates"]
        ]
        parts = [part for content in contents for part in content["parts"]]
        thoughts = "".join(part["text"] for part in parts if part.get("thought"))
        assert "The sandbox thinks" in thoughts
        (call,) = [part["functionCall"] for part in parts if "functionCall" in part]
        signed = [part for part in parts if "thoughtSignature" in part]
        assert len(signed) == 1 and "thought" not in signed[0]
        result = {"functionResponse": {"name": "look_up", "id": call["id"], "response": {"a": 1}}}
        then = {**body, "contents": [*body["contents"], *contents, says(result)]}
        status, headers, final = await ask(gateway, model, then)
        assert status == 200, final
        if model != "openai/echo":
            assert "x-gateway-dropped" not in headers
        assert 'answered "{"a":1}"' in final["candidates"][0]["content"]["parts"][-1]["text"]
        if model == "anthropic/echo":
            # The sandbox refuses any thinking but its own.
            sent = (await sent_to(gateway, "anthropic"))["messages"][1]["content"]
            assert sent[0]["type"] == "thinking" and sent[0]["signature"]
            assert [one["type"] for one in sent].count("thinking") == 1
        # The calls go on with another provider, without the foreign thoughts.
        assert (await ask(gateway, "gemini/echo", then))[0] == 200
    del body["generationConfig"]["thinkingConfig"]["includeThoughts"]
    _, _, answer = await ask(gateway, "anthropic/echo", body)
    parts = answer["candidates"][0]["content"]["parts"]
    assert not any("thought" in part for part in parts)
    assert "thoughtSignature" in parts[0]


async def test_a_blocked_prompt_is_an_answer(own: Gateway, google: Google):
    google.answer = {"promptFeedback": {"blockReason": "SAFETY"}, "candidates": [{}]}
    body = {"contents": [says({"text": "hello"})]}
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    del google.answer["candidates"]
    try:
        status, _, answer = await ask(own, "gemini/gemini-9", body)
    finally:
        google.answer = ANSWER
    assert status == 200, answer
    assert answer["promptFeedback"]["blockReason"] == blocked["promptFeedback"]["blockReason"]
    assert "candidates" not in answer
