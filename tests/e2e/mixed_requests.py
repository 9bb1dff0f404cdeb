"""Requests of every kind, well and ill, in a random order that is the same in every run.

What a caller stores it deletes again, so that a gateway that has served many of them has as
much to keep as one that has served few.
"""

import asyncio
import json
import random
import string
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.bench import wire
from tests.e2e.gateway import Gateway
from tests.e2e.raw_connection import RawConnection

ADMIN_KEY = "gwadmin-" + "a" * 43
_LETTERS = string.ascii_letters + string.digits + "-_"
_ECHO = "sandbox/echo"
_TURNS = 6
_EDITS = 6
# A lock that is lost, or waited for too long, where a machine stands still for seconds.
_RETRIABLE = {409, 429, 503}
_PATHS = {"chat": "/beta/v1/chat/completions", "responses": "/beta/v1/responses"}


class _RefusedError(Exception):
    """Error raised for an answer after which a caller tries again."""


class Mix:
    """Callers of one gateway; each sends a request after the other.

    Args:
        at: the gateway, whose admin key is ADMIN_KEY.
        callers: how many.
        chance: draws what is sent.

    Attributes:
        sent: how many requests were answered, or left.
        refused: how many of them were refused because the machine was too slow; see `_RETRIABLE`.
    """

    def __init__(self, at: Gateway, callers: int, chance: random.Random) -> None:
        self.sent = self.refused = 0
        self._at = at
        self._chance = chance
        self._connections = [RawConnection(at.port) for _ in range(callers)]
        kinds: Mapping[Callable[[RawConnection], Awaitable[None]], int] = {
            self._whole: 640,
            self._stream: 120,
            self._echo: 100,
            self._response: 30,
            self._embeddings: 4,
            self._other_model: 30,
            self._unknown_model: 15,
            self._wrong_key: 15,
            self._malformed: 15,
            self._left_at_once: 8,
            self._left_in_the_middle: 8,
            self._counted: 8,
            self._stored_response: 2,
            self._file: 2,
            self._memory: 1,
            self._document: 1,
            self._new_user: 1,
        }
        self._kinds, self._weights = [*kinds], [*kinds.values()]
        self._plain = {
            (caller, upstream, stream): wire.request(
                caller, f"{upstream}/bench", at.key, stream=stream
            )
            for caller, upstream in wire.PAIRS
            for stream in (False, True)
        }
        self._embedding = wire.embeddings_request("openai/bench", at.key)
        self._paced = wire.request("anthropic", "anthropic/bench-paced", at.key, stream=True)

    async def send(self, requests: int) -> None:
        """Send so many requests, or a few more."""
        goal = self.sent + requests
        async with asyncio.TaskGroup() as group:
            for connection in self._connections:
                group.create_task(self._send_until(connection, goal))

    def close(self) -> None:
        """Break all connections."""
        for connection in self._connections:
            connection.close()

    async def _send_until(self, connection: RawConnection, goal: int) -> None:
        while self.sent < goal:
            (kind,) = self._chance.choices(self._kinds, self._weights)
            try:
                await kind(connection)
            except _RefusedError:
                self.refused += 1

    # Models at providers.

    async def _whole(self, connection: RawConnection) -> None:
        await self._expect(200, connection, self._plain[*self._pair(), False])

    async def _stream(self, connection: RawConnection) -> None:
        caller, upstream = self._pair()
        body = await self._expect(200, connection, self._plain[caller, upstream, True])
        assert body.count(wire.MARK) == wire.EVENTS - (4 if upstream == "openai" else 5)

    async def _response(self, connection: RawConnection) -> None:
        body = {"model": "openai/bench", "input": self._words(), "store": False}
        await self._json(200, connection, "POST", _PATHS["responses"], body)

    async def _embeddings(self, connection: RawConnection) -> None:
        await self._expect(200, connection, self._embedding)

    async def _other_model(self, connection: RawConnection) -> None:
        await self._chat(200, connection, f"openai/{self._words()}")

    async def _counted(self, connection: RawConnection) -> None:
        body = {"model": _ECHO, "messages": [{"role": "user", "content": self._words()}]}
        await self._json(200, connection, "POST", "/beta/v1/messages/count_tokens", body)

    # The gateway's own model.

    async def _echo(self, connection: RawConnection) -> None:
        await self._chat(200, connection, _ECHO, stream=self._chance.random() < 0.3)

    # Errors, and callers who leave.

    async def _unknown_model(self, connection: RawConnection) -> None:
        await self._chat(404, connection, self._words())

    async def _wrong_key(self, connection: RawConnection) -> None:
        key = "gw-" + "".join(self._chance.choices(_LETTERS, k=43))
        await self._chat(401, connection, _ECHO, key=key)

    async def _malformed(self, connection: RawConnection) -> None:
        await self._chat(400, connection, _ECHO, temperature="hot")

    async def _left_at_once(self, connection: RawConnection) -> None:
        await connection.leave(self._plain["openai", "openai", False])
        self.sent += 1

    async def _left_in_the_middle(self, connection: RawConnection) -> None:
        await connection.leave(self._paced, after=wire.MARK)
        self.sent += 1

    # What is stored.

    async def _stored_response(self, connection: RawConnection) -> None:
        body = {"model": _ECHO, "input": self._words()}
        made = await self._json(200, connection, "POST", _PATHS["responses"], body)
        path = f"{_PATHS['responses']}/{made['id']}"
        await self._json(200, connection, "GET", path)
        await self._json(200, connection, "DELETE", path)

    async def _file(self, connection: RawConnection) -> None:
        content = f"{self._words()} ".encode() * self._chance.randrange(1, 2000)
        form = (
            b'--xx\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nassistants\r\n--xx\r\n'
            b'content-disposition: form-data; name="file"; filename="a.txt"\r\n'
            b"content-type: text/plain\r\n\r\n" + content + b"\r\n--xx--\r\n"
        )
        upload = self._request(
            "POST", "/beta/v1/files", form, "multipart/form-data; boundary=xx", self._at.key
        )
        made = json.loads(await self._expect(200, connection, upload))
        path = f"/beta/v1/files/{made['id']}"
        read = self._request("GET", f"{path}/content", b"", "", self._at.key)
        assert await self._expect(200, connection, read) == content
        await self._json(200, connection, "DELETE", path)

    async def _memory(self, connection: RawConnection) -> None:
        memory = f"talk-{self._words()}"
        for _ in range(_TURNS):
            await self._chat(200, connection, _ECHO, memory_id=memory)
        await self._json(200, connection, "DELETE", f"/beta/v1/memories/{memory}")

    async def _document(self, connection: RawConnection) -> None:
        made = await self._json(
            200, connection, "POST", "/article/v1/doc/create", {"group": 0, "name": ""}
        )
        document = {"docId": made["data"]["article"]["outer_id"]}
        opened = await self._json(200, connection, "POST", "/article/v1/session/create", document)
        session = opened["data"]["sessionId"]
        for _ in range(_EDITS):
            text = {"type": "default", "text": self._words()}
            edit = {
                "sessionId": session,
                "path": [0],
                "blocks": [{"type": "paragraph", "children": [text]}],
            }
            await self._json(200, connection, "POST", "/article/v1/block/insert", edit)
        await self._json(200, connection, "POST", "/article/v1/doc/delete", document)

    async def _new_user(self, connection: RawConnection) -> None:
        """Create a key of a new user with limits, who asks, and revoke it."""
        body = {"user": f"user-{self._words()}"}
        made = await self._json(200, connection, "POST", "/admin/v1/keys", body, key=ADMIN_KEY)
        limits = f"/admin/v1/keys/{made['id']}/limits"
        bounds = {"requests_per_minute": 100}
        await self._json(200, connection, "PUT", limits, bounds, key=ADMIN_KEY)
        await self._chat(200, connection, _ECHO, key=made["key"])
        revoke = f"/admin/v1/keys/{made['id']}/revoke"
        await self._json(200, connection, "POST", revoke, {}, key=ADMIN_KEY)

    # What all kinds use.

    def _pair(self) -> tuple[wire.Dialect, wire.Dialect]:
        return self._chance.choice(wire.PAIRS)

    def _words(self) -> str:
        return "w-" + "".join(self._chance.choices(string.ascii_letters, k=12))

    async def _chat(
        self, status: int, connection: RawConnection, model: str, *, key: str = "", **fields: Any
    ) -> None:
        messages = [{"role": "user", "content": f"My name is {self._words()}."}]
        content = wire.encoded({"model": model, "messages": messages, **fields})
        request = self._request(
            "POST", _PATHS["chat"], content, "application/json", key or self._at.key
        )
        await self._expect(status, connection, request)

    async def _json(
        self,
        status: int,
        connection: RawConnection,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str = "",
    ) -> Any:
        content = b"" if body is None else wire.encoded(body)
        request = self._request(method, path, content, "application/json", key or self._at.key)
        return json.loads(await self._expect(status, connection, request))

    async def _expect(self, status: int, connection: RawConnection, request: bytes) -> bytes:
        answer = await connection.send(request)
        if answer.status in _RETRIABLE:
            raise _RefusedError(request[:2000], answer)
        assert answer.status == status, (request[:2000], answer.status, answer.body[:2000])
        self.sent += 1
        return answer.body

    @staticmethod
    def _request(method: str, path: str, content: bytes, kind: str, key: str) -> bytes:
        credential = (
            f"x-api-key: {key}" if path.startswith("/article") else f"authorization: Bearer {key}"
        )
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{credential}\r\n"
            f"compat-version: 2023-06-01\r\ncontent-type: {kind}\r\n"
            f"content-length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content
