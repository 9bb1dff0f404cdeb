"""Methods of Google's clients beside generateContent, and the gateway's own fields in it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from services.files import upload_repository
from tests.facade.google_callers import Json, ask, says, sent_to
from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

PIECE = 256 << 10
SIZE = "X-Goog-Upload-Header-Content-Length"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: Any) -> AsyncIterator[Gateway]:
    limits = {"max_file_bytes": 2 << 20}
    async with running_gateway(tmp_path_factory.mktemp("gateway"), limits=limits) as running:
        yield running


async def start(gateway: Gateway, **headers: str) -> tuple[int, Any, Json]:
    """Begin an upload; return the status, the headers and the answer."""
    given = {
        "x-goog-api-key": gateway.key,
        "X-Goog-Upload-Protocol": "resumable",
        "X-Goog-Upload-Command": "start",
        SIZE: "5",
        "X-Goog-Upload-Header-Content-Type": "text/plain",
        **headers,
    }
    sent = {name: value for name, value in given.items() if value}
    body = {"file": {"display_name": "note.txt"}}
    url = f"{gateway.url}/upload/v1beta/files"
    async with gateway.http.post(url, json=body, headers=sent) as answer:
        return answer.status, answer.headers, await answer.json()


async def send(
    gateway: Gateway, address: str, data: bytes, offset: int, command: str = "upload, finalize"
) -> tuple[int, str, Json]:
    """Send content without a key; return the status, that of the upload, and the answer."""
    headers = {"X-Goog-Upload-Command": command, "X-Goog-Upload-Offset": str(offset)}
    async with gateway.http.post(address, data=data, headers=headers) as answer:
        return answer.status, answer.headers["x-goog-upload-status"], await answer.json()


async def call(gateway: Gateway, method: str, path: str) -> tuple[int, Json]:
    headers = {"x-goog-api-key": gateway.key}
    async with gateway.http.request(method, f"{gateway.url}{path}", headers=headers) as answer:
        return answer.status, await answer.json()


async def test_extensions_of_the_gateway(gateway: Gateway):
    step = {
        "step_id": "second",
        "model": "openai/echo",
        "parameters": {"generationConfig": {"temperature": 0.25}},
    }
    chain = {"strategy": {"mode": "sequential"}, "steps": [step]}
    hello = {"contents": [says({"text": "hello"})]}
    body = {
        **hello,
        "generationConfig": {"temperature": 1, "maxOutputTokens": 100},
        "fallback": "enabled",
        "fallback_config": chain,
        "memory_id": "of-google",
    }
    status, headers, answer = await ask(gateway, "anthropic/fail-500", body)
    assert (status, headers["x-gateway-step"]) == (200, "second"), answer
    sent = await sent_to(gateway, "openai")
    assert (sent["temperature"], sent["max_tokens"]) == (0.25, 100)
    body = {"contents": [says({"text": "sandbox: recite"})], "memory_id": "of-google"}
    _, _, answer = await ask(gateway, "openai/echo", body)
    assert "hello" in answer["candidates"][0]["content"]["parts"][0]["text"]
    step["parameters"] = {"contents": [says({"functionResponse": {"name": "f"}})]}
    wrong = {**hello, "fallback": "enabled", "fallback_config": chain}
    status, _, answer = await ask(gateway, "openai/echo", wrong)
    path = "fallback_config.steps[0].parameters.contents[0].parts[0].functionResponse.id"
    assert status == 400 and answer["error"]["message"].startswith(path), answer


async def test_counts_and_embeddings(gateway: Gateway):
    text = {"contents": [says({"text": "hello there"})]}
    whole = {"generateContentRequest": {"model": "models/x", **text, "tools": []}}
    for body in (text, whole):
        status, _, answer = await ask(gateway, "gemini/echo", body, "countTokens")
        assert (status, answer["totalTokens"] > 0) == (200, True), answer
    one = {"content": {"parts": [{"text": "a"}]}, "outputDimensionality": 4}
    status, _, answer = await ask(gateway, "sandbox/embed", one, "embedContent")
    assert (status, len(answer["embedding"]["values"])) == (200, 4)
    batch = {"requests": [{**one, "taskType": "RETRIEVAL_QUERY", "title": "t"}] * 2}
    status, headers, answer = await ask(gateway, "gemini/embed", batch, "batchEmbedContents")
    assert (status, len(answer["embeddings"])) == (200, 2), answer
    request = (await sent_to(gateway, "gemini"))["requests"][0]
    assert (request["taskType"], request["title"]) == ("RETRIEVAL_QUERY", "t")
    assert "x-gateway-dropped" not in headers
    different = {"requests": [one, {**one, "outputDimensionality": 5}]}
    status, _, answer = await ask(gateway, "sandbox/embed", different, "batchEmbedContents")
    assert answer["error"]["message"].startswith("requests[1].outputDimensionality: must")


async def test_models_under_every_version(gateway: Gateway):
    text = {"contents": [says({"text": "hello there"})]}
    key = {"x-goog-api-key": gateway.key}
    for version in ("v1beta", "v1", "v1alpha"):
        names: list[str] = []
        token = ""
        while not names or token:
            path = f"/{version}/models?pageSize=7&pageToken={token}"
            _, page = await call(gateway, "GET", path)
            names += [model["name"] for model in page["models"]]
            token = page.get("nextPageToken", "")
        assert "models/sandbox/echo" in names and len(names) == len(set(names)) > 7
        _, model = await call(gateway, "GET", f"/{version}/models/sandbox/echo")
        assert model["inputTokenLimit"] > 0
        url = f"{gateway.url}/{version}/models/sandbox/echo:generateContent"
        async with gateway.http.post(url, json=text, headers=key) as answer:
            assert answer.status == 200
    # The same paths are OpenAI's with its credential.
    async with gateway.http.get(f"{gateway.url}/v1/models", headers=gateway.bearer()) as answer:
        assert (await answer.json())["object"] == "list"


async def test_a_file_in_pieces(gateway: Gateway):
    size = {SIZE: str(PIECE + 3)}
    _, headers, _ = await start(gateway, **size)
    address = headers["x-goog-upload-url"]
    assert headers["x-goog-upload-status"] == "active"
    assert await send(gateway, address, b"x" * PIECE, 0, "upload") == (200, "active", {})
    assert await send(gateway, address, b"", 0, "query") == (200, "active", {})
    status, state, answer = await send(gateway, address, b"y", 7)
    assert (status, state) == (400, "final")
    assert answer["error"]["message"].startswith(f"x-goog-upload-offset: must be {PIECE}")
    status, state, answer = await send(gateway, address, b"end", PIECE)
    file = answer["file"]
    assert (status, state, file["sizeBytes"]) == (200, "final", str(PIECE + 3)), answer
    # The answer may have been lost: the same request again makes no other file.
    assert await send(gateway, address, b"end", PIECE) == (200, "final", answer)
    assert await send(gateway, address, b"", 0, "query") == (200, "final", {})
    assert (file["displayName"], file["mimeType"]) == ("note.txt", "text/plain")
    # It is a file of the store, under its id of the other dialects too.
    file_id = f"file-{file['name'].removeprefix('files/').upper()}"
    url = f"{gateway.url}/v1/files/{file_id}/content"
    async with gateway.http.get(url, headers=gateway.bearer()) as response:
        assert await response.read() == b"x" * PIECE + b"end"
    for other in (address[:-1], f"{address}A", f"{address.rpartition('.')[0]}.{'A' * 62}"):
        assert (await send(gateway, other, b"", 0))[0] == 404
    for version in ("v1beta", "v1"):
        assert await call(gateway, "GET", f"/{version}/{file['name']}") == (200, file)
    second, headers, _ = await start(gateway)
    address = headers["x-goog-upload-url"]
    _, _, answer = await send(gateway, address, b"notes", 0)
    _, page = await call(gateway, "GET", "/v1beta/files?pageSize=1")
    assert page["files"] == [answer["file"]]
    _, page = await call(gateway, "GET", f"/v1beta/files?pageToken={page['nextPageToken']}")
    assert page["files"] == [file]
    contents = [says({"text": "read"}, {"fileData": {"fileUri": answer["file"]["uri"]}})]
    _, _, read = await ask(gateway, "openai/echo", {"contents": contents})
    assert "notes" in read["candidates"][0]["content"]["parts"][0]["text"], second
    assert await call(gateway, "DELETE", f"/v1beta/{file['name']}") == (200, {})
    assert (await call(gateway, "GET", f"/v1beta/{file['name']}"))[0] == 404


async def test_uploads_are_bounded(gateway: Gateway, monkeypatch: pytest.MonkeyPatch):
    for headers, status, named in (
        ({SIZE: str(3 << 20)}, 413, "file"),
        ({SIZE: str(3 << 40)}, 413, "file"),
        ({SIZE: "many"}, 400, "x-goog-upload-header-content"),
        ({"X-Goog-Upload-Protocol": "raw"}, 400, "x-goog-upload-protocol"),
        ({"x-goog-api-key": f"gw-{'A' * 43}"}, 401, "the API key"),
    ):
        got, _, answer = await start(gateway, **headers)
        assert (got, answer["error"]["message"].startswith(named)) == (status, True), answer
    _, headers, _ = await start(gateway, **{SIZE: ""})
    address = headers["x-goog-upload-url"]
    large = b"x" * (1 << 20)
    for offset in (0, len(large)):
        assert (await send(gateway, address, large, offset, "upload"))[0] == 200
    status, state, answer = await send(gateway, address, b"x", 2 * len(large), "upload")
    assert (status, state, answer["error"]["status"]) == (413, "final", "INVALID_ARGUMENT")
    assert (await send(gateway, address, b"", 0, "cancel"))[:2] == (200, "cancelled")
    assert (await send(gateway, address, b"", 0))[0] == 404
    first = (await start(gateway))[1]["x-goog-upload-url"]
    status, _, answer = await send(gateway, first, b"123456", 0)
    assert (status, answer["error"]["message"]) == (400, "file: the upload was begun for 5 bytes")
    status, _, answer = await send(gateway, first, b"1234", 0)
    assert (status, answer["error"]["message"].split(":")[0]) == (400, SIZE.lower())
    monkeypatch.setattr(upload_repository, "MAX_PENDING", 2)
    assert (await start(gateway))[0] == 200
    status, _, answer = await start(gateway)
    assert (status, answer["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert (await send(gateway, first, b"", 0, "cancel"))[:2] == (200, "cancelled")
    assert (await start(gateway))[0] == 200


UNSERVED = (
    ("POST", "/v1beta/cachedContents", "pass_stateful"),
    ("GET", "/v1beta/cachedContents/abc", "pass_stateful"),
    ("POST", "/v1beta/models/openai/echo:batchGenerateContent", "/v1/batches"),
    ("POST", "/v1alpha/auth_tokens", "a key of the gateway"),
    ("PATCH", "/v1beta/models/x", "belong to their providers"),
    ("POST", "/upload/v1beta/fileSearchStores/x:uploadToFileSearchStore", "/v1/vector_stores"),
    ("POST", "/v1beta/files:register", "/upload/v1beta/files"),
    ("GET", "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", ""),
)


async def test_methods_that_are_not_served_say_what_to_do(gateway: Gateway):
    failures = []
    for method, path, words in UNSERVED:
        status, answer = await call(gateway, method, path)
        error = answer["error"]
        if (status, error.get("status")) != (501, "UNIMPLEMENTED") or words not in error["message"]:
            failures.append(f"{method} {path}: {status} {answer}")
    assert not failures, "\n".join(failures)
