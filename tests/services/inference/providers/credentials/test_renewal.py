"""Credentials are renewed ahead of their end, once at a time, and never block a request."""

import asyncio
import threading

import pytest
from botocore.credentials import ReadOnlyCredentials

from services.common.errors import UpstreamError
from services.inference.providers.credentials.aws import AwsSource, Keys
from services.inference.providers.credentials.renewal import Loaded, RenewedCredentials


class Source(AwsSource):
    """A source of credentials that end, with a clock."""

    def __init__(self, lasts_s: float = 3600) -> None:
        super().__init__("")
        self.now = 0.0
        self.lasts_s = lasts_s
        self.loads = 0
        self.fails = self.has_none = False
        self.gate = threading.Event()
        self.gate.set()

    def load(self) -> Loaded[Keys] | None:
        assert self.gate.wait(30)
        if self.fails:
            raise OSError("the source is down")
        if self.has_none:
            return None
        self.loads += 1
        end, number = self.now + self.lasts_s, self.loads
        keys = ReadOnlyCredentials(f"key-{number}", "s", "t", None)
        return Loaded(keys, lambda seconds: end - self.now < seconds, renews=True)

    def credentials(self) -> RenewedCredentials[Keys]:
        return RenewedCredentials("bedrock", self, lambda: self.now)


async def settled(credentials: RenewedCredentials[Keys]) -> None:
    while (loading := credentials._loading) is not None:
        await loading


async def test_requests_share_the_first_load():
    source = Source()
    credentials = source.credentials()
    keys = await asyncio.gather(*(credentials.current() for _ in range(50)))
    assert {one.access_key for one in keys} == {"key-1"}
    assert source.loads == 1


async def test_renewed_ahead_without_waiting():
    source = Source()
    credentials = source.credentials()
    await credentials.current()
    source.now = 3600 - 600
    source.gate.clear()
    # The source hangs, and the credentials are still good.
    assert (await credentials.current()).access_key == "key-1"
    source.gate.set()
    await settled(credentials)
    assert (await credentials.current()).access_key == "key-2"


async def test_awaited_where_they_end():
    source = Source()
    credentials = source.credentials()
    await credentials.current()
    source.now = 3600 - 10
    assert (await credentials.current()).access_key == "key-2"


async def test_a_source_that_fails_costs_nothing_until_the_end():
    source = Source()
    credentials = source.credentials()
    await credentials.current()
    source.fails = True
    for source.now in (3000, 3100, 3599):
        assert (await credentials.current()).access_key == "key-1"
        await settled(credentials)
    source.now = 3700
    with pytest.raises(UpstreamError, match="OSError"):
        await credentials.current()
    source.fails, source.now = False, 3710
    assert (await credentials.current()).access_key == "key-2"


async def test_short_credentials_are_renewed_in_time():
    source = Source(lasts_s=60)
    credentials = source.credentials()
    seen = set()
    for source.now in range(0, 300, 7):
        keys = await credentials.current()
        await settled(credentials)
        seen.add(keys.access_key)
    assert source.loads > 5
    assert len(seen) > 5


async def test_without_any_the_error_says_what_to_set():
    source = Source()
    source.has_none = True
    credentials = source.credentials()
    with pytest.raises(UpstreamError, match="AWS_ACCESS_KEY_ID"):
        await credentials.current()
