"""Pages of documents are put into requests beside the event loop, however few bytes came."""

import threading

import pytest

from services.inference.run import step_request
from tests.facade.media import CHAT, MESSAGES, by_value, gateway_with_media

MODELS = [
    {"name": "blind", "provider": "openai", "upstream": "text", "inputs": ["text"]},
    {"name": "sees", "provider": "openai", "upstream": "vision", "inputs": ["text", "image"]},
]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize(("model", "is_aside"), [("sees", True), ("blind", False)])
async def test_pages_are_copied_beside_the_event_loop(
    tmp_path, monkeypatch, path: str, model: str, is_aside: bool
) -> None:
    threads: list[threading.Thread] = []
    replace = step_request.replace_media

    def noted(*arguments) -> None:
        threads.append(threading.current_thread())
        replace(*arguments)

    monkeypatch.setattr(step_request, "replace_media", noted)
    part = by_value(path, b"%PDF-1.4\nA page", "application/pdf")
    async with gateway_with_media(tmp_path, models=MODELS, roles={}) as media:
        answer = await media.ask(path, model, [part])
    assert answer.status == 200, answer.text
    assert [thread is not threading.current_thread() for thread in threads] == [is_aside]
