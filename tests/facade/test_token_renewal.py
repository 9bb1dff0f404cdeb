"""Access tokens that end while requests run: no request fails."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
import pytest_asyncio

from services.inference.providers.credentials import authorizers, google
from services.inference.providers.credentials.renewal import RenewedCredentials
from tests.facade.test_azure import identity
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.vertex.tokens import ServiceAccount, Tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")

_real_time, _monotonic = time.time, time.monotonic
_HOUR_S = 3600
MODELS = ("vertex/gemini-echo", "azure/echo")


class Clock:
    """The clock of the gateway, of the clouds' libraries and of the clouds; moved by tests."""

    ahead_s = 0.0

    def time(self) -> float:
        return _real_time() + self.ahead_s

    def monotonic(self) -> float:
        return _monotonic() + self.ahead_s

    def utcnow(self) -> datetime:
        """Return the time as google-auth has it."""
        return datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=self.ahead_s)

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Replace the clocks meanwhile."""
        clock = self

        class Datetime(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:
                return clock.utcnow().replace(tzinfo=UTC)

        renewed = partial(RenewedCredentials, now=self.monotonic)
        with (
            patch.object(authorizers, "RenewedCredentials", renewed),
            patch.object(google, "datetime", Datetime),
            patch("google.auth._helpers.utcnow", self.utcnow),
            patch("time.time", self.time),
        ):
            yield


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def tokens(clock: Clock) -> Tokens:
    return Tokens(now=clock.time, lasts_s=_HOUR_S)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    clock: Clock, tokens: Tokens, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("clouds")
    account = ServiceAccount()
    app = create_app(tokens=tokens, account=account)
    async with serving(app) as url:
        file = folder / "account.json"
        file.write_text(account.file(f"{url}/token"))
        vertex = {"kind": "vertex", "base_url": url, "project": "p", "credentials_file": str(file)}
        azure = {"kind": "openai", "base_url": f"{url}/openai/v1", "credentials": "azure"}
        providers = {"vertex": vertex, "azure": azure}
        with clock.everywhere(), patch.dict(os.environ, identity(url)):
            async with running_gateway(folder, url, providers=providers) as running:
                # The gateway asks for tokens as soon as it runs, to list models. One that is on its
                # way when the clock moves would seem to last longer than it does.
                assert [await ask(running, model) for model in MODELS] == [200, 200]
                yield running


async def ask(gateway: Gateway, model: str) -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
    url = f"{gateway.url}/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        await answer.read()
        return answer.status


@pytest.mark.parametrize("model", MODELS)
async def test_no_request_fails_while_a_token_ends(
    gateway: Gateway, clock: Clock, tokens: Tokens, model: str
):
    assert await ask(gateway, model) == 200
    # Near the end of a token, past its end, and after a night without requests.
    for passes_s in (_HOUR_S - 200, 300, 9 * _HOUR_S):
        clock.ahead_s += passes_s
        asked = tokens.asked
        assert await asyncio.gather(*(ask(gateway, model) for _ in range(8))) == [200] * 8
    assert tokens.asked > asked
