"""Films made here, through a real worker: frames evenly spread, and their sound."""

import io
import wave

import av
import numpy as np
import pytest
from PIL import Image

from services.common.errors import GatewayError
from services.media.conversion import sound
from services.media.conversion.errors import ConversionError
from services.media.conversion.parts import Source

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECONDS, RATE = 4, 10
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255))
# Encoders that PyAV has in every build.
FILMS = {
    "mp4": ("mpeg4", "aac"),
    "webm": ("libvpx", "libopus"),
    "mpegts": ("mpeg2video", "mp2"),
}


def film(
    container: str = "mp4", *, sound: bool = True, size=(160, 120), begins_at: int = 0
) -> bytes:
    """Return a film of one colour a second, and a tone of 440 Hz."""
    video_codec, audio_codec = FILMS[container]
    written = io.BytesIO()
    options = {"output_ts_offset": str(begins_at)}
    with av.open(written, "w", format=container, options=options) as output:
        video = output.add_stream(video_codec, rate=RATE)
        video.width, video.height = size
        video.pix_fmt = "yuv420p"
        audio = output.add_stream(audio_codec, rate=48_000) if sound else None
        for number in range(SECONDS * RATE):
            frame = av.VideoFrame.from_ndarray(
                np.full((*size[::-1], 3), COLOURS[number // RATE], np.uint8), format="rgb24"
            )
            frame.pts = number
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        if audio is not None:
            output.mux(_tone(audio))
            output.mux(audio.encode(None))
    return written.getvalue()


def _tone(audio) -> list:
    times = np.arange(SECONDS * 48_000) / 48_000
    samples = (np.sin(2 * np.pi * 440 * times) * 20_000).astype(np.int16)[None]
    frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
    frame.rate, frame.pts = 48_000, 0
    resampler = av.AudioResampler(audio.format.name, audio.layout.name, 48_000)
    return [packet for part in resampler.resample(frame) for packet in audio.encode(part)]


def heard(sound: bytes) -> tuple[tuple[int, int, int], float, float]:
    """Return rate, channels and bytes a sample of a WAV, its seconds, and its loudest pitch."""
    with wave.open(io.BytesIO(sound)) as read:
        shape = (read.getframerate(), read.getnchannels(), read.getsampwidth())
        samples = np.frombuffer(read.readframes(read.getnframes()), np.int16)
    seconds = len(samples) / shape[0]
    return shape, seconds, float(np.abs(np.fft.rfft(samples)).argmax() / seconds)


async def refusal(converter, content: bytes) -> str:
    with pytest.raises(GatewayError) as caught:
        await converter.film(Source(content, "video/mp4"), frames=2)
    assert caught.value.code == "invalid_request"
    return caught.value.message


@pytest.mark.parametrize("container", ["mp4", "webm"])
async def test_a_film_is_split_into_frames_and_sound(converter, container):
    parts = await converter.film(Source(film(container), ""), frames=4)
    assert parts.duration_s == pytest.approx(SECONDS, abs=0.1)
    assert [frame.at_s for frame in parts.frames] == pytest.approx([0.5, 1.5, 2.5, 3.5], abs=0.11)
    for frame, colour in zip(parts.frames, COLOURS, strict=True):
        assert frame.mime_type == "image/jpeg"
        seen = Image.open(io.BytesIO(frame.content)).getpixel((80, 60))
        assert seen == pytest.approx(colour, abs=25)
    shape, seconds, pitch = heard(parts.sound)
    assert shape == (16_000, 1, 2)
    assert (seconds, pitch) == pytest.approx((SECONDS, 440), rel=0.02)


async def test_times_count_from_the_beginning_of_a_film(converter):
    parts = await converter.film(Source(film("mpegts", begins_at=100), ""), frames=1)
    (frame,) = parts.frames
    assert frame.at_s == pytest.approx(2.5, abs=0.5)
    seen = Image.open(io.BytesIO(frame.content)).getpixel((80, 60))
    assert seen == pytest.approx(COLOURS[2], abs=25)


async def test_a_silent_film_has_no_sound(converter):
    parts = await converter.film(Source(film(sound=False), ""), frames=1)
    assert parts.sound is None and len(parts.frames) == 1


async def test_more_frames_than_there_are_come_once(converter):
    parts = await converter.film(Source(film(sound=False), ""), frames=100)
    times = [frame.at_s for frame in parts.frames]
    assert times == sorted(set(times)) and len(times) <= SECONDS * RATE


async def test_large_frames_are_made_smaller(converter):
    parts = await converter.film(Source(film(sound=False, size=(2000, 500)), ""), frames=1)
    assert Image.open(io.BytesIO(parts.frames[0].content)).size == (1568, 392)


async def test_a_list_of_files_opens_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inside.ts").write_bytes(film("mpegts"))
    listing = b"ffconcat version 1.0\nfile inside.ts\n"
    with (
        pytest.raises(ConversionError, match="damaged, or its format is not supported"),
        sound.opened(listing),
    ):
        pass


@pytest.mark.parametrize("content", [b"", b"no film", None], ids=["empty", "no film", "cut"])
async def test_a_damaged_film_is_refused(converter, content):
    if content is None:
        content = film()[:300]
    assert "damaged, or its format is not supported" in await refusal(converter, content)
