"""Transcripts of recordings: they state the length, as there is no speech model."""

import io
import wave

from services.sandbox.model.models import Model, SandboxError, not_made_for, refuse_failing


def transcribe(content: bytes, language: str, model: Model) -> str:
    """Return the transcript of a recording; the result is deterministic.

    Raises:
        SandboxError: the model does not transcribe, or always fails; or the recording is not WAV.
    """
    refuse_failing(model)
    if not model.transcribes:
        raise not_made_for(model, "does not transcribe")
    try:
        with wave.open(io.BytesIO(content)) as sound:
            seconds = sound.getnframes() / sound.getframerate()
    except (wave.Error, EOFError, ZeroDivisionError):
        raise SandboxError("invalid", 400, "The sandbox transcribes WAV alone") from None
    spoken = f" in {language}" if language else ""
    return f"Sandbox {model.name}: somebody speaks for {seconds:.1f} s{spoken}."
