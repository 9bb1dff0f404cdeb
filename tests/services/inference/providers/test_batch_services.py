"""Batch services: Google's batches are found by their names, and answers are read in pieces."""

import json

import pytest

from services.common.errors import UpstreamError
from services.common.http import Client, TooLargeError
from services.common.settings import Limits
from services.inference.providers.anthropic import headers as anthropic_headers
from services.inference.providers.anthropic.batches import AnthropicBatches
from services.inference.providers.gemini import headers
from services.inference.providers.gemini.batches import GeminiBatches
from services.inference.providers.gemini.inlined import AnswerCutter
from services.inference.providers.openai.batches import OpenAIBatches
from services.inference.providers.openai.endpoints import headers as openai_headers
from services.inference.providers.upstream import Upstream
from tests.gateway_in_process import serving
from tests.services.inference.providers.scripted_server import LiveCalls
from tests.upstream.app import create_app
from tests.upstream.batch_services import BatchServices

PATH = "/models/echo:generateContent"
BODY = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'


async def test_a_batch_is_found_by_its_name_on_any_page() -> None:
    app = create_app(personalities=(), now=lambda: 1_000.0)
    async with serving(app) as url, Client(connect_timeout_s=60) as client:
        upstream = Upstream("google", f"{url}/v1beta", headers("k"), Limits(), client, LiveCalls())
        batches = GeminiBatches(upstream)
        ids = [await batches.create(f"b{n}", PATH, (), [("r0", BODY)]) for n in range(5)]
        # A page has two.
        assert [await batches.find(f"b{n}", 900.0) for n in range(5)] == ids
        assert await batches.find("b9", 900.0) == ""
        assert await batches.find("b0", 1_100.0) == "", "later pages are older"
        assert batches.takes(PATH, ()) and not batches.takes(PATH, (("x", "y"),))
        assert not batches.takes("/interactions", ())


def test_answers_are_cut_out_of_a_batch_at_any_byte() -> None:
    texts = ['"inlinedResponses": [{', "\\", "}]", "", 'é"\n']
    answers = [
        {"metadata": {"key": f"r{n}"}, "response": {"t": [text, {"x": {}}]}}
        for n, text in enumerate(texts)
    ]
    inlined = {"inlinedResponses": {"inlinedResponses": answers}}
    first = {"displayName": 'a "name" \\', "output": inlined, "state": "BATCH_STATE_SUCCEEDED"}
    batch = {"name": "b", "metadata": first, "done": True, "empty": {"inlinedResponses": []}}
    rest = json.loads(json.dumps(batch))
    rest["metadata"]["output"]["inlinedResponses"]["inlinedResponses"] = []
    for data in (json.dumps(batch).encode(), json.dumps(batch, indent=1).encode()):
        for size in (1, 2, 3, 7, 64, len(data)):
            cutter = AnswerCutter(1_000)
            pieces = [data[at : at + size] for at in range(0, len(data), size)]
            items = [json.loads(item) for piece in pieces for item in cutter.feed(piece)]
            assert (items, json.loads(cutter.rest)) == (answers, rest)
    for too_long in (b'{"inlinedResponses":[{"' + b"x" * 99, b'{"' + b"x" * 99):
        with pytest.raises(TooLargeError):
            AnswerCutter(90).feed(too_long)


async def test_answers_may_be_larger_together_than_one_may_be() -> None:
    services = BatchServices()
    app = create_app(personalities=(), now=lambda: 1_000.0, batch_services=services)
    text = "word " * 800
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": text}]}]}).encode()
    chat = {"model": "echo", "messages": [{"role": "user", "content": text}]}
    openai_body = json.dumps(chat).encode()
    most = 3 << 19
    limits = Limits(max_answer_bytes=most)
    async with serving(app) as url, Client(connect_timeout_s=60, max_answer_bytes=most) as client:
        google = Upstream("google", f"{url}/v1beta", headers("k"), limits, client, LiveCalls())
        openai = Upstream("openai", f"{url}/v1", openai_headers("k"), limits, client, LiveCalls())
        requests = [f"r{number}" for number in range(500)]
        for api, path, each in (
            (GeminiBatches(google), PATH, body),
            (OpenAIBatches(openai), "/chat/completions", openai_body),
        ):
            batch_id = await api.create("b", path, (), [(name, each) for name in requests])
            assert await api.has_ended(batch_id)
            answers = {name: answer async for name, answer in api.answers(batch_id)}
            assert sorted(answers) == sorted(requests)
            assert sum(map(len, answers.values())) > most


async def test_a_batch_of_anthropic_is_found_by_its_requests() -> None:
    app = create_app(personalities=(), now=lambda: 1_000.0)
    async with serving(app) as url, Client(connect_timeout_s=60) as client:
        upstream = Upstream("anthropic", url, anthropic_headers("k"), Limits(), client, LiveCalls())
        batches = AnthropicBatches(upstream)
        body = b'{"model":"echo","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
        ids = [await batches.create(f"b{n}", "/v1/messages", (), [("r0", body)]) for n in range(5)]
        with pytest.raises(UpstreamError, match="does not show yet"):
            await batches.find("b9", 900.0)
        assert await batches.find("b9", 1_100.0) == "", "those that have not ended are older"
        for batch_id in ids:
            assert await batches.has_ended(batch_id)
        # A page has two.
        assert [await batches.find(f"b{n}", 900.0) for n in range(5)] == ids
        assert await batches.find("b9", 900.0) == ""
        assert [name async for name, _ in batches.answers(ids[0])] == ["r0"]
