"""Answers of providers with every value at every place: callers get an answer, or a failure.

What a caller is sent keeps to the grammar of the dialect, never looks complete where the
provider's answer was cut, and lacks no text of the events that were as they should be.
"""

import asyncio
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import aiohttp
import orjson
import pytest

from tests.attacks import broken_answers
from tests.attacks.broken_answers import KINDS, Case, Kind
from tests.attacks.grammar import (
    STREAM_READERS,
    WHOLE_READERS,
    Dialect,
    Said,
    check_failure,
    response_stream,
)
from tests.attacks.observer import Observer
from tests.attacks.scripted_provider import answering, bound_socket
from tests.e2e.gateway import Gateway
from tests.thoroughness import is_soak, sampled

pytestmark = pytest.mark.thorough

# Of each kind of provider; prime, so that every value and every event stays in the sample.
ONE_IN = 101
AT_ONCE = 4
# Far longer than any answer takes: what lasts longer hangs.
HANGING_S = 120
HELLO = [{"role": "user", "content": "hi"}]
ASKS: Mapping[Dialect, tuple[str, Mapping[str, Any]]] = {
    "chat": ("/beta/v1/chat/completions", {"messages": HELLO}),
    "messages": ("/beta/v1/messages", {"messages": HELLO, "max_tokens": 100}),
    "responses": ("/beta/v1/responses", {"input": "hi", "store": False}),
}
DIALECTS: Sequence[Dialect] = tuple(ASKS)
# A server with OpenAI's responses is asked for them by callers of that dialect alone.
TRANSLATED: Mapping[Kind, Sequence[Dialect]] = dict.fromkeys(KINDS, DIALECTS) | {
    "native": ("responses",)
}


@pytest.fixture(scope="module")
def provider_socket() -> Iterator[socket.socket]:
    with bound_socket() as listening:
        yield listening


@pytest.fixture(scope="module")
def upstream_port(provider_socket: socket.socket) -> int:
    port: int = provider_socket.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def settings(upstream_port: int) -> str:
    """Return a provider with OpenAI's responses, beside the usual three."""
    address = f"http://127.0.0.1:{upstream_port}/v1"
    return (
        f'\n[providers.native]\nkind = "openai"\nbase_url = "{address}"\n'
        'api_key = "upstream-key"\nresponses = true\n'
        "[limits]\nbreaker_failures = 1000000\n"
    )


class Caller:
    """Asks for the answers of cases, and says what is wrong with what comes of them."""

    def __init__(self, http: aiohttp.ClientSession, target: Gateway, key: str) -> None:
        self._http = http
        self._address = target.address
        self._headers = {"Authorization": f"Bearer {key}", "compat-version": "2023-06-01"}

    async def fault(self, case: Case, name: str, dialect: Dialect) -> str:
        """Return what is wrong with the answer that a case leads to, "" where nothing is."""
        try:
            status, content = await self.ask(case.kind, name, dialect, case.is_stream)
            self._check(case, dialect, status, content)
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"{case.kind} for {dialect}: {case.what}: {error!r}"
        except (AssertionError, KeyError, TypeError, ValueError, AttributeError) as error:
            excerpt = content[-600:] if case.is_stream else content[:600]
            return f"{case.kind} for {dialect}: {case.what}: {error!r:.300} {status} in {excerpt!r}"
        return ""

    async def ask(self, kind: Kind, name: str, dialect: Dialect, stream: bool) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        path, body = ASKS[dialect]
        asked = {"model": f"{kind}/{name}", "stream": stream, "fallback": "disabled", **body}
        async with self._http.post(
            self._address + path, json=asked, headers=self._headers
        ) as response:
            return response.status, await response.read()

    def _check(self, case: Case, dialect: Dialect, status: int, content: bytes) -> None:
        if status != 200:
            check_failure(dialect, status, content)
            return
        reading = read(case, dialect, content)
        if reading.is_complete:
            assert not case.is_cut, "looks complete"
            _check_has(reading.text, case.texts)


def read(case: Case, dialect: Dialect, content: bytes) -> Said:
    """Read an answer by the grammar of its dialect."""
    if case.kind == "native" and case.is_stream:
        return response_stream(content, is_native=True)
    if case.is_stream:
        return STREAM_READERS[dialect](content)
    return WHOLE_READERS[dialect](orjson.loads(content))


def _check_has(text: str, pieces: Sequence[str]) -> None:
    """Assert that a text has all pieces in their order."""
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        assert at >= 0, f"{piece!r} is missing in {text!r}"
        at += len(piece)


async def faults_of(caller: Caller, cases: Mapping[str, Case]) -> list[str]:
    """Ask for each case, some at once; return what is wrong."""
    asks = [
        (name, case, dialect)
        for number, (name, case) in enumerate(cases.items())
        for dialect in _asked_by(case.kind, number)
    ]
    left = iter(asks)
    faults: list[str] = []

    async def work() -> None:
        for name, case, dialect in left:
            if fault := await caller.fault(case, name, dialect):
                faults.append(fault)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return faults


def _asked_by(kind: Kind, number: int) -> Sequence[Dialect]:
    """Return the dialects in which a case is asked for: all in `make soak`, else one in turn."""
    dialects = TRANSLATED[kind]
    return dialects if is_soak() else [dialects[number % len(dialects)]]


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("kind", KINDS)
async def test_any_value_at_any_place_is_harmless(
    target: Gateway,
    attacker_key: str,
    observer: Observer,
    provider_socket: socket.socket,
    kind: Kind,
) -> None:
    every = sampled(broken_answers.cases(kind), ONE_IN)
    cases = {f"c{number}": case for number, case in enumerate(every)}
    usual = {
        f"valid-{stream}": broken_answers.valid(kind, is_stream=stream) for stream in (False, True)
    }
    answers = {name: case.pieces for name, case in {**cases, **usual}.items()}
    written = len(target.process.output)
    timeout = aiohttp.ClientTimeout(total=HANGING_S)
    async with answering(provider_socket, answers), aiohttp.ClientSession(timeout=timeout) as http:
        caller = Caller(http, target, attacker_key)
        async with observer.watch() as measured:
            faults = await faults_of(caller, cases)
        # The next ordinary requests are answered.
        for name, case in usual.items():
            for dialect in TRANSLATED[kind]:
                status, content = await caller.ask(kind, name, dialect, case.is_stream)
                assert status == 200, content
                reading = read(case, dialect, content)
                assert reading.is_complete
                _check_has(reading.text, case.texts)
    logged = target.process.output[written:]
    assert not faults, f"{len(faults)} of {len(cases)}:\n" + "\n".join(faults[:40])
    assert "Traceback" not in logged, logged[logged.index("Traceback") - 500 :][:4000]
    measured.assert_harmless()
