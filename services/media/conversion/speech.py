"""Speech recognition by an English model that ships inside a package.

The model is Moonshine tiny (MIT), in releases of moonshine-voice that include it.
"""

import io
from collections.abc import Iterator
from pathlib import Path

import moonshine_voice
import numpy as np
import soundfile
from numpy.typing import NDArray

from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_SOUND_S
from services.media.conversion.loading import load
from services.media.conversion.parts import Source

_MODEL = "tiny-en"
# Window of recognition in seconds, and the part at its end in which a pause is searched.
_WINDOW_S = 30
_PAUSE_WITHIN_S = 5
_PAUSE_S = 0.1

Samples = NDArray[np.float32]


def transcript(source: Source, *, language: str) -> str:
    """Return the transcript of a recording, one line per pause; see `Converter.transcript`."""
    if language and language.lower().replace("_", "-").split("-")[0] not in ("en", "english"):
        raise ConversionError(
            "the built-in speech recognition supports only English; the operator can configure "
            "another model: [roles] transcribe_audio"
        )
    samples, rate = _samples(source.content)
    lines = []
    engine = _engine()
    for part in _parts(samples, rate):
        recognised = engine.transcribe_without_streaming(part.tolist(), rate)
        lines += [line.text.strip() for line in recognised.lines]
    return "\n".join(line for line in lines if line)


def _samples(content: bytes) -> tuple[Samples, int]:
    """Return the mono samples of a recording, and their rate."""
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as sound_file:
            if sound_file.frames > MAX_SOUND_S * sound_file.samplerate:
                raise ConversionError(f"the recording is longer than {MAX_SOUND_S // 60} minutes")
            samples: Samples = sound_file.read(dtype="float32", always_2d=True)
            return samples.mean(axis=1).astype(np.float32), sound_file.samplerate
    except soundfile.LibsndfileError:  # such as AAC
        sound = load("sound")
        recognised = np.frombuffer(sound.decoded(content), np.int16)
        return recognised.astype(np.float32) / np.float32(1 << 15), sound.RATE


def _parts(samples: Samples, rate: int) -> Iterator[Samples]:
    """Split a recording at pauses, so that no word is cut."""
    while len(samples) > _WINDOW_S * rate:
        end = _quietest(samples, rate)
        yield samples[:end]
        samples = samples[end:]
    if len(samples):
        yield samples


def _quietest(samples: Samples, rate: int) -> int:
    """Return the middle of the quietest moment at the end of the first window."""
    size = max(1, int(_PAUSE_S * rate))
    start = (_WINDOW_S - _PAUSE_WITHIN_S) * rate
    moments = samples[start : start + _PAUSE_WITHIN_S * rate // size * size].reshape(-1, size)
    return start + int(np.square(moments).mean(axis=1).argmin()) * size + size // 2


def _engine() -> moonshine_voice.Transcriber:
    """Return a new engine for each recording, as its state influences what follows."""
    model = Path(moonshine_voice.get_assets_path()) / _MODEL
    return moonshine_voice.Transcriber(model, moonshine_voice.ModelArch.TINY)
