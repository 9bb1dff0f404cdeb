"""Callers who do everything over and over, and know what was acknowledged."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field

from tests.e2e.users import Answer, User
from tests.hosts.ledger import BROKEN, Ledger

# Requests that are recorded as usage.
GENERATING = ("chat", "streamed chat", "remembered turn", "stored response")


@dataclass
class Caller:
    """One who stores, edits, asks and talks, one after the other.

    Attributes:
        name: of the user, who has no other caller.
        user: the user.
        ledger: has all calls.
        session: an editing session of a document.
        limited: a user with a limit, whom this caller plays too.
        files: contents of the files that were acknowledged, by id.
        edits: texts that were acknowledged, in order.
        turns: what was said in turns that were acknowledged, in order.
        responses: ids of the stored responses that were acknowledged.
        failures: the answers that were not well.
        began_at: the monotonic time at which the last finished round began.
    """

    name: str
    user: User
    ledger: Ledger
    session: str
    limited: User
    files: dict[str, bytes] = field(default_factory=dict)
    edits: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    failures: list[Answer] = field(default_factory=list)
    began_at: float = 0

    @classmethod
    async def open(cls, name: str, user: User, ledger: Ledger, limited: User) -> "Caller":
        """Return a caller with a document and an editing session."""
        session = await user.open_document(await user.create_document())
        return cls(name, user, ledger, session, limited)

    async def run(self, ending: asyncio.Event) -> None:
        """Do everything over and over until told to end."""
        number = 0
        while not ending.is_set():
            number += 1
            began_at = time.monotonic()
            await self._round(f"{self.name} {number}")
            self.began_at = began_at

    async def _round(self, text: str) -> None:
        user = self.user
        if uploaded := await self._served("file", user.upload(text.encode())):
            self.files[uploaded.body["id"]] = text.encode()
        if await self._served("edit", user.insert(self.session, text)):
            self.edits.append(text)
        if await self._served("remembered turn", user.chat(text, memory_id="talk")):
            self.turns.append(text)
        if stored := await self._served("stored response", user.response(text)):
            self.responses.append(stored.body["id"])
        await self._served("chat", user.chat(text))
        await self.ledger.enter("limited chat", "limited", self.limited.chat(text))

    async def missing(self, user: User) -> dict[str, int]:
        """Return how much of what was acknowledged a user does not find, or not once and in order.

        Args:
            user: of the caller's key, at any host.
        """
        contents = [await user.content(file_id) for file_id in self.files]
        edits, turns = set(self.edits), set(self.turns)
        read = [text for text in (await user.read(self.session))[::-1] if text in edits]
        remembered = [text for text in await user.turns("talk") if text in turns]
        responses = [(await user.stored_response(one)).status for one in self.responses]
        return {
            "file": sum(one != two for one, two in zip(contents, self.files.values(), strict=True)),
            "edit": _differing(read, self.edits),
            "remembered turn": _differing(remembered, self.turns),
            "stored response": sum(status != 200 for status in responses),
        }

    async def _served(self, kind: str, call: Awaitable[Answer]) -> Answer | None:
        """Return an answer; after a failure wait as long as it says, as the SDKs do."""
        answer = await self.ledger.enter(kind, self.name, call)
        if answer.status == 200:
            return answer
        self.failures.append(answer)
        # A memory that was lost can be asked for at once, and so can all after a broken connection.
        assert answer.retry_after_s or answer.status in (409, BROKEN), answer
        await asyncio.sleep(answer.retry_after_s or 0)
        return None


@dataclass
class Asker:
    """One who asks without a pause, whole answers and streams in turn."""

    name: str
    user: User
    ledger: Ledger

    async def run(self, ending: asyncio.Event) -> None:
        """Ask over and over until told to end."""
        while not ending.is_set():
            await self.ledger.enter("chat", self.name, self.user.chat("Hello"))
            await self.ledger.enter("streamed chat", self.name, self._streamed())

    async def _streamed(self) -> Answer:
        status, text = await self.user.stream("Hello")
        is_whole = status != 200 or text.endswith("data: [DONE]\n\n")
        return Answer(status if is_whole else BROKEN, {}, None)


def _differing(read: list[str], acknowledged: list[str]) -> int:
    """Return how many of a list are missing; 1 if they are doubled or disordered."""
    missing = len(set(acknowledged) - set(read))
    return missing or int(read != acknowledged)
