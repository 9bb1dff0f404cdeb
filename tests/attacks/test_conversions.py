"""Media that would occupy the conversion processes, sent by one caller or by many."""

import asyncio
import base64
from typing import Any

import aiohttp
import pytest

from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.attacks.observer import Observer
from tests.bench import processes
from tests.e2e.gateway import Gateway
from tests.services.media.conversion.test_office import cell, sheet

MODULE = "services.media.conversion.process"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# Two processes convert at once, each with its libraries.
MOST_MB = 600


def corners(value: int) -> bytes:
    """Return a sheet with two cells that are as far from each other as can be."""
    last = f'<row r="1048576">{cell("XFD1048576", value)}</row>'
    return sheet(f'<row r="1">{cell("A1")}</row>{last}')


def body(document: bytes) -> dict[str, Any]:
    data = f"data:{XLSX};base64,{base64.b64encode(document).decode()}"
    content = [{"type": "file", "file": {"filename": "a.xlsx", "file_data": data}}]
    return {"model": "sandbox/text", "messages": [{"role": "user", "content": content}]}


def counted(document: bytes) -> dict[str, Any]:
    data = base64.b64encode(document).decode()
    source = {"type": "base64", "media_type": XLSX, "data": data}
    content = [{"type": "document", "source": source}]
    return {"model": "sandbox/text", "messages": [{"role": "user", "content": content}]}


async def post(
    http: aiohttp.ClientSession, target: Gateway, key: str, path: str, sent: Any
) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}", "compat-version": "2023-06-01"}
    async with http.post(f"{target.address}{path}", json=sent, headers=headers) as answer:
        return answer.status, await answer.json()


async def new_key(target: Gateway, user: str, limits: UsageLimits | None = None) -> str:
    database = open_engine(Storage(data_dir=target.data_dir))
    try:
        accounts = AccountRepository(database)
        key = await accounts.create_key(user, plan="personal_free")
        if limits is not None:
            owner = await accounts.identify(key)
            await LimitRepository(database, Clock()).set(SubjectKind.USER, owner.user_id, limits)
        return key
    finally:
        await database.dispose()


async def test_sheets_with_far_corners_leave_the_processes_free(
    target: Gateway, observer: Observer
) -> None:
    assert len(corners(1)) < 2_000
    keys = [await new_key(target, f"corners{number}") for number in range(4)]
    chats = "/beta/v1/chat/completions"
    async with aiohttp.ClientSession() as http, observer.watch() as measured:
        attacks = [
            asyncio.create_task(post(http, target, key, chats, body(corners(n))))
            for key in keys
            for n in range(4)
        ]
        own = sheet(f'<row r="1">{cell("A1", 4321)}</row>')
        status, answer = await post(http, target, target.key, chats, body(own))
        assert status == 200
        assert "4321" in answer["choices"][0]["message"]["content"]
        assert {status for status, _ in await asyncio.gather(*attacks)} <= {200, 400, 503}
    measured.assert_harmless(MOST_MB)


@pytest.mark.parametrize(
    "limits",
    [
        UsageLimits(requests_per_minute=0, tokens_per_minute=0, concurrent_requests=0),
        UsageLimits(tokens_per_minute=0),
    ],
)
async def test_a_key_without_any_allowance_converts_nothing(
    target: Gateway, observer: Observer, limits: UsageLimits
) -> None:
    key = await new_key(target, f"nothing{limits.requests_per_minute}", limits)
    path = "/beta/v1/messages/count_tokens"
    before = converting(target)
    async with aiohttp.ClientSession() as http, observer.watch() as measured:
        answers = [await post(http, target, key, path, counted(corners(n))) for n in range(4)]
    measured.assert_harmless()
    for status, answer in answers:
        assert (status, answer["error"]["type"]) == (429, "rate_limit_error")
    assert converting(target) <= before


def converting(target: Gateway) -> set[int]:
    """Return the conversion processes of a gateway."""
    return set(processes.running_module(processes.family(target.process.pid), MODULE))
