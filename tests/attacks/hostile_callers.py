"""Ten hostile callers, in a process of their own, who take turns at everything that `ATTACKS` has.

`python -m tests.attacks.hostile_callers PORT KEY...` runs one caller per key until standard input
ends, then writes how often each attack ran, as JSON. Whatever an attack is answered is well, as
long as the gateway bounds it; what callers may be answered is what the other tests are about.
"""

import asyncio
import base64
import io
import json
import random
import socket
import sys
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import aiohttp
from yarl import URL

from tests.attacks import valid
from tests.attacks.hostile_upstream import SCRIPTS
from tests.attacks.media_bombs import BOMBS
from tests.attacks.structure import Fuzzer

CHAT, MESSAGES, RESPONSES = "/beta/v1/chat/completions", "/beta/v1/messages", "/beta/v1/responses"
TIMEOUT_S = 120.0
LEAVES_AFTER_S = 3.0
MIB = 1 << 20
_HELLO = [{"role": "user", "content": "Hello"}]
_PROVIDERS = {"gemini": "gemini"}
_OF_ANTHROPIC = {"blocks", "grown-usage", "deltas", "list-for-type"}


class Hostile:
    """One hostile caller.

    Attributes:
        chance: draws what is sent.
    """

    def __init__(self, http: aiohttp.ClientSession, port: int, key: str, number: int) -> None:
        self.chance = random.Random(number)
        self.port = port
        self.key = key
        self._http = http
        self._headers = {"x-api-key": key, "compat-version": "2023-06-01"}

    async def post(
        self, path: str, body: Any = None, *, within_s: float = TIMEOUT_S, **headers: str
    ) -> tuple[int, bytes]:
        """Send JSON, or bytes as they are; return the status and the beginning of the answer."""
        sent = {"json": body} if not isinstance(body, bytes) else {"data": io.BytesIO(body)}
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        content = {"content-type": "application/json"} if isinstance(body, bytes) else {}
        async with (
            asyncio.timeout(within_s),
            self._http.post(url, headers={**self._headers, **content, **headers}, **sent) as answer,
        ):
            beginning = await answer.content.read(MIB)
            while await answer.content.readany():
                pass
            return answer.status, beginning

    async def get(self, path: str) -> int:
        """Return the status of an answer."""
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        async with self._http.get(url, headers=self._headers) as answer:
            await answer.read()
            return answer.status

    async def upload(self, content: bytes) -> str:
        """Store a file; return its id, "" where it was refused."""
        form = aiohttp.FormData()
        form.add_field("purpose", "assistants")
        form.add_field("file", io.BytesIO(content), filename="a.pdf")
        url = f"http://127.0.0.1:{self.port}/beta/v1/files"
        async with self._http.post(url, data=form, headers=self._headers) as answer:
            description = await answer.json(content_type=None)
            return str(description.get("id", "")) if answer.status == 200 else ""

    async def at_once(self, count: int, ask: Callable[[int], Awaitable[object]]) -> None:
        """Ask so often at the same time; what fails does not matter."""
        await asyncio.gather(*map(ask, range(count)), return_exceptions=True)


Attack = Callable[[Hostile], Awaitable[None]]


async def schemas(caller: Hostile) -> None:
    """Send schemas that refer to themselves, or ask for much, and leave."""
    wide: Any = {"type": "string", "minLength": 100_000}
    for _ in range(2):
        wide = {"type": "array", "minItems": 60, "items": wide}
    for schema in ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, wide):
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        response_format = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        for more in (
            {"response_format": response_format},
            {"tools": [tool], "tool_choice": "required"},
        ):
            with suppress(TimeoutError):
                body = {"model": "sandbox/echo", "messages": _HELLO, **more}
                await caller.post(CHAT, body, within_s=LEAVES_AFTER_S)


async def stored_files(caller: Hostile) -> None:
    """Name a large stored file in many small requests."""
    if not (file_id := await caller.upload(b"%PDF-1.7\n" + bytes(20 * MIB))):
        return
    part = {"type": "file", "file": {"file_id": file_id}}
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": [part]}]}
    await caller.at_once(20, lambda _: caller.post(CHAT, body))
    await caller.at_once(1, lambda _: _delete(caller, f"/beta/v1/files/{file_id}"))


async def _delete(caller: Hostile, path: str) -> None:
    url = f"http://127.0.0.1:{caller.port}{path}"
    async with caller._http.delete(url, headers=caller._headers) as answer:
        await answer.read()


async def stored_responses(caller: Hostile) -> None:
    """Continue a large stored response in many small requests."""
    body = {"model": "sandbox/echo", "input": "x" * (8 * MIB), "store": True}
    status, answer = await caller.post(RESPONSES, {**body, "instructions": "(sandbox: empty)"})
    if status != 200 or b'"id":"' not in answer:
        return
    response_id = answer.split(b'"id":"', 1)[1].split(b'"', 1)[0].decode()
    more = {"model": "sandbox/echo", "input": "y", "previous_response_id": response_id}
    await caller.at_once(20, lambda _: caller.post(RESPONSES, {**more, "store": False}))
    await caller.at_once(1, lambda _: _delete(caller, f"{RESPONSES}/{response_id}"))


async def sparse_sheets(caller: Hostile) -> None:
    """Send a sheet whose only cells are its first and its last, also to count its tokens."""
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        '<row r="1"><c r="XFD1"><v>1</v></c></row>'
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>'
    )
    packed = io.BytesIO()
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName='
            f'"/xl/workbook.xml" ContentType="{main}.sheet.main+xml"/><Override PartName='
            f'"/xl/worksheets/sheet1.xml" ContentType="{main}.worksheet+xml"/></Types>',
        )
        file.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        file.writestr(
            "xl/workbook.xml",
            '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
            f'xmlns:r="{relations}"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets>'
            "</workbook>",
        )
        file.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        )
        file.writestr("xl/worksheets/sheet1.xml", sheet)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    await _media(caller, kind, packed.getvalue(), count=4)


async def bombs(caller: Hostile) -> None:
    """Send a medium that is huge once it is read."""
    kind, made = BOMBS[caller.chance.choice(sorted(BOMBS))]
    await _media(caller, kind, made(), count=1)


async def quadratic_pages(caller: Hostile) -> None:
    """Send a page whose styles took a pattern quadratic time."""
    page = f'<p style="color:rgba({"0" * 30_000}">hidden</p>'.encode()
    await _media(caller, "text/html", page, count=2)


async def _media(caller: Hostile, kind: str, content: bytes, count: int) -> None:
    data = base64.b64encode(content).decode()
    source = {"type": "base64", "media_type": kind, "data": data}
    part = {"type": "image" if kind.startswith("image/") else "document", "source": source}
    body = {"model": "blind", "messages": [{"role": "user", "content": [part]}], "max_tokens": 9}
    for path in (MESSAGES, f"{MESSAGES}/count_tokens"):
        await caller.at_once(count, lambda _, path=path: caller.post(path, body))


async def foreign_references(caller: Hostile) -> None:
    """Refer to state of the operator's account at a provider."""
    for name, value in (
        *(("previous_response_id", "resp_1"), ("container", "cntr_1"), ("thread", "thread_1")),
        *(("file_ids", ["file-1"]), ("assistant_id", "asst_1"), ("prompt", {"id": "pmpt_1"})),
        ("data_sources", [{"type": "azure_search"}]),
    ):
        await caller.post(CHAT, {"model": "openai/text", "messages": _HELLO, name: value})
    tools = [{"type": "file_search", "vector_store_ids": ["vs_1"]}]
    item = {"type": "additional_tools", "tools": tools}
    await caller.post(RESPONSES, {"model": "openai/text", "input": [item]})


async def foreign_models(caller: Hostile) -> None:
    """Name further models, and more names of models than anybody has."""
    body = {"model": "openai/text", "messages": _HELLO, "max_tokens": 9}
    await caller.post(CHAT, {**body, "models": ["a/b", "c/d"]})
    await caller.post(MESSAGES, {**body, "fallbacks": [{"model": "x"}]})
    for _ in range(50):
        name = "".join(caller.chance.choices("abcdef", k=200))
        await caller.post(CHAT, {**body, "model": f"sandbox/{name}"})


async def races(caller: Hostile) -> None:
    """Race uploads, memories, documents and chats against their quotas."""
    await caller.at_once(30, lambda _: caller.upload(bytes(MIB)))
    await caller.at_once(30, lambda _: caller.post("/article/v1/doc/create", {"group": 0}))
    remembered = {"model": "sandbox/echo", "messages": _HELLO}
    await caller.at_once(
        30, lambda number: caller.post(CHAT, {**remembered, "memory_id": f"m{number}"})
    )
    await caller.at_once(100, lambda _: caller.post(CHAT, remembered))


async def broken_providers(caller: Hostile) -> None:
    """Ask for answers that a provider breaks, or never ends."""
    name = caller.chance.choice(sorted(SCRIPTS))
    kind = name.partition("-")[0]
    provider = "anthropic" if name in _OF_ANTHROPIC else _PROVIDERS.get(kind, "openai")
    body = {"model": f"{provider}/{name}", "messages": _HELLO, "max_tokens": 9}
    for path in (CHAT, MESSAGES):
        await caller.post(path, {**body, "stream": caller.chance.random() < 0.8})


async def structures(caller: Hostile) -> None:
    """Send bodies of any structure."""
    requests = list(valid.requests(valid.Names("m", "1", "s", "b")))
    fuzzer = Fuzzer(caller.chance.randrange(1 << 32), requests, "m", largest=2 * MIB)
    for _ in range(60):
        attempt = fuzzer.draw()
        if attempt.body is not None:
            await caller.post(attempt.path, attempt.body)


async def large_bodies(caller: Hostile) -> None:
    """Send as much as a body may have, of text and of values, and more."""
    text = json.dumps({"model": "sandbox/echo", "messages": _HELLO, "user": "x" * (40 * MIB)})
    await caller.at_once(4, lambda _: caller.post(CHAT, text.encode()))
    await caller.at_once(4, lambda _: caller.post(CHAT, b"[" + b"{}," * 900_000 + b"{}]"))
    await caller.post(CHAT, b"[" * 1_000_000)


async def encoded_paths(caller: Hostile) -> None:
    """Ask for the admin API, and for others' files, by paths in disguise."""
    for path in ("/%61dmin/v1/keys", "/beta/v1/files/../../admin/v1/keys", "//admin/v1/keys"):
        await caller.get(path)
    for number in range(50):
        await caller.get(f"/beta/v1/files/file-{number:026}/content")


async def early_leavers(caller: Hostile) -> None:
    """Ask for streams, and leave after their first bytes."""
    body = {"model": "openai/text", "messages": _HELLO, "stream": True, "memory_id": "left"}

    async def leave(_: int) -> None:
        url = f"http://127.0.0.1:{caller.port}{CHAT}"
        async with caller._http.post(url, json=body, headers=caller._headers) as answer:
            await answer.content.readany()
            answer.close()

    await caller.at_once(20, leave)


async def unread_streams(caller: Hostile) -> None:
    """Ask for endless streams, and read nothing."""
    body = json.dumps({"model": "openai/text", "messages": _HELLO, "stream": True}).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nhost: a\r\nx-api-key: {caller.key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    await _hold(caller, head.encode() + body, count=40, for_s=10)


async def slow_heads(caller: Hostile) -> None:
    """Hold connections whose heads, or whose bodies, never end."""
    await _hold(caller, b"POST / HTTP/1.1\r\nhost: a\r\nx: ", count=200, for_s=5)
    head = (
        f"POST {CHAT} HTTP/1.1\r\nhost: a\r\nx-api-key: {caller.key}\r\n"
        "content-type: application/json\r\ncontent-length: 60000000\r\n\r\n{"
    )
    await _hold(caller, head.encode(), count=50, for_s=5)


async def _hold(caller: Hostile, sends: bytes, count: int, for_s: float) -> None:
    loop = asyncio.get_running_loop()
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            opened = socket.socket()
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened.setblocking(False)
            held.append(opened)
            with suppress(OSError):
                await loop.sock_connect(opened, ("127.0.0.1", caller.port))
                await loop.sock_sendall(opened, sends)
        await asyncio.sleep(for_s)  # the attack itself
    finally:
        for opened in held:
            opened.close()


async def broken_uploads(caller: Hostile) -> None:
    """Upload a purpose of 8 MiB."""
    form = aiohttp.FormData()
    form.add_field("purpose", io.BytesIO(bytes(8 * MIB)))
    url = f"http://127.0.0.1:{caller.port}/beta/v1/files"
    async with caller._http.post(url, data=form, headers=caller._headers) as answer:
        await answer.read()


ATTACKS: Sequence[Attack] = (
    *(schemas, stored_files, stored_responses, sparse_sheets, bombs, quadratic_pages),
    *(foreign_references, foreign_models, races, broken_providers, structures, large_bodies),
    *(encoded_paths, early_leavers, unread_streams, slow_heads, broken_uploads),
)


async def attack_on(caller: Hostile, first: int, counts: Counter[str]) -> None:
    """Attack in turns, from the attack with a number on, until cancelled."""
    number = first
    while True:
        attack = ATTACKS[number % len(ATTACKS)]
        number += 1
        with suppress(aiohttp.ClientError, OSError, TimeoutError, ValueError):
            await attack(caller)
        counts[attack.__name__] += 1


async def main(port: int, keys: Sequence[str]) -> Mapping[str, int]:
    """Attack until standard input ends; return how often each attack ran."""
    counts: Counter[str] = Counter()
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as http:
        print("ready", flush=True)
        tasks = [
            asyncio.create_task(
                attack_on(
                    Hostile(http, port, key, number), number * len(ATTACKS) // len(keys), counts
                )
            )
            for number, key in enumerate(keys)
        ]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    faults = [error for error in ended if not isinstance(error, asyncio.CancelledError)]
    assert not faults, faults
    return counts


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))), flush=True)
