"""A facade in front of a fake article service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from facade.server import Facade
from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from gateway.articles.v1 import articles_pb2 as pb
from gateway.articles.v1 import articles_pb2_grpc
from services.accounts.servicer import AccountsServicer
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid_api_key
from services.common.grpc.authentication import Caller
from services.common.grpc.server import Server
from services.common.settings import parse

KEY = "gw-" + "k" * 43
HEADERS = {"x-api-key": KEY}
JSON = {**HEADERS, "Content-Type": "application/json"}
PREFIX = "/article/v1/"
RPCS = pb.DESCRIPTOR.services_by_name["ArticleEditorService"].methods_by_name


class FakeArticleService(articles_pb2_grpc.ArticleEditorServiceServicer):
    """Records its calls and answers as a test says.

    Attributes:
        calls: the requests, but for those of KeepSessionAlive.
        kept: the sessions that KeepSessionAlive was called for.
        answer: what every other call answers; an empty answer of the right type when None.
        failure: what every other call fails with.
        session_failure: what KeepSessionAlive fails with.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget every call and answer."""
        self.calls: list[Message] = []
        self.answer: Message | None = None
        self.failure: Exception | None = None
        self.kept: list[str] = []
        self.session_failure: GatewayError | None = None

    def serve(self, rpc: str, request: Message) -> Message:
        if isinstance(request, pb.KeepSessionAliveRequest):
            self.kept.append(request.session_id)
            if self.session_failure is not None:
                raise self.session_failure
            return pb.KeepSessionAliveResponse()
        self.calls.append(request)
        if self.failure is not None:
            raise self.failure
        return self.answer or GetMessageClass(RPCS[rpc].output_type)()


def _serving(rpc: str) -> Any:
    async def serve(self: FakeArticleService, request: Message, context: Any) -> Message:
        return self.serve(rpc, request)

    return serve


for _rpc in RPCS:
    setattr(FakeArticleService, _rpc, _serving(_rpc))


@dataclass(frozen=True)
class ArticleFacade:
    """A facade and the service behind it."""

    url: str
    server: Server
    service: FakeArticleService
    http: aiohttp.ClientSession

    async def ask(self, method: str, path: str, **options: Any) -> tuple[Any, Any]:
        """Send a request; give the answer and its JSON."""
        options.setdefault("headers", JSON if "data" in options else HEADERS)
        async with self.http.request(method, self.url + path, **options) as answer:
            assert answer.headers["x-request-id"] == answer.headers["request-id"]
            assert answer.content_type == "application/json"
            return answer, await answer.json()

    async def post(self, path: str, body: object) -> tuple[int, Any]:
        """Post JSON to an endpoint; give the status and the JSON of the answer."""
        answer, answer_body = await self.ask("POST", PREFIX + path, json=body)
        return answer.status, answer_body

    async def refused(self, path: str, body: object) -> tuple[int, str]:
        """Post what is to be refused without a call; give code and message."""
        return self.told(*await self.post(path, body))

    def told(self, status: int, body: Any) -> tuple[int, str]:
        """Check a refusal's envelope, and that nothing was asked for; give code and message."""
        assert set(body) == {"code", "message", "data"}
        assert body["data"] == {}
        assert body["code"] // 100 == status
        assert not self.service.calls
        return body["code"], body["message"]


async def _identify(key: str) -> Caller:
    if key != KEY:
        raise invalid_api_key()
    return Caller("user", "", accounts_pb2.PLAN_PERSONAL_FREE)


@asynccontextmanager
async def article_facade() -> AsyncIterator[ArticleFacade]:
    """Run both on free ports."""
    service = FakeArticleService()
    server = Server(_identify, max_message_bytes=80 << 20)
    server.add(accounts_pb2_grpc.add_AccountsServiceServicer_to_server, AccountsServicer(), "a")
    server.add(articles_pb2_grpc.add_ArticleEditorServiceServicer_to_server, service, "e")
    await server.start()
    settings = parse({}, "the test")
    facade = await Facade.start(server.channel(), "127.0.0.1", 0, settings, Clock())
    try:
        async with aiohttp.ClientSession() as http:
            yield ArticleFacade(f"http://127.0.0.1:{facade.port}", server, service, http)
    finally:
        await facade.stop()
        await server.stop(0)
