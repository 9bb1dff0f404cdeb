"""Every medium, however it comes, for models that read it and models that do not.

What a provider got is read from the sandbox's log: the parts of its messages that are not text,
and what the text says.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from tests.facade.conversations import png
from tests.facade.media import (
    CHAT,
    DOCX,
    MESSAGES,
    MediaGateway,
    by_address,
    by_id,
    by_value,
    gateway_with_media,
    media_of,
    texts_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

WAYS = ("value", "address", "file")
# Sound and film are converted where that is asked for.
MULTIMODAL = {"audio": {}, "video": {"frames": 2}}
FILM = b"\0\0\0\x18ftypmp42 a film"
WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0"


class Medium(NamedTuple):
    """A medium, and what becomes of it.

    Attributes:
        name: of its file.
        mime_type: its own.
        content: its bytes.
        blind: what the header says of it for a model that reads text alone.
        sees: for one that reads images too.
        reads: for one that reads images and PDF.
        said: what the text for the first says.
    """

    name: str
    mime_type: str
    content: bytes
    blind: str
    sees: str
    reads: str
    said: str


MEDIA = (
    Medium(
        "cat.png", "image/png", png(7, 5), "image-described", "", "", "> Sandbox vision: you said"
    ),
    Medium(
        "one.pdf",
        "application/pdf",
        b"%PDF-1.7 one\ftwo",
        "document-text",
        "document-pages",
        "",
        "[Page 2 of 2]\ntwo",
    ),
    Medium(
        "one.docx",
        DOCX,
        b"PK\x03\x04 one\ftwo",
        "document-text",
        "document-pages",
        "document-pages",
        "[Page 2 of 2]\ntwo",
    ),
    Medium(
        "notes.md", "text/markdown", "Grüße".encode(), "document-text", "document-text", "", "Grüße"
    ),
    Medium(
        "data.json",
        "application/json",
        b'{"a": "Hello"}',
        "document-text",
        "document-text",
        "document-text",
        '{"a": "Hello"}',
    ),
    Medium(
        "talk.wav",
        "audio/wav",
        WAV,
        "audio-transcribed",
        "audio-transcribed",
        "audio-transcribed",
        f"> {len(WAV)} bytes of speech",
    ),
    Medium(
        "trip.mp4",
        "video/mp4",
        FILM,
        "video-frames",
        "video-frames",
        "video-frames",
        "[Frame 2 of 2, at 1.5 s]\n> Sandbox vision:",
    ),
)
# How many parts that are not text a model that sees gets.
PARTS = {"image-described": 0, "document-pages": 2, "video-frames": 2}


def cases() -> Iterator[Any]:
    """Return all that a caller can send: of addresses a chat has those of images alone."""
    for path, medium, way in itertools.product((CHAT, MESSAGES), MEDIA, WAYS):
        kind = medium.mime_type.partition("/")[0]
        if way == "address" and path == CHAT and kind != "image":
            continue
        yield pytest.param(path, medium, way, id=f"{path}-{medium.name}-{way}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory):
    async with gateway_with_media(tmp_path_factory.mktemp("gateway")) as one:
        for medium in MEDIA:
            one.fetching.held[f"https://held.example/{medium.name}"] = (
                medium.mime_type,
                medium.content,
            )
        yield one


async def part(media: MediaGateway, path: str, medium: Medium, way: str) -> dict[str, Any]:
    if way == "file":
        return by_id(path, await media.keep(medium.name, medium.content, medium.mime_type))
    if way == "address":
        kind = "image" if medium.mime_type.startswith("image/") else "document"
        return by_address(path, f"https://held.example/{medium.name}", kind)
    return by_value(path, medium.content, medium.mime_type)


@pytest.mark.thorough(one_in=7)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("step", ["first", "later"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "medium", "way"), list(cases()))
async def test_each_model_gets_what_it_reads(media, path, medium, way, stream, step, provider):
    sent_part = await part(media, path, medium, way)
    for reader in ("blind", "sees", "reads"):
        await media.sent()
        fields: dict[str, Any] = {"stream": stream, "multimodal": MULTIMODAL}
        if step == "later":
            steps = [
                {"step_id": "a", "model": "sandbox/fail-500"},
                {"step_id": "b", "model": f"{reader}-{provider}"},
            ]
            config = {"strategy": {"mode": "sequential"}, "steps": steps}
            fields |= {"fallback": "strict", "fallback_config": config}
        answer = await media.ask(path, f"{reader}-{provider}", [sent_part], **fields)
        assert answer.status == 200, answer.text
        assert answer.headers["x-gateway-model"] == f"{reader}-{provider}"
        what = getattr(medium, reader)
        assert answer.adapted == ([f"messages[0].content[1]:{what}"] if what else [])
        sent = (await media.sent())[-1]
        assert sent["dialect"] == provider
        parts = media_of(sent)
        if reader == "blind":
            assert parts == []
            assert medium.said in texts_of(sent)
        elif what:
            assert len(parts) == PARTS.get(what, 0)
        elif medium.mime_type != "text/markdown":
            assert len(parts) == 1
