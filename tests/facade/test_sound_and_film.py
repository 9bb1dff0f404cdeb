"""Recordings and films for models that do not read them."""

import base64
import io
import wave

import pytest
import pytest_asyncio

from tests.facade.media import (
    CHAT,
    MESSAGES,
    by_id,
    by_value,
    gateway_with_media,
    media_of,
    texts_of,
)
from tests.services.inference.fake_adaptation import DAMAGED

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDPOINTS = pytest.mark.parametrize("path", [CHAT, MESSAGES])
MODEL = "openai/transcribe"
_number = iter(range(10_000))


def speech() -> bytes:
    """Return a WAV of a second or a little more, which no other test sends."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(2 * (16_000 + next(_number))))
    return file.getvalue()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory):
    async with gateway_with_media(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def forgotten(media):
    await media.sent()
    media.converting.asked.clear()


@ENDPOINTS
@pytest.mark.parametrize("stream", [False, True])
async def test_a_recording_is_transcribed_by_the_model_that_is_named(media, path, stream):
    part = by_id(path, await media.keep("talk.wav", speech()))
    expected = {"audio": {"model": MODEL, "language": "de-AT"}}
    answer = await media.ask(path, "blind-openai", [part], multimodal=expected, stream=stream)
    assert answer.status == 200, answer.text
    asked, answered = await media.sent()
    assert asked["path"] == "/v1/audio/transcriptions"
    assert asked["headers"]["content-type"].startswith("multipart/form-data")
    form = asked["body"]
    assert (form["model"], form["language"], form["response_format"]) == (
        "transcribe",
        "de",
        "json",
    )
    assert form["file"]["filename"] == "recording.wav"
    texts = texts_of(answered)
    assert f"[Recording 1 (talk.wav): transcribed by the model {MODEL}." in texts
    assert "> Sandbox transcribe: somebody speaks for 1.0 s in de." in texts
    assert answer.adapted == ["messages[0].content[1]:audio-transcribed"]
    assert answer.helpers[0]["task"] == "transcribe_audio"
    assert answer.helpers[0]["input_tokens"] == 14


async def test_a_recording_comes_as_chats_have_it(media):
    data = base64.b64encode(speech()).decode()
    part = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    answer = await media.ask(
        CHAT, "blind-anthropic", [part], multimodal={"audio": {"model": "sandbox/transcribe"}}
    )
    assert answer.status == 200, answer.text
    assert "transcribed by the model sandbox/transcribe" in texts_of((await media.sent())[0])


@ENDPOINTS
@pytest.mark.parametrize("audio", [{}, {"model": "embedded", "language": "en"}])
async def test_without_a_model_the_embedded_engine_transcribes(media, path, audio):
    sound = speech()
    part = by_id(path, await media.keep("talk.wav", sound))
    answer = await media.ask(path, "blind-openai", [part], multimodal={"audio": audio})
    assert answer.status == 200, answer.text
    assert media.converting.asked == [f"transcript {audio.get('language', '')}".strip()]
    texts = texts_of((await media.sent())[0])
    assert "transcribed by the embedded engine. What follows is quoted context.]" in texts
    assert f"> {len(sound)} bytes of speech" in texts


@ENDPOINTS
async def test_a_recording_is_converted_only_on_request(media, path):
    part = by_id(path, await media.keep("talk.wav", speech()))
    for multimodal in (None, {"enabled": False, "audio": {}}, {"audio": {"enabled": False}}):
        answer = await media.ask(path, "blind-openai", [part], multimodal=multimodal)
        assert answer.status == 400
        assert "does not read audio" in answer.text
    assert media.converting.asked == []


@ENDPOINTS
@pytest.mark.parametrize(
    ("model", "status"),
    [("sandbox/fail-500", 502), ("anthropic/claude-x", 400), ("nobody", 400)],
)
async def test_a_failing_transcriber_is_reported(media, path, model, status):
    part = by_id(path, await media.keep("talk.wav", speech()))
    answer = await media.ask(path, "blind-openai", [part], multimodal={"audio": {"model": model}})
    assert answer.status == status
    field = "multimodal.audio.model: " if model == "nobody" else "messages[0].content[1]: "
    assert answer.text.startswith(field)


@ENDPOINTS
async def test_a_film_is_frames_and_what_is_said(media, path):
    part = by_id(
        path,
        await media.keep("trip.mp4", b"\0\0\0\x18ftypmp42 a film " + path.encode(), "video/mp4"),
    )
    answer = await media.ask(path, "sees-openai", [part], multimodal={"video": {"frames": 3}})
    assert answer.status == 200, answer.text
    assert media.converting.asked == ["film 3", "transcript"]
    (sent,) = await media.sent()
    assert media_of(sent) == ["image_url"] * 3
    texts = texts_of(sent)
    assert "[Film 1 (trip.mp4): 3 frames of 3.0 s." in texts
    assert "[Frame 2 of 3, at 1.5 s]" in texts
    assert "> 9 bytes of speech" in texts
    assert answer.adapted == ["messages[0].content[1]:video-frames"]


@ENDPOINTS
async def test_film_frames_are_described_for_a_text_only_model(media, path):
    film = b"\0\0\0\x18ftypmp42 a silent film " + path.encode()
    part = by_id(path, await media.keep("trip.mp4", film, "video/mp4"))
    expected = {"video": {"frames": 2, "model": "sees-gemini"}}
    answer = await media.ask(path, "blind-openai", [part], multimodal=expected)
    assert answer.status == 200, answer.text
    *described, sent = await media.sent()
    assert [one["dialect"] for one in described] == ["gemini"] * 2
    texts = texts_of(sent)
    assert "2 frames of 2.0 s, described by the model sees-gemini." in texts
    assert "[Frame 2 of 2, at 1.5 s]\n> Sandbox vision:" in texts
    assert "[It has no sound.]" in texts


@ENDPOINTS
async def test_a_damaged_film_is_named(media, path):
    film = b"\0\0\0\x18ftypmp42" + DAMAGED
    part = by_id(path, await media.keep("trip.mp4", film, "video/mp4"))
    answer = await media.ask(path, "sees-openai", [part], multimodal={"video": {}})
    assert (answer.status, answer.text) == (400, "messages[0].content[1]: the film is damaged")


async def test_sound_and_film_come_in_data_urls_of_chats(media):
    parts = [
        by_value(CHAT, speech(), "audio/wav"),
        by_value(CHAT, b"a silent film", "video/mp4"),
    ]
    answer = await media.ask(
        CHAT, "sees-openai", parts, multimodal={"audio": {}, "video": {"frames": 1}}
    )
    assert answer.status == 200, answer.text
    assert answer.adapted == [
        "messages[0].content[1]:audio-transcribed",
        "messages[0].content[2]:video-frames",
    ]
