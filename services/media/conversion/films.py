"""Extract evenly spaced frames and the sound of films with PyAV (FFmpeg)."""

import io
import wave
from collections.abc import Iterator
from contextlib import contextmanager

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from PIL import Image

from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_PIXELS, MAX_SIDE
from services.media.conversion.parts import Film, Picture, Source
from services.media.conversion.sound import RATE, decoded, opened


def film(source: Source, *, frames: int) -> Film:
    """Return `frames` frames of a film, and its sound."""
    with _opened(source.content) as container:
        duration = _duration(container)
        pictures = tuple(_frames(container, duration, frames))
    sound = decoded(source.content)
    return Film(duration, pictures, _wav(sound) if sound else None)


@contextmanager
def _opened(content: bytes) -> Iterator[InputContainer]:
    with opened(content) as container:
        if not container.streams.video:
            raise ConversionError("the video has no pictures")
        context = container.streams.video[0].codec_context
        if context.width * context.height > MAX_PIXELS:
            raise ConversionError(f"the video has more than {MAX_PIXELS // 1000000} megapixels")
        yield container


def _duration(container: InputContainer) -> float:
    """Return the duration of a film in seconds, determined by reading it if undeclared."""
    if container.duration:
        return container.duration / av.time_base
    end = 0.0
    for packet in container.demux(video=0):
        if packet.pts is not None and packet.time_base is not None:
            end = max(end, float((packet.pts + (packet.duration or 0)) * packet.time_base))
    container.seek(0)
    return end


def _frames(container: InputContainer, duration: float, count: int) -> Iterator[Picture]:
    """Return the middle frames of `count` equal parts; fewer if the film is shorter."""
    start = (container.start_time or 0) / av.time_base
    last = -1.0
    for place in range(count):
        target_s = start + duration * (place + 0.5) / count
        frame = _frame_at(container, target_s)
        frame_s = 0.0 if frame is None or frame.time is None else frame.time - start
        if frame is not None and frame_s > last:
            last = frame_s
            yield _picture(place + 1, frame, frame_s)


def _frame_at(container: InputContainer, target_s: float) -> VideoFrame | None:
    """Return the first frame at or after a time, or the last one."""
    container.seek(int(target_s * av.time_base))
    frame = None
    for frame in container.decode(video=0):
        if frame.time is None or frame.time >= target_s:
            break
    return frame


def _picture(number: int, frame: VideoFrame, at_s: float) -> Picture:
    image = Image.fromarray(frame.to_ndarray(format="rgb24"))
    if frame.rotation:
        image = image.rotate(frame.rotation, expand=True)
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=85)
    return Picture(number, packed.getvalue(), "image/jpeg", round(at_s, 3))


def _wav(samples: bytes) -> bytes:
    packed = io.BytesIO()
    with wave.open(packed, "wb") as wav_file:
        wav_file.setnchannels(1)
        wav_file.setsampwidth(2)
        wav_file.setframerate(RATE)
        wav_file.writeframes(samples)
    return packed.getvalue()
