"""Callers who do everything over and over, and know what was acknowledged."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field

from tests.e2e.users import Answer, User

RETRIABLE = {429, 502, 503, 504}


@dataclass
class Caller:
    """One who stores, edits, asks and talks, one after the other.

    Attributes:
        files: contents of the files that were acknowledged, by id.
        edits: texts that were acknowledged, in order.
        turns: what was said in turns that were acknowledged, in order.
        responses: ids of the stored responses that were acknowledged.
        failures: the answers that were not well.
        began_at: the monotonic time at which each finished round began.
        slowest_s: the longest that a call took.
    """

    name: str
    user: User
    session: str
    files: dict[str, bytes] = field(default_factory=dict)
    edits: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    failures: list[Answer] = field(default_factory=list)
    began_at: list[float] = field(default_factory=list)
    slowest_s: float = 0

    @classmethod
    async def open(cls, name: str, user: User) -> "Caller":
        """Return a caller with a document and an editing session."""
        return cls(name, user, await user.open_document(await user.create_document()))

    async def run(self, ending: asyncio.Event) -> None:
        """Do everything over and over until told to end."""
        number = 0
        while not ending.is_set():
            number += 1
            began_at = time.monotonic()
            if await self.round(f"{self.name} {number}"):
                self.began_at.append(began_at)

    async def round(self, text: str) -> bool:
        """Do everything once; return whether all of it was well."""
        user, before = self.user, len(self.failures)
        if uploaded := await self._served(user.upload(text.encode())):
            self.files[uploaded.body["id"]] = text.encode()
        if await self._served(user.insert(self.session, text)):
            self.edits.append(text)
        if await self._served(user.chat(text, memory_id=self.name.replace(" ", "-"))):
            self.turns.append(text)
        if stored := await self._served(user.response(text)):
            self.responses.append(stored.body["id"])
        await self._served(user.chat(text))
        return len(self.failures) == before

    async def check(self) -> None:
        """Check that all that was acknowledged is there, once and in order."""
        for file_id, content in self.files.items():
            assert await self.user.content(file_id) == content
        edits = (await self.user.read(self.session))[::-1]
        assert [text for text in edits if text in set(self.edits)] == self.edits
        turns = await self.user.turns(self.name.replace(" ", "-"))
        assert [text for text in turns if text in set(self.turns)] == self.turns
        for response_id in self.responses:
            assert (await self.user.stored_response(response_id)).status == 200

    async def _served(self, call: Awaitable[Answer]) -> Answer | None:
        """Return an answer; after a failure wait as long as it says, as the SDKs do."""
        began_at = time.monotonic()
        answer = await call
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_at)
        if answer.status == 200:
            return answer
        self.failures.append(answer)
        # A memory that was lost can be asked for at once.
        assert answer.retry_after_s or answer.status == 409, answer
        await asyncio.sleep(answer.retry_after_s or 0)
        return None
