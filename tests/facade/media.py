"""A gateway whose conversions are played, and how a test asks it with media."""

import base64
import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
import orjson

from tests.facade.conversations import png
from tests.gateway_in_process import Gateway, running_gateway
from tests.services.inference.fake_adaptation import FakeConverter, FakeFetcher

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"

PICTURE = png(7, 5)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PDF = b"%PDF-1.7 first page\fsecond page"
TEXT = ["text"]


def _model(name: str, provider: str, upstream: str, inputs: Sequence[str]) -> dict[str, Any]:
    return {"name": name, "provider": provider, "upstream": upstream, "inputs": inputs}


MODELS = [
    _model("blind-failing", "openai", "fail-500", TEXT),
    *(
        model
        for provider in ("openai", "anthropic", "gemini")
        for model in (
            _model(f"blind-{provider}", provider, "text", TEXT),
            _model(f"sees-{provider}", provider, "vision", ["text", "image"]),
            _model(f"reads-{provider}", provider, "echo", ["text", "image", "pdf"]),
        )
    ),
]


@dataclass(frozen=True)
class MediaGateway:
    """A running gateway, and what it converted and fetched."""

    gateway: Gateway
    converting: FakeConverter
    fetching: FakeFetcher

    async def sent(self) -> list[dict[str, Any]]:
        """Return what the provider was asked since this was called last, oldest first.

        That the gateway looks which models there are is left out.
        """
        url = f"{self.gateway.upstream}/sandbox/log"
        async with self.gateway.http.get(url) as answer:
            entries = await answer.json()
        async with self.gateway.http.delete(url):
            return [entry for entry in entries if entry["body"] is not None]

    async def keep(self, name: str, content: bytes, mime_type: str = "") -> str:
        """Upload a file; return its id."""
        form = aiohttp.FormData()
        form.add_field("purpose", "assistants")
        kind = mime_type or "application/octet-stream"
        form.add_field("file", io.BytesIO(content), filename=name, content_type=kind)
        address = f"{self.gateway.url}/beta/v1/files"
        headers = self.gateway.bearer()
        async with self.gateway.http.post(address, headers=headers, data=form) as answer:
            assert answer.status == 200, await answer.text()
            return (await answer.json())["id"]

    async def ask(
        self, path: str, model: str, parts: list[Any], *, key: str = "", **fields: Any
    ) -> "MediaAnswer":
        """Ask with media; `stream` may be among the fields."""
        body = {
            "model": model,
            "max_tokens": 100_000,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "See"}, *parts]}],
            **fields,
        }
        if path == CHAT and body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        headers = {"x-api-key": key or self.gateway.key, "compat-version": "2023-06-01"}
        url = self.gateway.url + path
        async with self.gateway.http.post(url, headers=headers, json=body) as answer:
            content = await answer.read()
            head = dict(answer.headers)
            if answer.status != 200:
                error = orjson.loads(content)["error"]
                return MediaAnswer(answer.status, head, error.get("message", ""), error)
            if body.get("stream"):
                return _streamed(path, head, content)
        parsed = orjson.loads(content)
        if path == CHAT:
            return MediaAnswer(
                200, head, parsed["choices"][0]["message"]["content"], parsed["usage"]
            )
        text = "".join(block["text"] for block in parsed["content"])
        return MediaAnswer(200, head, text, parsed["usage"])


@dataclass(frozen=True)
class MediaAnswer:
    """An answer: its text, and its usage; of a failure the message, and the error."""

    status: int
    headers: dict[str, str]
    text: str
    more: dict[str, Any]

    @property
    def adapted(self) -> list[str]:
        """Return the entries of the `x-gateway-adapted` header."""
        listed = self.headers.get("x-gateway-adapted", "")
        return listed.split(", ") if listed else []

    @property
    def helpers(self) -> list[dict[str, Any]]:
        """Return the usage of helper models."""
        return self.more.get("gateway", {}).get("helpers", [])


@asynccontextmanager
async def gateway_with_media(folder: Path, **sections: Any) -> AsyncIterator[MediaGateway]:
    """Run a gateway with conversions that are played; `sections` as of `running_gateway`."""
    converting, fetching = FakeConverter(), FakeFetcher()
    sections = {"models": MODELS, "roles": {"describe_image": "sees-openai"}, **sections}
    with (
        patch("services.inference.assembly.PooledConverter", lambda pool, owner: converting),
        patch("services.inference.assembly.Fetcher", lambda limits, resolve: fetching),
    ):
        async with running_gateway(folder, **sections) as gateway:
            yield MediaGateway(gateway, converting, fetching)


def by_value(path: str, content: bytes, mime_type: str) -> dict[str, Any]:
    """Return a part that holds a medium: base64 in messages, a data URL in chats."""
    data = base64.b64encode(content).decode()
    is_image = mime_type.startswith("image/")
    if path == MESSAGES:
        source = {"type": "base64", "media_type": mime_type, "data": data}
        return {"type": "image" if is_image else "document", "source": source}
    url = f"data:{mime_type};base64,{data}"
    if is_image:
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": "it.bin", "file_data": url}}


def by_address(path: str, url: str, kind: str = "image") -> dict[str, Any]:
    """Return a part that names an address; chats name those of images alone."""
    if path == MESSAGES:
        return {"type": kind, "source": {"type": "url", "url": url}}
    return {"type": "image_url", "image_url": {"url": url}}


def by_id(path: str, file_id: str) -> dict[str, Any]:
    """Return a part that names a file of the store."""
    if path == CHAT:
        return {"type": "file", "file": {"file_id": file_id}}
    return {"type": "document", "source": {"type": "file", "file_id": file_id}}


def texts_of(entry: dict[str, Any]) -> str:
    """Return all text that a provider was sent in the messages of a request."""
    return "\n".join(_texts(entry["body"].get("messages") or entry["body"].get("contents")))


def media_of(entry: dict[str, Any]) -> list[str]:
    """Return the types of the parts of a request that are not text."""
    return [kind for kind in _kinds(entry["body"]) if kind in _MEDIA]


_MEDIA = {"image_url", "file", "input_audio", "image", "document", "inlineData", "fileData"}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    if isinstance(value, dict):
        names = ("content", "text", "parts")
        return [text for name in names if name in value for text in _texts(value[name])]
    return []


def _kinds(value: Any) -> list[str]:
    if isinstance(value, list):
        return [kind for one in value for kind in _kinds(one)]
    if not isinstance(value, dict):
        return []
    kinds = [value["type"]] if isinstance(value.get("type"), str) else []
    kinds += [name for name in ("inlineData", "fileData") if name in value]
    return kinds + [kind for one in value.values() for kind in _kinds(one)]


def _streamed(path: str, head: dict[str, str], content: bytes) -> MediaAnswer:
    texts: list[str] = []
    usage: dict[str, Any] = {}
    for line in content.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        event = orjson.loads(line[6:])
        if path == CHAT:
            usage = event.get("usage") or usage
            for choice in event.get("choices", ()):
                texts.append(choice["delta"].get("content") or "")
        else:
            usage = event.get("usage") or usage
            texts.append(event.get("delta", {}).get("text", ""))
    return MediaAnswer(200, head, "".join(texts), usage)
