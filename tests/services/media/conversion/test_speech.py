"""English speech recognised without a provider, through a real worker."""

import io
from pathlib import Path

import av
import moonshine_voice
import numpy as np
import pytest
import soundfile

from services.common.errors import GatewayError
from services.media.conversion.parts import Source
from tests.services.media.conversion import papers

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A recording that comes with the engine: Dickens, read aloud.
RECORDING = Path(moonshine_voice.get_assets_path()) / "two_cities.wav"
SAID = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, "
    "it was the age of foolishness"
)
# What is said in its first seconds.
BEGINNING, BEGINNING_S = "It was the best of times", 3


def recording(format: str, seconds: float = 10) -> bytes:
    """Return the beginning of the recording in another format."""
    samples, rate = soundfile.read(RECORDING)
    written = io.BytesIO()
    soundfile.write(written, samples[: int(seconds * rate)], rate, format=format)
    return written.getvalue()


def m4a() -> bytes:
    """Return the beginning of the recording as AAC, which libsndfile does not read."""
    written = io.BytesIO()
    with (
        av.open(io.BytesIO(recording("WAV", BEGINNING_S))) as read,
        av.open(written, "w", "mp4") as output,
    ):
        stream = output.add_stream("aac", rate=48_000)
        for frame in read.decode(audio=0):
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return written.getvalue()


async def transcript(converter, content: bytes, language: str = "") -> str:
    return await converter.transcript(Source(content, "audio/x"), language=language)


async def refusal(converter, content: bytes, language: str = "") -> str:
    with pytest.raises(GatewayError) as caught:
        await transcript(converter, content, language)
    assert caught.value.code == "invalid_request"
    return caught.value.message


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("format", ["WAV", "FLAC", "MP3", "OGG"])
async def test_a_recording_becomes_text(converter, format):
    content = recording(format, BEGINNING_S)
    assert papers.recall(BEGINNING, await transcript(converter, content, "en-GB")) >= 0.9


async def test_a_format_of_films_is_read_too(converter):
    assert papers.recall(BEGINNING, await transcript(converter, m4a())) >= 0.9


@pytest.mark.soak
async def test_a_long_recording_is_read_to_its_end(converter):
    samples, rate = soundfile.read(RECORDING)
    written = io.BytesIO()
    part = samples[: int(10 * rate)]
    soundfile.write(written, np.concatenate([part] * 4), rate, format="WAV")
    heard_text = await transcript(converter, written.getvalue())
    assert papers.recall(" ".join([SAID] * 4), heard_text) >= 0.9


@pytest.mark.parametrize("spoken_s", [0, pytest.param(10, marks=pytest.mark.soak)])
async def test_silence_says_nothing(converter, spoken_s):
    samples, rate = soundfile.read(RECORDING)
    written = io.BytesIO()
    silent = np.concatenate([samples[: spoken_s * rate], np.zeros(25 * rate)])
    soundfile.write(written, silent, rate, format="WAV")
    heard_text = await transcript(converter, written.getvalue())
    assert "you" not in papers.words(heard_text)
    assert bool(heard_text) == bool(spoken_s)


async def test_another_language_needs_a_model(converter):
    message = await refusal(converter, recording("WAV", 1), "de")
    assert "only English" in message and "[roles] transcribe_audio" in message


@pytest.mark.parametrize("content", [b"", b"no sound", recording("WAV", 1)[:30]])
async def test_a_damaged_recording_is_refused(converter, content):
    assert "damaged, or its format is not supported" in await refusal(converter, content)
