"""A gateway whose provider does what a test says, and two users with OpenAI's client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.faults import actions, wire
from tests.faults.upstream import Exchange, FaultUpstream, fault_upstream
from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

ECHO = "sandbox/echo"
RUNNING = ("queued", "in_progress")


@dataclass(frozen=True)
class ResponseGateway:
    """A gateway with its provider `openai`.

    Attributes:
        gateway: the gateway.
        upstream: the provider.
        ada: a user.
        bob: another user.
    """

    gateway: Gateway
    upstream: FaultUpstream
    ada: AsyncOpenAI
    bob: AsyncOpenAI

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        """Return the status and the JSON of a GET of Ada's below /beta/v1/responses."""
        return await self.send("GET", path, **options)

    async def send(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        """Return the status and the JSON of a request of Ada's."""
        url = f"{self.gateway.url}/beta/v1/responses{path}"
        options.setdefault("headers", self.gateway.bearer())
        async with self.gateway.http.request(method, url, **options) as answer:
            return answer.status, await answer.json()

    async def events(self, path: str, **body: Any) -> list[tuple[str, int]]:
        """Return type and sequence number of each event of a stream, by GET or with a body."""
        stream = await self.stream(path, **body)
        return [(event.type, event.sequence_number) async for event in stream]

    async def stream(self, path: str, **body: Any) -> Any:
        """Return a stream of Ada's."""
        if body:
            return await self.ada.responses.create(**body, stream=True)
        response_id, _, after = path.partition(":")
        options = {"starting_after": int(after)} if after else {}
        return await self.ada.responses.retrieve(response_id, stream=True, **options)

    async def texts(self, conversation_id: str) -> list[tuple[str, str]]:
        """Return role and text, or type, of all items of a conversation, the oldest first."""
        listed = self.ada.conversations.items.list(conversation_id, order="asc", limit=100)
        return [
            (item.role, item.content[0].text) if item.type == "message" else (item.type, "")
            async for item in listed
        ]

    async def ended(self, response_id: str) -> Any:
        """Return a response once it has ended."""

        async def retrieve() -> Any:
            retrieved = await self.ada.responses.retrieve(response_id)
            return retrieved if retrieved.status not in RUNNING else None

        return await until(retrieve)

    async def until_status(self, response_id: str, status: str) -> None:
        """Wait until a response has a status."""

        async def has_it() -> bool:
            return (await self.ada.responses.retrieve(response_id)).status == status

        await until(has_it)


def user(text: str) -> Any:
    """Return a message of a user, as an input item."""
    return {"role": "user", "content": text}


@asynccontextmanager
async def response_gateway(folder: Path, **options: Any) -> AsyncIterator[ResponseGateway]:
    """Run a gateway with its data in a folder."""
    async with (
        fault_upstream() as upstream,
        running_gateway(folder, upstream.url, **options) as gateway,
    ):
        database = open_engine(Storage(data_dir=folder))
        other = await AccountRepository(database).create_key("bob")
        await database.dispose()
        base = f"{gateway.url}/beta/v1"
        async with (
            AsyncOpenAI(base_url=base, api_key=gateway.key, max_retries=0) as ada,
            AsyncOpenAI(base_url=base, api_key=other, max_retries=0) as bob,
        ):
            yield ResponseGateway(gateway, upstream, ada, bob)


class Gate:
    """A model that says its first words at once, and the rest when it is told to.

    Attributes:
        opened: lets it go on.
    """

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def action(self, exchange: Exchange) -> None:
        """Answer a request, which is for a stream."""
        exchange.open_stream()
        pieces = wire.events(exchange.dialect, exchange.model, actions.TEXT)
        for piece in pieces[:3]:
            exchange.chunk(piece)
        opening, leaving = (
            asyncio.ensure_future(event.wait()) for event in (self.opened, exchange.left)
        )
        await asyncio.wait({opening, leaving}, return_when=asyncio.FIRST_COMPLETED)
        opening.cancel()
        leaving.cancel()
        if not exchange.left.is_set():
            for piece in pieces[3:]:
                exchange.chunk(piece)
            exchange.end_stream()
