"""The upstream as Gemini's API: its rules, and its answers over HTTP."""

import json

import aiohttp
import pytest

KEY = {"x-goog-api-key": "k-1"}
HI = [{"role": "user", "parts": [{"text": "hi"}]}]
CALL = {"functionCall": {"name": "f", "args": {}}}
DUMMY = {"thoughtSignature": "skip_thought_signature_validator"}
RESULT = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
TOOLS = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}]


@pytest.fixture
async def session(upstream):
    async with aiohttp.ClientSession(upstream.url) as made:
        yield made


async def ask(session, body, method="generateContent", model="echo", headers=KEY):
    path = f"/v1beta/models/{model}:{method}"
    async with session.post(path, json=body, headers=headers) as response:
        return response.status, await response.json()


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def user(*parts):
    return {"role": "user", "parts": list(parts)}


async def test_a_whole_answer(session):
    status, answer = await ask(session, {"contents": HI})
    assert status == 200
    (candidate,) = answer["candidates"]
    assert candidate["content"]["parts"][0]["text"] == 'Sandbox echo: you said "hi".'
    assert (candidate["finishReason"], answer["modelVersion"]) == ("STOP", "echo")
    assert answer["usageMetadata"]["totalTokenCount"] > answer["usageMetadata"]["promptTokenCount"]


async def test_a_streamed_answer_is_the_whole_one(session):
    body = {
        "contents": [user({"text": "use the tool"})],
        "tools": TOOLS,
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    }
    _, whole = await ask(session, body)
    path = "/v1beta/models/echo:streamGenerateContent"
    async with session.post(f"{path}?alt=sse", json=body, headers=KEY) as response:
        assert response.content_type == "text/event-stream"
        lines = (await response.text()).split("\r\n\r\n")
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    parts = [part for one in events for part in one["candidates"][0]["content"]["parts"]]
    texts: dict[bool, str] = {}
    for part in parts:
        if "text" in part:
            kind = part.get("thought", False)
            texts[kind] = texts.get(kind, "") + part["text"]
    whole_parts = whole["candidates"][0]["content"]["parts"]
    assert [texts[True], texts[False]] == [part["text"] for part in whole_parts if "text" in part]
    assert [part for part in parts if "functionCall" in part] == [
        part for part in whole_parts if "functionCall" in part
    ]
    assert events[-1]["candidates"][0]["finishReason"] == "STOP"
    async with session.post(path, json=body, headers=KEY) as response:
        assert response.status == 400


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"contents": []}, "contents is not specified"),
        ({"contents": [user()]}, "contents.parts must not be empty"),
        ({"contents": [user({})]}, "required oneof field 'data'"),
        ({"contents": HI, "x": 1}, 'Unknown name "x": Cannot find field.'),
        (
            {"contents": HI, "generationConfig": {"max": 1}},
            "Unknown name \"max\" at 'generation_config': Cannot find field.",
        ),
        (
            {"contents": [user({"text": 5})]},
            "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
        ),
        ({"contents": [user({"inlineData": {"data": "$"}})]}, "(TYPE_BYTES)"),
        ({"contents": [user({"inlineData": {"data": "AA=="}})]}, "inline_data.mime_type"),
        ({"contents": [user({"functionResponse": {}})]}, "Name cannot be empty"),
        ({"contents": {}}, "an array is needed"),
        ({"contents": [5]}, "an object is needed"),
        ({"contents": [{"role": "tool", "parts": [{"text": "x"}]}]}, "Please use a valid role"),
        ({"contents": [model(CALL)]}, "immediately after a user turn"),
        ({"contents": [*HI, user(RESULT)]}, "immediately after a function call turn"),
        (
            {"contents": [*HI, model({**CALL, **DUMMY}, CALL), user(RESULT)]},
            "number of function response parts is equal",
        ),
        ({"contents": [*HI, model(CALL), user(RESULT)]}, "missing a thought_signature"),
        (
            {"contents": [*HI, model({**CALL, "thoughtSignature": "AAAA"}), user(RESULT)]},
            "Thought signature is not valid",
        ),
        (
            {"contents": HI, "tools": [{"functionDeclarations": [{"name": "1"}]}]},
            "Invalid function name",
        ),
        ({"contents": HI, "tools": TOOLS * 2}, "Duplicate function declaration found: f"),
        (
            {"contents": HI, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            "without function_declarations",
        ),
        ({"contents": HI, "generationConfig": {"temperature": 3}}, "temperature must be in"),
        ({"contents": HI, "generationConfig": {"stopSequences": ["x"] * 6}}, "at most 5"),
        ({"contents": HI, "generationConfig": {"logprobs": 1}}, "response_logprobs"),
        ({"contents": HI, "generationConfig": {"responseJsonSchema": {}}}, "response_mime_type"),
        (
            {
                "contents": HI,
                "generationConfig": {
                    "thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}
                },
            },
            "only one of thinking budget and thinking level",
        ),
    ],
)
async def test_what_google_refuses_is_refused_in_its_words(session, body, words):
    status, answer = await ask(session, body)
    assert status == 400
    assert answer["error"]["status"] == "INVALID_ARGUMENT"
    assert words in answer["error"]["message"]


async def test_calls_before_the_current_turn_need_no_signature(session):
    earlier = [*HI, model(CALL), user(RESULT), model({"text": "x"}), user({"text": "y"})]
    status, _ = await ask(session, {"contents": earlier})
    assert status == 200


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("none", 404, "NOT_FOUND"),
        ("fail-429", 429, "RESOURCE_EXHAUSTED"),
        ("fail-401", 401, "UNAUTHENTICATED"),
        ("fail-529", 529, "UNAVAILABLE"),
    ],
)
async def test_failures_are_google_s(session, name, status, kind):
    answered_status, answer = await ask(session, {"contents": HI}, model=name)
    error = answer["error"]
    assert (answered_status, error["code"], error["status"]) == (status, status, kind)
    delays = [one.get("retryDelay") for one in error.get("details", ())]
    assert ("1s" in delays) is (status in (429, 529))


async def test_a_key_is_needed(session):
    status, answer = await ask(session, {"contents": HI}, headers={})
    assert (status, answer["error"]["status"]) == (403, "PERMISSION_DENIED")


async def test_models_are_listed_and_described(session):
    async with session.get("/v1beta/models", headers=KEY) as response:
        listed = (await response.json())["models"]
    async with session.get("/v1beta/models/echo", headers=KEY) as response:
        assert await response.json() == listed[0]
    assert listed[0]["name"] == "models/echo"


async def test_tokens_are_counted_and_vectors_made(session):
    body = {"generateContentRequest": {"model": "models/echo", "contents": HI}}
    assert await ask(session, body, "countTokens") == (200, {"totalTokens": 1})
    request = {"model": "models/embed", "content": {"parts": [{"text": "a dog"}]}}
    body = {"requests": [request]}
    status, made = await ask(session, body, "batchEmbedContents", model="embed")
    assert (status, len(made["embeddings"][0]["values"])) == (200, 256)
    empty = {"requests": [{"model": "models/embed", "content": {"parts": []}}]}
    assert (await ask(session, empty, "batchEmbedContents", model="embed"))[0] == 400


async def test_a_function_without_a_schema_is_called_with_an_object(session):
    tools = [{"functionDeclarations": [{"name": "do_it"}]}]
    _, answer = await ask(session, {"contents": [user({"text": "do it"})], "tools": tools})
    parts = answer["candidates"][0]["content"]["parts"]
    (call,) = [part["functionCall"] for part in parts if "functionCall" in part]
    assert isinstance(call["args"], dict)


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
async def test_googles_own_client_runs_a_batch(upstream):
    from google.genai import Client, errors, types

    options = types.HttpOptions(base_url=upstream.url, api_version="v1beta")
    client = Client(api_key="k-1", http_options=options).aio
    good, bad = types.InlinedRequest(contents="hi"), types.InlinedRequest(contents="hi")
    good.metadata, bad.metadata = {"key": "a"}, {"key": "b"}
    bad.config = types.GenerateContentConfig(max_output_tokens=-1)
    created = await client.batches.create(
        model="echo", src=[good, bad], config={"display_name": "two"}
    )
    assert created.state == types.JobState.JOB_STATE_PENDING
    job = await client.batches.get(name=created.name)
    assert (job.state, job.display_name) == (types.JobState.JOB_STATE_SUCCEEDED, "two")
    results = {one.metadata["key"]: one for one in job.dest.inlined_responses}
    assert results["a"].response.text == 'Sandbox echo: you said "hi".'
    assert results["b"].error is not None and results["b"].response is None
    for _ in range(2):
        await client.batches.create(model="echo", src=[good])
    listed = [one.name async for one in await client.batches.list()]
    assert len(listed) == 3 and listed[-1] == created.name
    await client.batches.delete(name=created.name)
    with pytest.raises(errors.ClientError, match="Requests are needed"):
        await client.batches.create(model="echo", src=[])
