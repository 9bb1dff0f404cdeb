"""Pages that a provider found for its answer, as callers of each dialect receive them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

TEXT = "Zürich is 10 °C. Bern is dry."
PAGES = [{"uri": f"https://{name}.example", "title": name.upper()} for name in "ab"]
# Offsets are bytes: the first sentence has 18, of 16 characters.
SUPPORTS = [
    {"segment": {"startIndex": 19, "endIndex": 31, "text": "…"}, "groundingChunkIndices": [0, 1]},
    {"segment": {"endIndex": 18}, "groundingChunkIndices": [0]},
]
GROUNDING: Json = {
    "groundingChunks": [{"web": page} for page in PAGES],
    "groundingSupports": SUPPORTS,
}
A, B = ({"url": page["uri"], "title": page["title"]} for page in PAGES)
CITED = [(0, 16, A), (17, 29, A), (17, 29, B)]
SOURCE = {"startIndex": 19, "endIndex": 31, "uri": "https://a.example"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[dict[str, Any]]:
    """Return a provider of several dialects; "answer" is what it answers, a list as a stream."""
    provider: dict[str, Any] = {}

    async def serve(request: web.Request) -> web.Response:
        answer = provider["answer"]
        if not isinstance(answer, list):
            return web.json_response(answer)
        lines = "".join(f"data: {json.dumps(one)}\n\n" for one in answer)
        return web.Response(text=lines, content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/{path:.*}", serve)
    async with serving(app) as provider["url"]:
        yield provider


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    server: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    url = server["url"]
    providers = {
        "openai": {"kind": "openai", "base_url": f"{url}/v1", "responses": False},
        "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
    }
    settings = {name: {**one, "api_key": "k"} for name, one in providers.items()}
    async with running_gateway(
        tmp_path_factory.mktemp("gateway"), url, providers=settings
    ) as running:
        yield running


def grounded(*texts: str, **fields: Any) -> list[Json]:
    """Return the pieces of an answer of Gemini, of which the last one has the fields."""
    pieces: list[Json] = [{"content": {"parts": [{"text": text}]}} for text in texts]
    pieces[-1] |= {"finishReason": "STOP", **fields}
    return [{"candidates": [piece], "usageMetadata": {"promptTokenCount": 1}} for piece in pieces]


async def ask(gateway: Gateway, path: str, model: str, **fields: Any) -> tuple[str, str]:
    """Return the dropped parts of an answer, and its text."""
    body: Json = {"model": model, "fallback": "disabled", **fields}
    messages = [{"role": "user", "content": "Hi"}]
    body |= {"input": "Hi", "store": False} if path == "responses" else {"messages": messages}
    body |= {"max_tokens": 2000} if path == "messages" else {}
    headers = gateway.api_key() if path == "messages" else gateway.bearer()
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        return answer.headers.get("x-gateway-dropped", ""), text


def events(text: str) -> list[Json]:
    lines = [line.removeprefix("data: ") for line in text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def ranges(annotations: list[Json]) -> list[tuple[int, int, Json]]:
    return [
        (one["start_index"], one["end_index"], {name: one[name] for name in ("url", "title")})
        for one in (one.get("url_citation", one) for one in annotations)
    ]


async def test_grounding_is_annotations_of_a_response(
    gateway: Gateway, server: dict[str, Any]
) -> None:
    (server["answer"],) = grounded(TEXT, groundingMetadata=GROUNDING)
    dropped, text = await ask(gateway, "responses", "gemini/m")
    (part,) = json.loads(text)["output"][0]["content"]
    assert part["text"] == TEXT and ranges(part["annotations"]) == CITED
    assert not dropped


async def test_grounding_of_a_stream_is_annotations(
    gateway: Gateway, server: dict[str, Any]
) -> None:
    server["answer"] = grounded(TEXT[:4], TEXT[4:], groundingMetadata=GROUNDING)
    _, text = await ask(gateway, "responses", "gemini/m", stream=True)
    added = [one["annotation"] for one in events(text) if one["type"].endswith("annotation.added")]
    done = events(text)[-1]["response"]["output"][0]["content"][0]
    assert ranges(added) == ranges(done["annotations"]) == CITED
    assert "x-gateway-dropped" not in text


async def test_grounding_is_citations_of_a_message(
    gateway: Gateway, server: dict[str, Any]
) -> None:
    (server["answer"],) = grounded(TEXT, groundingMetadata=GROUNDING)
    dropped, text = await ask(gateway, "messages", "gemini/m")
    (block,) = json.loads(text)["content"]
    assert [one["url"] for one in block["citations"]] == [one["url"] for _, _, one in CITED]
    server["answer"] = grounded(TEXT[:4], TEXT[4:], groundingMetadata=GROUNDING)
    _, text = await ask(gateway, "messages", "gemini/m", stream=True)
    deltas = [one["delta"] for one in events(text) if one["type"] == "content_block_delta"]
    cited = [one["citation"]["url"] for one in deltas if one["type"] == "citations_delta"]
    assert cited == [one["url"] for _, _, one in CITED] and not dropped


async def test_a_chat_has_annotations_and_google_s_fields(
    gateway: Gateway, server: dict[str, Any]
) -> None:
    (server["answer"],) = grounded(TEXT, groundingMetadata=GROUNDING)
    _, text = await ask(gateway, "chat/completions", "gemini/m")
    (choice,) = json.loads(text)["choices"]
    assert ranges(choice["message"]["annotations"]) == CITED
    assert choice["extra_content"]["google"]["groundingMetadata"] == GROUNDING
    server["answer"] = grounded(TEXT, groundingMetadata=GROUNDING)
    _, text = await ask(gateway, "chat/completions", "gemini/m", stream=True)
    deltas = [one["choices"][0]["delta"] for one in events(text)]
    assert [ranges(one["annotations"]) for one in deltas if "annotations" in one] == [CITED]


async def test_a_text_signature_does_not_end_the_cited_text(
    gateway: Gateway, server: dict[str, Any]
) -> None:
    (answer,) = grounded(TEXT)
    answer["candidates"][0]["content"]["parts"][0]["thoughtSignature"] = "c2ln"
    (last,) = grounded("", groundingMetadata=GROUNDING)
    server["answer"] = [answer, last]
    reasoning = {"effort": "low"}
    _, text = await ask(gateway, "responses", "gemini/m", stream=True, reasoning=reasoning)
    spoken, signed = events(text)[-1]["response"]["output"]
    assert ranges(spoken["content"][0]["annotations"]) == CITED
    assert signed["type"] == "reasoning" and signed["encrypted_content"]


@pytest.mark.parametrize(
    ("fields", "expected", "dropped"),
    [
        # Pages without passages are cited by the whole text.
        ({"groundingMetadata": {"groundingChunks": [{"maps": PAGES[0]}]}}, [(0, 29, A)], ""),
        # What no citation says is named.
        (
            {"groundingMetadata": {**GROUNDING, "searchEntryPoint": {"renderedContent": "<a>"}}},
            CITED,
            "answer.groundingMetadata",
        ),
        # A chunk that is not a page.
        (
            {"groundingMetadata": {"groundingChunks": [{"web": {"uri": "gs://b/a"}}]}},
            [],
            "answer.groundingMetadata",
        ),
        # Passages that are not in the text.
        (
            {
                "groundingMetadata": {
                    **GROUNDING,
                    "groundingSupports": [
                        {
                            "segment": {"startIndex": 90, "endIndex": 99},
                            "groundingChunkIndices": [0],
                        },
                        {
                            "segment": {"startIndex": 0, "endIndex": 10**30},
                            "groundingChunkIndices": [7, 1],
                        },
                    ],
                }
            },
            [(0, 29, A), (0, 29, B)],
            "",
        ),
        ({"citationMetadata": {"citationSources": [SOURCE]}}, [(17, 29, {**A, "title": ""})], ""),
        (
            {"citationMetadata": {"citations": [{**SOURCE, "license": "MIT"}]}},
            [(17, 29, {**A, "title": ""})],
            "answer.citationMetadata",
        ),
    ],
)
async def test_forms_of_grounding(
    gateway: Gateway,
    server: dict[str, Any],
    fields: Json,
    expected: list[tuple[int, int, Json]],
    dropped: str,
) -> None:
    (server["answer"],) = grounded(TEXT, **fields)
    named, text = await ask(gateway, "responses", "gemini/m")
    (part,) = json.loads(text)["output"][0]["content"]
    assert (ranges(part["annotations"]), named) == (expected, dropped)


def chunk(delta: Json, reason: str | None = None, **fields: Any) -> Json:
    choice = {"index": 0, "delta": delta, "message": delta, "finish_reason": reason}
    return {"id": "1", "model": "sonar", "created": 1, "choices": [choice], **fields}


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        # Perplexity, xAI, and Perplexity's newer answers.
        ({"citations": [A["url"]], "search_results": [{**A, "date": None}]}, "A"),
        ({"citations": [A["url"]]}, ""),
        ({"search_results": [A, {"title": "without an address"}]}, "A"),
    ],
)
async def test_pages_beside_a_chat_are_citations(
    gateway: Gateway, server: dict[str, Any], fields: Json, title: str
) -> None:
    server["answer"] = chunk({"content": "Dry [1]."}, "stop", **fields)
    _, text = await ask(gateway, "responses", "openai/m")
    (part,) = json.loads(text)["output"][0]["content"]
    assert ranges(part["annotations"]) == [(0, 8, {**A, "title": title})]
    server["answer"] = [chunk({"content": "Dry [1]."}), chunk({}, "stop", **fields)]
    _, text = await ask(gateway, "messages", "openai/m", stream=True)
    assert f'"url":"{A["url"]}"' in text
    _, text = await ask(gateway, "chat/completions", "openai/m", stream=True)
    assert all(f'"{name}":' in text for name in fields) and "annotations" not in text
