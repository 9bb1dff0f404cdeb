"""Moderations, images, audio and rerankers over HTTP, through the official SDK."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import openai
import orjson
import pytest

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from tests.facade.forwarding_upstream import (
    IMAGE_EVENTS,
    PICTURE,
    SPOKEN,
    WAVE,
    ForwardingUpstream,
)
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.limited_callers import ask, limited_gateways
from tests.services.media.conversion.test_speech import BEGINNING, BEGINNING_S, recording
from tests.waiting import until

ADMIN_KEY = make_admin_key(bytes(32))
PRICES = {
    "painter": {"price": {"input": 1, "input_image": 2, "output_image": 10}},
    "writer": {"price": {"audio_hour": 36}},
    "drawer": {"price": {"image": 0.04}},
    "speaker": {"price": {"character": 15}},
}
MODELS = [
    {"name": name, "provider": "openai", "upstream": upstream, **PRICES.get(name, {})}
    for name, upstream in (
        ("painter", "gpt-image-1"),
        ("spare-painter", "gpt-image-2"),
        ("drawer", "dall-e-3"),
        ("speaker", "tts-1"),
        ("writer", "whisper-1"),
        ("omni-moderation-latest", "omni-moderation-latest"),
        ("sorter", "reranker"),
    )
]
CHAIN = {
    "strategy": {"mode": "sequential"},
    "steps": [{"step_id": "spare", "model": "spare-painter"}],
}


@asynccontextmanager
async def served(
    folder: Path, **sections: Any
) -> AsyncIterator[tuple[Gateway, ForwardingUpstream, openai.AsyncOpenAI]]:
    upstream = ForwardingUpstream()
    async with (
        running_gateway(folder, upstream.app, models=MODELS, **sections) as gateway,
        openai.AsyncOpenAI(
            base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0
        ) as client,
    ):
        yield gateway, upstream, client


async def usage_of(gateway: Gateway, requests: int) -> dict[str, dict[str, Any]]:
    """Return the usage by model, once so many requests are recorded."""
    rows: dict[str, dict[str, Any]] = {}
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}

    async def is_recorded() -> bool:
        url = f"{gateway.url}/admin/v1/usage?by=model"
        async with gateway.http.get(url, headers=headers) as answer:
            rows.update({row["id"]: row for row in (await answer.json())["data"]})
        return sum(row["requests"] for row in rows.values()) >= requests

    await until(is_recorded, within_s=20, every_s=0.05)
    return rows


async def test_the_sdk_moderates_and_names_no_model(tmp_path):
    async with served(tmp_path) as (_, upstream, client):
        answer = await client.moderations.create(input=["a", "b"])
    assert answer.results[0].flagged is False
    assert answer.model_extra == {"new": 1}
    assert upstream.bodies == [{"input": ["a", "b"], "model": "omni-moderation-latest"}]


async def test_the_sdk_generates_and_edits_images(tmp_path):
    async with served(tmp_path) as (_, upstream, client):
        raw = await client.images.with_raw_response.generate(
            model="painter", prompt="a dog", size="1024x1024", user="ada"
        )
        made = raw.parse()
        await client.images.edit(
            model="painter",
            prompt="a cat",
            image=[*[("a.png", b"one", "image/png")] * 15, ("b.png", b"two", "image/png")],
            extra_body={"tags": [str(number) for number in range(100)]},
        )
        events = [
            event.type
            async for event in await client.images.generate(
                model="painter", prompt="a dog", stream=True, partial_images=1
            )
        ]
        picture = base64.b64decode(PICTURE)
        stored = await client.files.create(file=("a.png", picture), purpose="vision")
        image = {"file_id": stored.id}
        edit = {"model": "painter", "prompt": "x", "images": [image, image], "mask": image}
        await client.post("/images/edits", body=edit, cast_to=object)
        text = await client.files.create(file=("a.txt", b"x"), purpose="vision")
        for file_id, path in ((text.id, "images[0]"), ("file-" + "0" * 26, "images[0]")):
            with pytest.raises(openai.APIStatusError) as refused:
                body = edit | {"images": [{"file_id": file_id}]}
                await client.post("/images/edits", body=body, cast_to=object)
            assert refused.value.param == f"{path}.file_id"
    assert made.data is not None and made.data[0].b64_json == PICTURE
    assert raw.headers["x-gateway-model"] == "painter"
    assert raw.headers["x-gateway-provider"] == "openai"
    assert raw.headers["x-upstream-request-id"] == "req-up"
    generated, edited, _, of_stored = upstream.bodies
    address = {"image_url": f"data:image/png;base64,{PICTURE}"}
    assert (of_stored["images"], of_stored["mask"]) == ([address, address], address)
    assert generated["model"] == edited["model"] == "gpt-image-1"
    assert generated["user"] == "ada"
    assert edited["image[]"] == ("b.png", "image/png", b"two")
    assert events == [event["type"] for event in IMAGE_EVENTS]


async def test_the_sdk_speaks_and_reads_audio_as_it_arrives(tmp_path):
    async with served(tmp_path) as (gateway, upstream, client):
        async with client.audio.speech.with_streaming_response.create(
            model="speaker", input="Good morning.", voice="alloy", response_format="wav"
        ) as answer:
            spoken = b"".join([piece async for piece in answer.iter_bytes()])
            content_type = answer.headers["content-type"]
        body = {"model": "speaker", "input": "Hi"}
        async with gateway.http.post(
            f"{gateway.url}/v1/audio/speech", json=body, headers=gateway.bearer()
        ) as refused:
            refusal = await refused.json()
    assert (spoken, content_type) == (WAVE, "audio/wav")
    assert upstream.bodies[0]["model"] == "tts-1"
    # What a model needs is its provider's to say.
    assert (refused.status, refusal["error"]["param"]) == (400, "voice")


async def test_the_sdk_transcribes_in_every_form(tmp_path):
    recording = ("talk.wav", WAVE, "audio/wav")
    async with served(tmp_path) as (_, upstream, client):
        whole = await client.audio.transcriptions.create(model="writer", file=recording)
        titles = await client.audio.transcriptions.create(
            model="writer", file=recording, response_format="srt"
        )
        pieces = [
            event
            async for event in await client.audio.transcriptions.create(
                model="writer", file=recording, stream=True, timestamp_granularities=["word"]
            )
        ]
        with pytest.warns(DeprecationWarning):
            translated = await client.audio.translations.create(model="writer", file=recording)
    assert (whole.text, translated.text) == (SPOKEN, SPOKEN)
    assert str(titles).splitlines()[2] == SPOKEN
    assert "".join(e.delta for e in pieces if e.type == "transcript.text.delta") == SPOKEN
    name, content, kind = recording
    assert upstream.bodies[0]["file"] == (name, kind, content)
    assert {body["model"] for body in upstream.bodies} == {"whisper-1"}


async def test_the_embedded_engine_transcribes(tmp_path):
    name = "embedded/moonshine-tiny-en"
    spoken = ("talk.wav", recording("WAV", BEGINNING_S), "audio/wav")
    async with served(tmp_path) as (_, upstream, client):
        create = client.audio.transcriptions.with_raw_response.create
        raw = await create(model=name, file=spoken, prompt="Dickens", language="en")
        text = await client.audio.transcriptions.create(
            model=name, file=spoken, response_format="text"
        )
        events = [
            event
            async for event in await client.audio.transcriptions.create(
                model=name, file=spoken, stream=True
            )
        ]
        refused = {}
        for fields in (
            {"response_format": "srt"},
            {"language": "de"},
            {"include": ["logprobs"]},
            {"file": ("a.wav", b"no sound")},
        ):
            with pytest.raises(openai.BadRequestError) as failed:
                await create(**{"model": name, "file": spoken, **fields})
            refused[next(iter(fields))] = failed.value.param
        with pytest.raises(openai.BadRequestError, match="use /audio/transcriptions"):
            await client.audio.speech.create(model=name, input="Hi", voice="alloy")
    assert raw.parse().text.startswith(BEGINNING)
    assert raw.headers["x-gateway-dropped"] == "prompt"
    assert str(text).startswith(BEGINNING)
    assert events[-1].type == "transcript.text.done" and events[-1].text.startswith(BEGINNING)
    assert "".join(event.delta for event in events[:-1]) == events[-1].text
    names = ("response_format", "language", "file")
    assert refused == {"include": "include[]", **{one: one for one in names}}
    assert upstream.bodies == []


async def test_documents_are_reranked(tmp_path):
    body = {"model": "sorter", "query": "dogs", "documents": ["a cat", "a dog"], "later": [1]}
    # What only the first version of Cohere's API has is sent to that.
    older = (
        body | {"return_documents": True},
        body | {"documents": [{"text": "a"}, {"text": "b"}]},
    )
    sent = [body, body, *older]
    upstream = ForwardingUpstream()
    # Cohere reranks at another address than it chats, and its clients have a path of their own.
    async with serving(upstream.app) as url:
        cohere = {"kind": "openai", "base_url": f"{url}/compatibility/v1", "api_key": "k"}
        models = [{"name": "sorter", "provider": "cohere", "upstream": "reranker"}]
        async with running_gateway(
            tmp_path, models=models, providers={"cohere": cohere}
        ) as gateway:
            for path, one in zip(("/v1/rerank", "/v2/rerank") * 2, sent, strict=True):
                async with gateway.http.post(
                    gateway.url + path, json=one, headers=gateway.bearer()
                ) as answer:
                    results = (await answer.json())["results"]
                assert [result["index"] for result in results] == [1, 0]
    assert upstream.bodies == [one | {"model": "reranker"} for one in sent]
    assert upstream.paths == ["/v2/rerank"] * 2 + ["/v1/rerank"] * 2


async def test_usage_and_cost_are_recorded(tmp_path):
    sections = {
        "admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
        "usage": {"write_every_s": 0.05},
    }
    async with served(tmp_path, **sections) as (gateway, _, client):
        await client.images.generate(model="painter", prompt="a dog")
        async for _ in await client.images.generate(model="painter", prompt="a dog", stream=True):
            pass
        await client.audio.transcriptions.create(model="writer", file=("a.wav", WAVE))
        await client.images.generate(model="drawer", prompt="a dog", n=3)
        await client.audio.speech.create(model="speaker", input="Grüße!", voice="alloy")
        rows = await usage_of(gateway, 5)
    images, audio = rows["painter"], rows["writer"]
    assert float(rows["drawer"]["cost"]) == pytest.approx(3 * 0.04)
    assert float(rows["speaker"]["cost"]) == pytest.approx(6 * 15 / 1e6)
    assert images["requests"] == 2
    assert (images["input_tokens"], images["output_tokens"]) == (100, 120)
    # 10 tokens of text, 40 of images and 60 of an image that was made, twice.
    assert float(images["cost"]) == pytest.approx(2 * (10 + 80 + 600) / 1e6)
    assert float(audio["cost"]) == pytest.approx(36 * 7 / 3600)


async def test_another_model_takes_over(tmp_path):
    async with served(tmp_path) as (gateway, upstream, client):
        upstream.failing.add("gpt-image-1")
        fields = {"fallback": "enabled", "fallback_config": CHAIN}
        raw = await client.images.with_raw_response.generate(
            model="painter", prompt="a dog", extra_body=fields
        )
        form = aiohttp.FormData(quote_fields=False)
        form.add_field("model", "painter")
        form.add_field("prompt", "a cat")
        form.add_field("fallback", "enabled")
        form.add_field("fallback_config", orjson.dumps(CHAIN).decode())
        form.add_field("image", b"one", filename="a%22b.png", content_type="image/png")
        async with gateway.http.post(
            f"{gateway.url}/v1/images/edits", data=form, headers=gateway.bearer()
        ) as edited:
            status = edited.status
        with pytest.raises(openai.InternalServerError) as failed:
            await client.images.generate(
                model="painter", prompt="a dog", extra_body={"fallback": "disabled"}
            )
    assert raw.headers["x-gateway-model"] == "spare-painter"
    assert status == 200
    last = upstream.bodies[3]
    assert last["model"] == "gpt-image-2"
    assert last["image"] == ("a%22b.png", "image/png", b"one")
    assert "fallback" not in last.keys() | upstream.bodies[1].keys()
    assert "the provider openai failed" in failed.value.message


async def test_a_stream_that_fails_says_so(tmp_path):
    async with served(tmp_path) as (gateway, upstream, client):
        upstream.reports_failure = True
        with pytest.raises(openai.APIError, match="the provider openai failed"):
            async for _ in await client.images.generate(
                model="painter", prompt="a dog", stream=True
            ):
                pass
        upstream.breaking = True
        body = {"model": "speaker", "input": "Hi", "voice": "alloy"}
        async with gateway.http.post(
            f"{gateway.url}/v1/audio/speech", json=body, headers=gateway.bearer()
        ) as answer:
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()


async def test_bad_requests_are_refused_before_a_call(tmp_path):
    async with served(tmp_path) as (gateway, upstream, _):

        async def refusal(path: str, **sent: Any) -> tuple[int, str | None]:
            async with gateway.http.post(
                f"{gateway.url}/v1/{path}", headers=gateway.bearer(), **sent
            ) as answer:
                return answer.status, (await answer.json())["error"]["param"]

        form = aiohttp.FormData({"model": "writer", "prompt": "x"})
        form.add_field("memory_id", "m")
        form.add_field("file", b"x", filename="a.wav")
        edit = {"model": "painter", "prompt": "file-abc123"}
        voice = {"id": "voice_123"}
        stored = aiohttp.FormData(edit | {"images[0][file_id]": "file-abc123"})
        stored.add_field("mask", b"x", filename="a.png")
        rows = {
            "no prompt": await refusal("images/generations", json={"model": "painter"}),
            "no model": await refusal("images/generations", json={"prompt": "x"}),
            "no documents": await refusal(
                "rerank", json={"model": "sorter", "query": "x", "documents": []}
            ),
            "memory": await refusal("moderations", json={"input": "x", "memory_id": "m"}),
            "memory in a form": await refusal("audio/transcriptions", data=form),
            "no form": await refusal("audio/transcriptions", json={"model": "writer"}),
            "another kind": await refusal(
                "images/generations", json={"model": "anthropic/claude", "prompt": "x"}
            ),
            "a provider's file": await refusal(
                "images/edits", json=edit | {"images": [{"file_id": "file-abc123"}]}
            ),
            "a provider's file in a form": await refusal("images/edits", data=stored),
            "a provider's address": await refusal(
                "moderations",
                json={"input": [{"image_url": {"url": "https://api.openai.com/v1/files/a"}}]},
            ),
            "a voice": await refusal(
                "audio/speech", json={"model": "speaker", "input": "x", "voice": voice}
            ),
        }
    assert rows == {
        "no prompt": (400, "prompt"),
        "no model": (400, "model"),
        "no documents": (400, "documents"),
        "memory": (400, "memory_id"),
        "memory in a form": (400, "memory_id"),
        "no form": (415, "Content-Type"),
        "another kind": (400, "model"),
        "a provider's file": (400, "images[0].file_id"),
        "a provider's file in a form": (400, "images.0.file_id"),
        "a provider's address": (400, "input[0].image_url.url"),
        "a voice": (400, "voice.id"),
    }
    assert upstream.bodies == []


async def test_limits_apply(tmp_path):
    upstream = ForwardingUpstream()
    limits = UsageLimits(requests_per_minute=1, allowed_models=("painter",))
    body = {"model": "painter", "prompt": "a dog"}
    async with limited_gateways(
        tmp_path, Storage(data_dir=tmp_path), upstream=upstream.app, models=MODELS
    ) as limited:
        caller = await limited.caller(SubjectKind.USER, limits)
        answers = [
            await ask(limited, "/v1/images/generations", body, caller),
            await ask(limited, "/v1/images/generations", body, caller),
            await ask(limited, "/v1/moderations", {"input": "a"}, caller),
            await ask(limited, "/v1/images/generations", body | {"judge_model": "x"}, caller),
        ]
        form = aiohttp.FormData(body | {"svg[model]": "x"})
        form.add_field("image", b"x" * 300, filename="a.png")
        (gateway,) = limited.gateways
        url = f"{gateway.url}/v1/images/edits"
        async with gateway.http.post(url, data=form, headers=caller) as answer:
            answers.append((answer.status, (await answer.json())["error"], answer.headers))
    assert [status for status, _, _ in answers] == [200, 429, 403, 403, 403]
    params = [error["param"] for _, error, _ in answers[2:]]
    assert params == ["model", "judge_model", "svg.model"]
    assert len(upstream.bodies) == 1


async def test_a_caller_who_leaves_ends_the_call(tmp_path):
    upstream = ForwardingUpstream()
    upstream.is_silent = True
    async with (
        running_gateway(tmp_path, upstream.app, models=MODELS) as gateway,
        openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key) as client,
    ):
        task = asyncio.create_task(client.images.generate(model="painter", prompt="a dog"))
        await upstream.received.wait()
        task.cancel()
        await upstream.left.wait()
