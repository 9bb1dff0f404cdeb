"""Decode the sound of films and recordings with PyAV (FFmpeg)."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

import av
from av.container import InputContainer

from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_SOUND_S

RATE = 16_000
# Self-contained formats. Playlists are excluded, as FFmpeg would open the files and URLs in them.
_FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf,gif,apng,"
    "mp3,wav,flac,aac,amr,aiff,caf"
)
_OPTIONS = {"format_whitelist": _FORMATS, "protocol_whitelist": "none"}


@contextmanager
def opened(content: bytes) -> Iterator[InputContainer]:
    """Open a film or recording.

    Raises:
        ConversionError: it is damaged or of an unsupported format; also raised for errors while
            reading within the block.
    """
    try:
        with av.open(io.BytesIO(content), options=_OPTIONS, metadata_errors="ignore") as container:
            assert isinstance(container, InputContainer)
            yield container
    except av.FFmpegError:
        raise ConversionError("the recording is damaged, or its format is not supported") from None


def decoded(content: bytes) -> bytes:
    """Return the sound of a film or recording as 16-bit mono at `RATE`; empty if silent.

    Raises:
        ConversionError: it is damaged, or too long.
    """
    with opened(content) as container:
        if not container.streams.audio:
            return b""
        resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
        samples = bytearray()
        for frame in container.decode(audio=0):
            for part in resampler.resample(frame):
                samples += part.to_ndarray().tobytes()
            if len(samples) > MAX_SOUND_S * RATE * 2:
                raise ConversionError(f"the recording is longer than {MAX_SOUND_S // 60} minutes")
        for part in resampler.resample(None):
            samples += part.to_ndarray().tobytes()
    return bytes(samples)
