"""The gateway in front of providers of every kind, of which two know all that their makers have."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import aiohttp

from services.inference.facts import catalogue
from tests.facade.conversations import png
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.surface.outcomes import Json, Sent
from tests.surface.samples import DOCUMENT_FILE, PDF, PICTURE_FILE
from tests.upstream.app import create_app
from tests.upstream.log import RequestLog
from tests.upstream.vertex.tokens import ServiceAccount

MODELS = {
    "openai": "openai/echo",
    "responses": "openai/echo",
    "compatible": "compatible/echo",
    "anthropic": "anthropic/echo",
    "gemini": "gemini/echo",
    "bedrock": "bedrock/anthropic.echo",
    "vertex": "vertex/gemini-echo",
}
PATHS = {
    "chat": "/beta/v1/chat/completions",
    "messages": "/beta/v1/messages",
    "responses": "/beta/v1/responses",
}
_BETA = "files-api-2025-04-14"


@dataclass(frozen=True)
class Target:
    """The gateway, what its providers were sent, and the caller's files by their placeholders."""

    gateway: Gateway
    log: RequestLog
    files: Mapping[str, str]

    async def send(self, dialect: str, body: Json) -> Sent:
        """Send a request of a dialect and return what became of it."""
        self.log.clear()
        written = json.dumps(body)
        for placeholder, file_id in self.files.items():
            written = written.replace(placeholder, file_id)
        headers = {**self.headers(dialect), "content-type": "application/json"}
        url = f"{self.gateway.url}{PATHS[dialect]}"
        async with self.gateway.http.post(url, data=written, headers=headers) as answer:
            text = await answer.text()
            dropped, adapted = (
                _listed(answer.headers.get(f"x-gateway-{name}", ""))
                for name in ("dropped", "adapted")
            )
        bodies = [entry.body for entry in self.log.entries if entry.body is not None]
        error = text if answer.status >= 400 else ""
        return Sent(body, answer.status, error, dropped, adapted, bodies[-1] if bodies else None)

    def headers(self, dialect: str) -> dict[str, str]:
        """Return the headers of a caller of a dialect."""
        if dialect == "messages":
            return {**self.gateway.api_key(), "anthropic-beta": _BETA}
        return self.gateway.bearer()


def _listed(header: str) -> list[str]:
    return [path for one in header.split(",") if (path := one.strip())]


@asynccontextmanager
async def surface_gateway(folder: Path) -> AsyncIterator[Target]:
    """Run a gateway in front of providers, of which those at `localhost` are the makers' own."""
    log, account = RequestLog(), ServiceAccount()
    async with serving(create_app(log, account=account)) as upstream:
        file = folder.parent / f"{folder.name}-account.json"
        file.write_text(account.file(f"{upstream}/token"))
        vertex = {"kind": "vertex", "base_url": upstream, "project": "p"}
        port = urlsplit(upstream).port
        makers = f"http://localhost:{port}"
        providers: dict[str, dict[str, Any]] = {
            "openai": {"kind": "openai", "base_url": f"{makers}/v1"},
            "anthropic": {"kind": "anthropic", "base_url": makers},
            "gemini": {"kind": "gemini", "base_url": f"{makers}/v1beta"},
            "bedrock": {"kind": "bedrock", "base_url": makers, "region": "us-east-1"},
            "compatible": {"kind": "openai", "base_url": f"{upstream}/v1", "responses": False},
        }
        hosts = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
        servers = [
            (kind, (f"localhost:{port}",), catalogue.server_facts(kind, f"https://{host}/v1"))
            for kind, host in hosts.items()
        ]
        with patch.object(catalogue, "_SERVERS", [*servers, *catalogue._SERVERS]):
            common = {"api_key": "k", "fetches_urls": True}
            settings = {name: {**one, **common} for name, one in providers.items()}
            # Its requests have a token in place of the key.
            settings["vertex"] = {**vertex, "credentials_file": str(file), "fetches_urls": True}
            async with running_gateway(folder, upstream, providers=settings) as gateway:
                files = {
                    PICTURE_FILE: await _stored(gateway, "picture.png", png(7, 5)),
                    DOCUMENT_FILE: await _stored(gateway, "document.pdf", PDF),
                }
                yield Target(gateway, log, files)


async def _stored(gateway: Gateway, name: str, content: bytes) -> str:
    """Store a file, and return its id."""
    form = aiohttp.FormData({"purpose": "user_data"})
    form.add_field("file", content, filename=name)
    url = f"{gateway.url}/beta/v1/files"
    async with gateway.http.post(url, data=form, headers=gateway.bearer()) as answer:
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["id"])
