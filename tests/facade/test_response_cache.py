"""The cache of answers, over HTTP: hits, misses, and whatever is not kept."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.inference.response_cache.cached_answers import CachedAnswers
from tests.facade.deployment_upstream import DeploymentUpstream, failing
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.manual_clock import ManualClock
from tests.waiting import until

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
USER = {"role": "user", "content": "Hi"}

every_way = pytest.mark.parametrize(
    ("path", "stream"),
    [(CHAT, False), (CHAT, True), (MESSAGES, False), (MESSAGES, True)],
)


class Cached:
    """A gateway with a cache of answers, and the upstream behind it."""

    def __init__(self, gateway: Gateway, upstream: DeploymentUpstream, folder: Path) -> None:
        self.gateway = gateway
        self.upstream = upstream
        self.folder = folder

    async def ask(
        self,
        path: str = CHAT,
        *,
        cache_control: str = "",
        key: str = "",
        **fields: Any,
    ) -> tuple[str, str | None, bytes]:
        """Return what the cache did, the age of the answer, and its body."""
        body = {"model": "m", "max_tokens": 10, "messages": [USER], **fields}
        headers = {"Authorization": f"Bearer {key or self.gateway.key}"}
        if path == MESSAGES:
            headers["anthropic-version"] = "2023-06-01"
        if cache_control:
            headers["cache-control"] = cache_control
        async with self.gateway.http.post(
            self.gateway.url + path, json=body, headers=headers
        ) as answer:
            answer_body = await answer.read()
        result = answer.headers.get("x-gateway-cache", "")
        if result == "hit":
            assert answer.headers["x-gateway-attempts"] == "0"
        return result, answer.headers.get("age"), answer_body

    async def kept(self, count: int) -> None:
        """Wait until so many answers are stored."""
        await until(lambda: len(self.files()) == count)

    def files(self) -> list[Path]:
        folder = self.folder / "answers"
        return [path for path in folder.glob("*/*") if len(path.name) == 64]

    async def new_key(self, user: str, team: str = "") -> str:
        database = open_engine(Storage(data_dir=self.folder))
        try:
            return await AccountRepository(database).create_key(user, team=team or None)
        finally:
            await database.dispose()


@asynccontextmanager
async def cached(tmp_path, *, clock: Clock | None = None, **fields: Any):
    """Run a gateway with a cache of answers.

    Args:
        tmp_path: folder of the gateway.
        clock: one that is ahead of the file system's makes new entries old, and they are swept.
        fields: of the settings of the cache.
    """
    upstream = DeploymentUpstream()
    async with serving(upstream.app) as address:
        providers = upstream.providers(address, "east", "west")
        models = [
            {"name": "m", "provider": "east"},
            {"name": "n", "provider": "east"},
            {"name": "other", "provider": "east", "fallbacks": ["spare"]},
            {"name": "spare", "provider": "west"},
        ]
        async with running_gateway(
            tmp_path,
            address,
            providers=providers,
            models=models,
            clock=clock,
            response_cache={"enabled": True, **fields},
        ) as gateway:
            yield Cached(gateway, upstream, tmp_path)


async def test_without_a_cache_nothing_is_said_of_it(tmp_path):
    async with cached(tmp_path, enabled=False) as gateway:
        assert [(await gateway.ask())[0] for _ in range(2)] == ["", ""]
    assert len(gateway.upstream.asked) == 2
    assert not (tmp_path / "answers").exists()


@every_way
async def test_an_equal_request_is_answered_from_the_cache(tmp_path, path, stream):
    clock = ManualClock()
    async with cached(tmp_path, clock=Clock(now=clock.now)) as gateway:
        missed = await gateway.ask(path, stream=stream)
        await gateway.kept(1)
        clock.now_s += 7
        hit = await gateway.ask(path, stream=stream)
        count = gateway.gateway.counters.get_sample_value
        assert count("gateway_response_cache_total", {"result": "hit"}) == 1
        assert count("gateway_response_cache_total", {"result": "miss"}) == 1
    assert missed[:2] == ("miss", None)
    assert hit[:2] == ("hit", "7")
    assert b"east" in hit[2]
    assert _timeless(hit[2], clock) == _timeless(missed[2], clock)
    assert len(gateway.upstream.asked) == 1


def _timeless(body: bytes, clock: ManualClock) -> bytes:
    """Return a body without the time at which it was written."""
    for seconds in (clock.now_s, clock.now_s - 7):
        body = body.replace(b"%d" % seconds, b"")
    return body


async def test_other_words_models_dialects_and_streams_are_others(tmp_path):
    async with cached(tmp_path) as gateway:
        ways: list[dict[str, Any]] = [
            {},
            {"stream": True},
            {"path": MESSAGES},
            {"model": "n"},
            {"temperature": 0.5},
            {"messages": [{**USER, "content": "hi"}]},
            {"unknown_field": 1},
        ]
        for number, fields in enumerate(ways, 1):
            assert (await gateway.ask(**fields))[0] == "miss"
            await gateway.kept(number)
        for fields in ways:
            assert (await gateway.ask(**fields))[0] == "hit"


@pytest.mark.parametrize("stream", [False, True])
async def test_callers_direct_the_cache(tmp_path, stream):
    clock = ManualClock()
    async with cached(tmp_path, clock=Clock(now=clock.now)) as gateway:

        async def ask(cache_control: str = "") -> str:
            return (await gateway.ask(stream=stream, cache_control=cache_control))[0]

        assert await ask("no-store") == "bypass"
        assert gateway.files() == []
        assert await ask() == "miss"
        await gateway.kept(1)
        clock.now_s += 30
        assert await ask("no-store") == "bypass"
        assert await ask("max-age=30") == "hit"
        assert await ask("max-age=29") == "miss"
        assert await ask("no-cache") == "miss"
        assert await ask() == "hit"


async def test_a_new_answer_replaces_the_old_one(tmp_path):
    clock = ManualClock()
    async with cached(tmp_path, clock=Clock(now=clock.now)) as gateway:
        await gateway.ask()
        await gateway.kept(1)
        [stored] = gateway.files()
        before = stored.read_bytes()
        clock.now_s += 30
        assert (await gateway.ask(cache_control="no-cache"))[0] == "miss"
        await until(lambda: stored.read_bytes() != before)
        assert (await gateway.ask())[:2] == ("hit", "0")


async def test_an_old_answer_is_not_given(tmp_path):
    clock = ManualClock()
    async with cached(tmp_path, clock=Clock(now=clock.now), ttl_s=60) as gateway:
        await gateway.ask()
        await gateway.kept(1)
        clock.now_s += 59
        assert (await gateway.ask())[0] == "hit"
        clock.now_s += 1
        assert (await gateway.ask())[0] == "miss"


async def test_users_never_share_answers_and_teams_may(tmp_path):
    async with cached(tmp_path / "user") as gateway:
        ada, bob = [await gateway.new_key(user, "lab") for user in ("ada", "bob")]
        assert (await gateway.ask(key=ada))[0] == "miss"
        await gateway.kept(1)
        assert (await gateway.ask(key=bob))[0] == "miss"
        assert (await gateway.ask(key=ada))[0] == "hit"
    async with cached(tmp_path / "team", scope="team") as gateway:
        ada, bob = [await gateway.new_key(user, "lab") for user in ("ada", "bob")]
        eve = await gateway.new_key("eve", "den")
        assert (await gateway.ask(key=ada))[0] == "miss"
        await gateway.kept(1)
        assert (await gateway.ask(key=bob))[0] == "hit"
        assert (await gateway.ask(key=eve))[0] == "miss"


@pytest.mark.parametrize(
    "fields",
    [
        {"memory_id": "mine"},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
                    ],
                }
            ]
        },
        {"web_search_options": {}},
    ],
)
async def test_what_depends_on_more_is_not_kept(tmp_path, fields):
    async with cached(tmp_path) as gateway:
        for _ in range(2):
            assert (await gateway.ask(**fields))[0] != "hit"
        assert gateway.files() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_failures_are_not_kept(tmp_path, stream):
    async with cached(tmp_path) as gateway:
        gateway.upstream.scripts["east"] = failing(400)
        for _ in range(2):
            await gateway.ask(stream=stream)
        assert len(gateway.upstream.asked) == 2
        assert gateway.files() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answer_of_a_stand_in_is_not_kept(tmp_path, stream):
    async with cached(tmp_path) as gateway:
        gateway.upstream.scripts["east"] = failing(404)
        for _ in range(2):
            result, _, body = await gateway.ask(model="other", stream=stream)
            assert (result, b"west" in body) == ("miss", True)
        assert gateway.files() == []
        del gateway.upstream.scripts["east"]
        assert b"east" in (await gateway.ask(model="other", stream=stream))[2]
        await gateway.kept(1)


async def test_an_answer_that_breaks_off_is_not_kept(tmp_path):
    async with cached(tmp_path) as gateway:
        gateway.upstream.is_cut = True
        for _ in range(2):
            _, _, body = await gateway.ask(stream=True, fallback="disabled")
            assert b"east" in body
            assert b"[DONE]" not in body
        assert len(gateway.upstream.asked) == 2
        assert gateway.files() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_too_long_an_answer_is_not_kept(tmp_path, stream):
    async with cached(tmp_path, max_answer_bytes=1024) as gateway:
        gateway.upstream.text = "x" * 1024
        for _ in range(2):
            assert (await gateway.ask(stream=stream))[0] == "miss"
        assert gateway.files() == []


async def test_a_damaged_entry_is_a_miss(tmp_path):
    async with cached(tmp_path) as gateway:
        await gateway.ask()
        await gateway.kept(1)
        for damage in (b"", b"12345678", b"12345678\xff\xff\xff", bytes(8) + b"\x0a\x01x"):
            gateway.files()[0].write_bytes(damage)
            assert (await gateway.ask())[0] == "miss"
            await until(lambda: gateway.files()[0].stat().st_size > 20)


async def test_equal_requests_at_once_are_all_answered(tmp_path):
    async with cached(tmp_path) as gateway:
        answers = await asyncio.gather(*(gateway.ask() for _ in range(8)))
        assert {b"east" in body for _, _, body in answers} == {True}
        await gateway.kept(1)
        assert (await gateway.ask())[0] == "hit"


def hits_and_misses(cache: Cached) -> list[float | None]:
    count = cache.gateway.counters.get_sample_value
    return [count("gateway_response_cache_total", {"result": one}) for one in ("hit", "miss")]


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.Future[bytes]]:
    """Return what requests wait for: the answers to equal requests."""
    waited_for = []
    real = CachedAnswers._of_equal_request

    async def noted(answers, answering):
        if answering is not None:
            waited_for.append(answering)
        return await real(answers, answering)

    monkeypatch.setattr(CachedAnswers, "_of_equal_request", noted)
    return waited_for


async def at_once(
    cache: Cached, waiting: list[asyncio.Future[bytes]], number: int
) -> list[asyncio.Task[Any]]:
    """Begin so many equal requests: the first is at its provider, and the others wait for it."""
    first = asyncio.create_task(cache.ask())
    await until(lambda: cache.upstream.asked)
    before = hits_and_misses(cache)
    others = [asyncio.create_task(cache.ask()) for _ in range(number - 1)]
    # What came later is at the provider too, and they still wait.
    later = asyncio.create_task(cache.ask(cache_control="no-store"))
    await until(lambda: len(cache.upstream.asked) == 2)
    # They have read the store, which takes threads a while.
    await until(lambda: len(waiting) == number - 1)
    assert hits_and_misses(cache) == before
    return [first, *others, later]


async def test_equal_requests_share_an_answer_under_way(tmp_path, waiting):
    async with cached(tmp_path, clock=ManualClock()) as cache:
        cache.upstream.gate.clear()
        *asking, later = await at_once(cache, waiting, 4)
        cache.upstream.gate.set()
        answers = await asyncio.gather(*asking)
        assert [result for result, *_ in answers] == ["miss", "hit", "hit", "hit"]
        assert [age for _, age, _ in answers] == [None, "0", "0", "0"]
        assert len({body for _, _, body in answers}) == 1
        assert (await later)[0] == "bypass"
        assert len(cache.upstream.asked) == 2


async def test_without_an_answer_to_share_all_are_asked(tmp_path, waiting):
    async with cached(tmp_path) as cache:
        cache.upstream.gate.clear()
        first, *others, later = await at_once(cache, waiting, 3)
        # The first caller leaves, and takes nothing from the others.
        first.cancel()
        await until(lambda: len(cache.upstream.asked) == 4)
        cache.upstream.gate.set()
        answers = await asyncio.gather(*others)
        assert [result for result, *_ in answers] == ["miss", "miss"]
        await later


async def test_another_process_finds_the_answer(tmp_path):
    async with cached(tmp_path) as gateway:
        key = gateway.gateway.key
        await gateway.ask()
        await gateway.kept(1)
    async with cached(tmp_path) as gateway:
        assert (await gateway.ask(key=key))[0] == "hit"
    assert gateway.upstream.asked == []
