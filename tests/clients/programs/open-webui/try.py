"""Open WebUI's speech and transcription, by the functions of its backend.

Its server is not started: what it imports for models of its own takes gigabytes.
"""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from steps import ADDRESS, KEY, MODELS, run

FOLDER = Path(tempfile.mkdtemp())
# Neither its vector database nor ffmpeg, which converts recordings first, is installed.
os.environ |= {
    "FROM_INIT_PY": "true",
    "DATA_DIR": str(FOLDER),
    "WEBUI_SECRET_KEY": "secret",
    "VECTOR_DB": "none",
    "BYPASS_PYDUB_PREPROCESSING": "true",
    "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
}
from fastapi import HTTPException  # noqa: E402  # after the environment, as the next two
from open_webui.models.config import Config  # noqa: E402  # reads the environment on import
from open_webui.routers import audio  # noqa: E402  # reads the environment on import

USER: Any = SimpleNamespace(id="1", name="Zoë", email="zoe@localhost", role="admin")


async def configure(model: str, request_format: str = "multipart") -> None:
    provider = model.partition("/")[0]
    server = {"api_base_url": f"{ADDRESS}/v1", "api_key": KEY}
    of_both = {"engine": "openai"} | {f"openai.{name}": value for name, value in server.items()}
    settings = {
        f"audio.{kind}.{name}": value for kind in ("tts", "stt") for name, value in of_both.items()
    }
    await Config.upsert(
        {
            **settings,
            "audio.tts.model": model,
            "audio.tts.voice": "alloy",
            "audio.stt.model": f"{provider}/transcribe",
            "audio.stt.openai.api_request_format": request_format,
        }
    )


async def speak(file: Path) -> None:
    payload = {"input": "Hello there", "voice": "alloy"}
    await audio._tts_openai(None, payload, file, file.with_suffix(".json"), USER)


async def speech_is_transcribed(model: str) -> None:
    await configure(model)
    file = FOLDER / "spoken.wav"
    await speak(file)
    assert file.read_bytes().startswith(b"RIFF"), file.read_bytes()[:100]
    heard = await audio.transcribe(None, str(file), {"language": "en"}, USER)
    assert "somebody speaks for 1.0 s in en." in heard["text"], heard
    # It asks for the lists without a key, and has its own where there are none.
    assert {"id": "tts-1"} in await audio.get_available_models(None)
    assert "alloy" in await audio.get_available_voices(None)


async def errors_are_shown(model: str) -> None:
    await configure("no-such-model")
    try:
        await speak(FOLDER / "unspoken.wav")
    except HTTPException as error:
        assert error.status_code == 404, error
    else:
        raise AssertionError("a model that does not exist has spoken")
    file = FOLDER / "silence.txt"
    file.write_text("This is no recording.")
    await configure(model)
    try:
        await audio.transcribe(None, str(file), None, USER)
    except HTTPException as error:
        assert "External: " in error.detail, error.detail
    else:
        raise AssertionError("no recording has been transcribed")


run(speech_is_transcribed, errors_are_shown, models=[MODELS[0].replace("/echo", "/tts-1")])
