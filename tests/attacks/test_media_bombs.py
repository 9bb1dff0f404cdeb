"""Small media that are huge once they are read, sent by a caller to a model that sees nothing."""

import base64
import io
import json
from typing import Any

import aiohttp
import pytest

from tests.attacks.media_bombs import BOMBS
from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway

# What a conversion process may take, whatever it reads, and what reads and sends the body.
MAX_GROWTH_MB = 2_200
CONVERSION_S = 120
HANGING_S = 600.0


@pytest.fixture(scope="module")
def settings() -> str:
    return (
        '\n[[models]]\nname = "blind"\nprovider = "sandbox"\nupstream = "echo"\n'
        f'inputs = ["text"]\n[limits]\nconversion_timeout_s = {CONVERSION_S}\n'
    )


def chat_of(kind: str, data: str) -> tuple[str, dict[str, Any]]:
    """Return a chat with a medium, and its path."""
    url = f"data:{kind};base64,{data}"
    if kind.startswith("image/"):
        part: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    elif kind.startswith("audio/"):
        part = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    else:
        part = {"type": "file", "file": {"filename": f"it.{kind[-3:]}", "file_data": url}}
    return "/beta/v1/chat/completions", _asked(part)


def message_of(kind: str, data: str) -> tuple[str, dict[str, Any]]:
    """Return a message with a medium, and its path."""
    source = {"type": "base64", "media_type": kind, "data": data}
    part = {"type": "image" if kind.startswith("image/") else "document", "source": source}
    return "/beta/v1/messages", {**_asked(part), "max_tokens": 100}


def _asked(part: dict[str, Any]) -> dict[str, Any]:
    multimodal = {"audio": {"enabled": True}, "video": {"enabled": True}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}]
    return {"model": "blind", "messages": messages, "multimodal": multimodal}


@pytest.mark.thorough(one_in=7)
@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_medium_that_unfolds_is_harmless(
    target: Gateway, attacker_key: str, observer: Observer, bomb: str
) -> None:
    kind, made = BOMBS[bomb]
    data = base64.b64encode(made()).decode()
    headers = {
        "x-api-key": attacker_key,
        "compat-version": "2023-06-01",
        "content-type": "application/json",
    }
    timeout = aiohttp.ClientTimeout(total=HANGING_S)
    answers = []
    async with observer.watch() as measured, aiohttp.ClientSession(timeout=timeout) as http:
        for path, body in (chat_of(kind, data), message_of(kind, data)):
            content = io.BytesIO(json.dumps(body).encode())
            async with http.post(target.address + path, data=content, headers=headers) as answer:
                answers.append((answer.status, await answer.read()))
    measured.assert_harmless(MAX_GROWTH_MB)
    for status, answered in answers:
        refusal = json.loads(answered)
        # It is converted within bounds, or refused with its place.
        assert status in (200, 400, 413), (status, answered[:500])
        if status != 200:
            error = refusal["error"]
            assert error["message"], refusal
            assert "content" in (error.get("param") or error["message"]), refusal
    assert "Traceback" not in target.process.output
