"""The files and functions that requests pass through: `python -m tests.bench.trace`.

Each request is sent several times, so that caches are filled and modules imported; the last one is
counted, until its answer has been received. Counted are the functions of `services/` and `facade/`
that begin on the event loop, except in tasks that ran before, such as those of sweepers, and in the
sandbox, which imitates the provider, with what it calls. A move is the beginning of a function of
another file than that of the function that began before.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from tests.gateway_in_process import Gateway, running_gateway

ROOT = Path(__file__).parents[2]
_COUNTED = tuple(f"{ROOT}{os.sep}{folder}{os.sep}" for folder in ("facade", "services"))
_SANDBOX = str(ROOT / "services" / "sandbox")
_WARM_UPS = 3
# Until then, the work that a request leaves to later, such as its usage record, has ended.
_SETTLING_S = 0.5
_HELLO = [{"role": "user", "content": "Hello"}]


@dataclass
class Trace:
    """Functions that ran, and moves between their files.

    Attributes:
        background: tasks whose functions are not counted.
        functions: the functions, by file and qualified name.
        moves: how often control went from a file to another one.
    """

    background: Set[asyncio.Task[Any]] = frozenset()
    functions: set[tuple[str, str]] = field(default_factory=set)
    moves: int = 0
    _last_file: str = ""

    @property
    def files(self) -> set[str]:
        """The files of the functions."""
        return {file for file, _ in self.functions}

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Count a call; the function of `sys.setprofile`."""
        if event != "call":
            return
        file = frame.f_code.co_filename
        if not file.startswith(_COUNTED) or asyncio.current_task() in self.background:
            return
        if any(one.f_code.co_filename.startswith(_SANDBOX) for one in _stack(frame)):
            return
        self.functions.add((file, frame.f_code.co_qualname))
        if file != self._last_file:
            self.moves += 1
            self._last_file = file


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


async def _traced(ask: Callable[[], Awaitable[None]]) -> Trace:
    for _ in range(_WARM_UPS):
        await ask()
        await asyncio.sleep(_SETTLING_S)
    # The first request of a second opens the journal of usage, which is not work of each.
    await ask()
    trace = Trace(asyncio.all_tasks())
    sys.setprofile(trace.profile)
    try:
        await ask()
    finally:
        sys.setprofile(None)
    return trace


class _Requests:
    """The requests that are traced."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._session = ""

    def by_name(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Return them by what the report calls them."""
        chat, messages = "/beta/v1/chat/completions", "/beta/v1/messages"
        model = "openai/echo"
        return {
            "chat, whole": lambda: self._post(chat, model=model, messages=_HELLO),
            "chat, streamed": lambda: self._post(chat, model=model, messages=_HELLO, stream=True),
            "messages over OpenAI, streamed": lambda: self._post(
                messages, model=model, messages=_HELLO, max_tokens=64, stream=True
            ),
            "response, stored": lambda: self._post(
                "/beta/v1/responses", model=model, input="Hello"
            ),
            "edit": self._edit,
            "remembered turn, whole": lambda: self._post(
                chat, model=model, messages=_HELLO, memory_id="diary"
            ),
        }

    async def _edit(self) -> None:
        if not self._session:
            created = await self._article("doc/create", {"name": "A"})
            document = {"docId": created["article"]["outer_id"]}
            opened = await self._article("session/create", document)
            self._session = opened["sessionId"]
        block = {"type": "paragraph", "children": [{"text": "Hello"}]}
        edit = {"sessionId": self._session, "path": [0], "blocks": [block]}
        await self._article("block/insert", edit)

    async def _article(self, path: str, body: Mapping[str, Any]) -> Any:
        url = f"{self._gateway.url}/article/v1/{path}"
        headers = self._gateway.api_key()
        async with self._gateway.http.post(url, json=body, headers=headers) as answer:
            envelope = await answer.json()
            assert answer.status == 200 and "error" not in envelope, envelope
            return envelope["data"]

    async def _post(self, path: str, **body: Any) -> None:
        url, headers = self._gateway.url + path, self._gateway.api_key()
        async with self._gateway.http.post(url, json=body, headers=headers) as answer:
            text = await answer.text()
            assert answer.status == 200, text


async def traces() -> Mapping[str, Trace]:
    """Return the trace of each request."""
    with TemporaryDirectory(prefix="gateway-trace-") as folder:
        async with running_gateway(Path(folder)) as gateway:
            requests = _Requests(gateway).by_name()
            return {name: await _traced(ask) for name, ask in requests.items()}


def main() -> None:
    """Print the counts, and with `-v` the functions."""
    print(f"{'request':32} {'files':>6} {'functions':>10} {'moves':>6}")
    for name, trace in asyncio.run(traces()).items():
        print(f"{name:32} {len(trace.files):6} {len(trace.functions):10} {trace.moves:6}")
        if "-v" in sys.argv[1:]:
            for file, function in sorted(trace.functions):
                print(f"    {Path(file).relative_to(ROOT)} {function}")


if __name__ == "__main__":
    main()
