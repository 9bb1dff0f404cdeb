"""The providers of the matrix, and the gateway in front of them."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import grpc

from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.matrix.words import CHAT
from tests.upstream.app import create_app
from tests.upstream.bedrock import signatures
from tests.upstream.log import RequestLog
from tests.upstream.personalities import OF_ANTHROPIC, OF_OPENAI
from tests.upstream.vertex.tokens import ServiceAccount

# Clouds with Claude itself.
_CLAUDE_ITSELF = ("bedrock", "vertex-claude")
_ANY = re.compile(r"(?s).*")
_SHORT = re.compile(r"[a-zA-Z0-9]{9}", re.ASCII)
_BEDROCK = re.compile(r"[a-zA-Z0-9_.:-]{1,64}", re.ASCII)
_SAFE = re.compile(r"[a-zA-Z0-9_-]{1,256}", re.ASCII)


@dataclass(frozen=True)
class Upstream:
    """A provider: one of the sandbox's dialects, or of its personalities.

    Attributes:
        name: of the provider in the gateway, before the model's.
        dialect: what it speaks; "" for the sandbox in the gateway's own process, of which
            nothing is logged.
        model: a name that its models go by.
        shows_thoughts: whether answers show what the model thought.
        takes_thoughts: whose thoughts of earlier turns it takes and does not refuse.
        ids: the ids of calls that it takes.
        responses: whether it has OpenAI's responses too, for requests of that dialect.
    """

    name: str
    dialect: Literal["openai", "responses", "anthropic", "gemini", "bedrock", ""]
    model: str = "echo"
    shows_thoughts: bool = False
    takes_thoughts: Literal["none", "own", "any"] = "none"
    ids: re.Pattern[str] = _ANY
    responses: bool = False

    @property
    def full_model(self) -> str:
        """The model as callers write it."""
        return f"{self.name}/{self.model}"

    def may_have_signed(self, thinker: "Upstream", endpoint: str) -> bool:
        """Return whether it is sent the signed thoughts of another upstream as its own.

        Claude's signatures are the same everywhere. Those of servers of Anthropic's dialect that
        are not Anthropic's are inside the gateway's, but in chats, and clouds are sent none of its.
        """
        if self.name in _CLAUDE_ITSELF and endpoint != CHAT:
            return thinker.name in _CLAUDE_ITSELF
        claudes = ("anthropic", "bedrock")
        return thinker.dialect in (claudes if self.dialect in claudes else (self.dialect,))

    @property
    def tells_stops(self) -> bool:
        """Whether it tells which stop string ended an answer."""
        return self.dialect == "anthropic"


UPSTREAMS = (
    Upstream("sandbox", "", shows_thoughts=True),
    Upstream("openai", "openai", shows_thoughts=True, responses=True),
    Upstream("anthropic", "anthropic", "echo", True, "own", _SAFE),
    Upstream("gemini", "gemini", "echo", True, "any"),
    Upstream("azure", "openai", responses=True),
    Upstream("bedrock", "bedrock", "us.anthropic.echo-v1:0", True, "own", _BEDROCK),
    Upstream("vertex", "gemini", "gemini-echo", True, "any"),
    Upstream("vertex-claude", "anthropic", "claude-echo@20250929", True, "own", _SAFE),
    Upstream("claude-5", "anthropic", "claude-sonnet-5", True, "own", _SAFE),
    Upstream("deepseek", "openai", "deepseek-v4-pro", True, "any"),
    Upstream("gemini-openai", "openai", "gemini-3-pro-preview", False, "any"),
    Upstream("mistral", "openai", "magistral-medium-latest", True, "none", _SHORT),
    Upstream("ollama", "openai", "qwen3:8b", True, "any"),
    Upstream("openai-o", "openai", "gpt-5", responses=True),
    Upstream("openrouter", "openai", "vendor/model", True, "any"),
    Upstream("vllm", "openai", "Qwen/Qwen3-8B", True, "any"),
)
NAMES = frozenset(upstream.name for upstream in UPSTREAMS)
ANTHROPICS = frozenset(one.name for one in UPSTREAMS if one.dialect == "anthropic")
BEDROCK = frozenset({"bedrock"})
GEMINI = frozenset({"gemini", "vertex"})
NATIVE = frozenset(one.name for one in UPSTREAMS if one.responses)
OPENAIS = frozenset(one.name for one in UPSTREAMS if one.dialect == "openai")


@dataclass(frozen=True)
class MatrixGateway:
    """A gateway with every upstream behind it.

    Attributes:
        gateway: over HTTP.
        inference: the same over gRPC.
        log: what the upstreams were sent.
    """

    gateway: Gateway
    inference: InferenceServiceStub
    log: RequestLog


@asynccontextmanager
async def matrix_gateway(folder: Path) -> AsyncIterator[MatrixGateway]:
    """Run a gateway in front of a sandbox that plays every upstream."""
    log = RequestLog()
    with patch.dict(os.environ, signatures.ENVIRONMENT):
        async with _gateway(folder, log) as gateway:
            yield gateway


@asynccontextmanager
async def _gateway(folder: Path, log: RequestLog) -> AsyncIterator[MatrixGateway]:
    account = ServiceAccount()
    async with serving(create_app(log, account=account)) as sandbox:
        file = folder / "account.json"
        file.write_text(account.file(f"{sandbox}/token"))
        providers = _providers(sandbox, file)
        async with running_gateway(folder, sandbox, providers=providers) as gateway:
            async with grpc.aio.insecure_channel(gateway.grpc) as channel:
                yield MatrixGateway(gateway, InferenceServiceStub(channel), log)


def _providers(sandbox: str, file: Path) -> dict[str, dict[str, Any]]:
    addresses = {
        "openai": ("openai", f"{sandbox}/v1"),
        "anthropic": ("anthropic", sandbox),
        "gemini": ("gemini", f"{sandbox}/v1beta"),
        "bedrock": ("bedrock", sandbox),
        "vertex": ("vertex", sandbox),
        "vertex-claude": ("vertex", sandbox),
        **{name: ("openai", f"{sandbox}/{name}/v1") for name in OF_OPENAI},
        **{name: ("anthropic", f"{sandbox}/{name}") for name in OF_ANTHROPIC},
    }
    assert addresses.keys() == NAMES - {"sandbox"}, "every personality has its row"
    native = {one.name: {"responses": True} for one in UPSTREAMS if one.responses}
    # Requests to Bedrock are signed, those to Vertex AI have a token.
    google = {"project": "p", "credentials_file": str(file)}
    keys = {
        name: {"bedrock": {}, "vertex": google}.get(kind, {"api_key": "k"})
        for name, (kind, _) in addresses.items()
    }
    return {
        name: {"kind": kind, "base_url": url, **keys[name], **native.get(name, {})}
        for name, (kind, url) in addresses.items()
    }
