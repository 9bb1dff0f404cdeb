import asyncio

import pytest

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, invalid_api_key, unavailable
from services.common.grpc.authentication import CachingAuthenticator, Caller, bearer_key
from services.common.key_format import is_key
from tests.manual_clock import ManualClock
from tests.waiting import until

KEYS = ["gw-" + letter * 43 for letter in "abcde"]
ADA = Caller("user_ada", "", PLAN_ENTERPRISE)


class Keys:
    """Whose keys are, in memory; look-ups wait while `open` is not set."""

    def __init__(self) -> None:
        self.callers = dict.fromkeys(KEYS, ADA)
        self.asked: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.reached = asyncio.Event()
        self.failure: Exception | None = None

    async def identify(self, key: str) -> Caller:
        self.asked.append(key)
        self.reached.set()
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        if key not in self.callers:
            raise invalid_api_key()
        return self.callers[key]


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def identify(keys: Keys, clock: ManualClock) -> CachingAuthenticator:
    return CachingAuthenticator(keys.identify, ttl_s=30, monotonic=clock.monotonic, max_entries=3)


async def _refused(identify: CachingAuthenticator, key: str) -> None:
    with pytest.raises(GatewayError) as raised:
        await identify(key)
    assert raised.value.reason == errors_pb2.REASON_INVALID_API_KEY


def test_a_bearer_key_is_taken_whatever_the_case_of_its_scheme() -> None:
    for header in (f"Bearer {KEYS[0]}", f"bearer {KEYS[0]}", f"BEARER \t {KEYS[0]} "):
        assert bearer_key(header) == KEYS[0]


def test_a_key_has_letters_digits_dashes_and_underscores_alone() -> None:
    for secret in ("a" * 43, "A9-_" * 10 + "zZ0", "-" * 43, "_" * 43):
        assert is_key(f"gw-{secret}")
        assert bearer_key(f"Bearer gw-{secret}") == f"gw-{secret}"
    wrong = ("ü", "²", "٣", " ", "\n", ".", "/", "+", "=", "\0")
    for secret in ("", "a" * 42, "a" * 44, *("a" * 42 + last for last in wrong)):
        assert not is_key(f"gw-{secret}")
        with pytest.raises(GatewayError):
            bearer_key(f"Bearer gw-{secret}")
    assert not is_key("GW-" + "a" * 43)


def test_a_malformed_bearer_key_is_refused_but_not_repeated() -> None:
    for header in (
        "",
        KEYS[0],
        f"Basic {KEYS[0]}",
        "Bearer",
        "Bearer sk-hush",
        f"Bearer {KEYS[0]}a",
        f" Bearer {KEYS[0]}",
        f"Bearer {KEYS[0]} {KEYS[1]}",
    ):
        with pytest.raises(GatewayError) as raised:
            bearer_key(header)
        assert raised.value.reason == errors_pb2.REASON_INVALID_API_KEY
        assert "hush" not in raised.value.message
        assert KEYS[0] not in raised.value.message


def test_only_the_exact_form_is_a_key() -> None:
    assert is_key("gw-" + "aZ0_-" * 8 + "abc")
    for text in (
        "",
        "gw-",
        "gw-" + "a" * 42,
        "gw-" + "a" * 44,
        "gw-" + "a" * 42 + "é",
        KEYS[0] + "\n",
    ):
        assert not is_key(text)


async def test_a_known_key_is_looked_up_once_in_its_time(
    identify: CachingAuthenticator, keys: Keys, clock: ManualClock
) -> None:
    for step_s in (0, 10, 19.9):
        clock.now_s += step_s
        assert await identify(KEYS[0]) == ADA
    assert keys.asked == [KEYS[0]]


async def test_a_revocation_takes_effect_when_the_time_is_over(
    identify: CachingAuthenticator, keys: Keys, clock: ManualClock
) -> None:
    await identify(KEYS[0])
    keys.callers.clear()
    clock.now_s += 30
    await _refused(identify, KEYS[0])


async def test_a_key_in_use_is_looked_up_again_in_its_time(
    identify: CachingAuthenticator, keys: Keys, clock: ManualClock
) -> None:
    await identify(KEYS[0])
    for _ in range(4):
        clock.now_s += 20
        keys.reached.clear()
        assert await identify(KEYS[0]) == ADA
        await keys.reached.wait()
        await asyncio.sleep(0)
    assert len(keys.asked) == 5


async def test_a_key_in_use_is_known_while_look_ups_fail(
    identify: CachingAuthenticator, keys: Keys, clock: ManualClock
) -> None:
    await identify(KEYS[0])
    keys.failure = unavailable("the database does not answer")
    for step_s in (15, 0, 1, 13.9):
        clock.now_s += step_s
        assert await identify(KEYS[0]) == ADA
        await until(lambda: not identify.is_asking)
    # At 15, 16 and 29.9 s: not at each request.
    assert len(keys.asked) == 4
    clock.now_s += 0.2
    with pytest.raises(GatewayError) as raised:
        await identify(KEYS[0])
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE


async def test_a_revocation_counts_from_the_next_look_up(
    identify: CachingAuthenticator, keys: Keys, clock: ManualClock
) -> None:
    await identify(KEYS[0])
    keys.callers.clear()
    clock.now_s += 15
    assert await identify(KEYS[0]) == ADA
    await until(lambda: not identify.is_asking)
    await _refused(identify, KEYS[0])


async def test_the_time_runs_from_the_question_not_from_the_answer(
    identify: CachingAuthenticator, keys: Keys, clock: ManualClock
) -> None:
    keys.open.clear()
    asking = asyncio.create_task(identify(KEYS[0]))
    await keys.reached.wait()
    clock.now_s += 20
    keys.open.set()
    await asking
    clock.now_s += 10
    await identify(KEYS[0])
    assert len(keys.asked) == 2


async def test_an_unknown_key_is_asked_for_every_time(
    identify: CachingAuthenticator, keys: Keys
) -> None:
    caller = keys.callers.pop(KEYS[0])
    await _refused(identify, KEYS[0])
    keys.callers[KEYS[0]] = caller
    assert await identify(KEYS[0]) == caller


async def test_the_least_recently_used_key_is_forgotten_first(
    identify: CachingAuthenticator, keys: Keys
) -> None:
    for number in (0, 1, 2, 0, 3):
        await identify(KEYS[number])
    keys.asked.clear()
    for number in (0, 2, 3):
        await identify(KEYS[number])
    assert keys.asked == []
    await identify(KEYS[1])
    assert keys.asked == [KEYS[1]]


async def test_those_who_ask_at_once_share_one_look_up(
    identify: CachingAuthenticator, keys: Keys
) -> None:
    keys.open.clear()
    asking = [asyncio.create_task(identify(KEYS[0])) for _ in range(10)]
    other = asyncio.create_task(identify(KEYS[1]))
    await keys.reached.wait()
    keys.open.set()
    assert await asyncio.gather(*asking, other) == [ADA] * 11
    assert sorted(keys.asked) == sorted([KEYS[0], KEYS[1]])


async def test_one_who_leaves_takes_the_answer_from_nobody(
    identify: CachingAuthenticator, keys: Keys
) -> None:
    keys.open.clear()
    leaving, staying = (asyncio.create_task(identify(KEYS[0])) for _ in range(2))
    await keys.reached.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    keys.open.set()
    assert await staying == ADA
    assert len(keys.asked) == 1


async def test_a_failure_reaches_all_who_asked_and_is_not_remembered(
    identify: CachingAuthenticator, keys: Keys
) -> None:
    keys.failure = unavailable("the database does not answer")
    answers = await asyncio.gather(*(identify(KEYS[0]) for _ in range(3)), return_exceptions=True)
    assert answers == [keys.failure] * 3
    keys.failure = None
    assert await identify(KEYS[0]) == ADA


async def test_a_failure_that_nobody_waits_for_makes_no_noise(
    identify: CachingAuthenticator, keys: Keys
) -> None:
    noise: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    keys.open.clear()
    leaving = asyncio.create_task(identify(KEYS[0]))
    await keys.reached.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    keys.failure = unavailable("the database does not answer")
    keys.open.set()
    (look_up,) = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait([look_up])
    del look_up, leaving
    keys.failure = None
    assert await identify(KEYS[0]) == ADA
    assert noise == []


async def test_nothing_is_remembered_when_the_time_is_zero(keys: Keys, clock: ManualClock) -> None:
    identify = CachingAuthenticator(keys.identify, ttl_s=0, monotonic=clock.monotonic)
    for _ in range(2):
        await identify(KEYS[0])
    assert len(keys.asked) == 2


@pytest.mark.parametrize(
    ("kind", "subject_id", "is_known"),
    [
        ("key", "key_1", False),
        ("user", "user_ada", False),
        ("team", "team_1", False),
        ("key", "key_2", True),
        ("user", "key_1", True),
        ("admin_key", "key_1", True),
    ],
)
async def test_who_was_changed_is_looked_up_again(
    keys: Keys, identify: CachingAuthenticator, kind: str, subject_id: str, is_known: bool
) -> None:
    keys.callers[KEYS[0]] = Caller("user_ada", "team_1", PLAN_ENTERPRISE, "key_1")
    await identify(KEYS[0])
    identify.forget(kind, subject_id)
    await identify(KEYS[0])
    assert len(keys.asked) == (1 if is_known else 2)


async def test_a_look_up_of_before_a_change_is_not_remembered(
    keys: Keys, identify: CachingAuthenticator
) -> None:
    keys.open.clear()
    asking = asyncio.create_task(identify(KEYS[0]))
    await keys.reached.wait()
    identify.forget("key", "key_1")
    keys.open.set()
    assert await asking == ADA
    await identify(KEYS[0])
    assert keys.asked == [KEYS[0], KEYS[0]]


async def test_nobody_is_known_once_all_are_forgotten(
    keys: Keys, identify: CachingAuthenticator
) -> None:
    await identify(KEYS[0])
    identify.forget_all()
    del keys.callers[KEYS[0]]
    await _refused(identify, KEYS[0])


async def test_it_is_in_use_while_owners_are_known(
    keys: Keys, identify: CachingAuthenticator, clock: ManualClock
) -> None:
    assert not identify.is_in_use
    await identify(KEYS[0])
    clock.now_s += 29
    assert identify.is_in_use
    clock.now_s += 1
    assert not identify.is_in_use
