import stat
from pathlib import Path

import pytest

from gateway.accounts.v1 import accounts_pb2
from services.accounts.admin.keys import KeyAdministration
from services.accounts.development import (
    ensure_development_key,
    is_loopback,
    redeem_sign_in_code,
)
from services.accounts.keys import hash_key, make_key
from services.accounts.plans import PLANS
from services.accounts.repository import AccountRepository
from services.common.settings import Server, Settings, Storage
from services.common.storage.sign_in_codes import issue
from tests.grid import each_row
from tests.manual_clock import ManualClock

sqlite_alone = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


@pytest.fixture
def settings(storage: Storage) -> Settings:
    return Settings(storage=storage, server=Server(host="127.0.0.1"))


@pytest.fixture
def file(settings: Settings) -> Path:
    return settings.storage.data_dir / "dev.key"


def _content(file: Path) -> str:
    return file.read_text()


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def _is_there(file: Path) -> bool:
    return file.exists()


def _leave_old_ones(file: Path) -> None:
    file.write_text(make_key(b"\xff" * 32))
    file.chmod(0o644)
    file.with_name("dev.key.new").write_text("left behind")


@sqlite_alone
async def test_a_first_start_makes_a_key_that_only_its_owner_reads(
    repository: AccountRepository, keys: KeyAdministration, settings: Settings, file: Path
) -> None:
    key = await ensure_development_key(repository, settings)
    assert key is not None
    assert _content(file) == f"{key}\n"
    assert _mode(file) == 0o600
    (info,) = await keys.page(100)
    assert (info.user, info.team, info.plan) == ("dev", "", PLANS["enterprise"])
    caller = await repository.find_caller(hash_key(key))
    assert caller is not None
    assert caller.plan == accounts_pb2.PLAN_ENTERPRISE


@sqlite_alone
async def test_a_second_start_gives_the_same_key(
    repository: AccountRepository, keys: KeyAdministration, settings: Settings
) -> None:
    key = await ensure_development_key(repository, settings)
    assert await ensure_development_key(repository, settings) == key
    assert len(await keys.page(100)) == 1


@sqlite_alone
async def test_no_key_is_made_where_somebody_has_one(
    repository: AccountRepository, settings: Settings, file: Path
) -> None:
    await repository.create_key("ada")
    assert await ensure_development_key(repository, settings) is None
    assert not _is_there(file)


@sqlite_alone
async def test_a_revoked_key_is_neither_given_nor_replaced(
    repository: AccountRepository, keys: KeyAdministration, settings: Settings
) -> None:
    key = await ensure_development_key(repository, settings)
    assert key is not None
    await keys.revoke((await keys.find(key)).id)
    assert await ensure_development_key(repository, settings) is None


@sqlite_alone
async def test_a_key_of_a_database_that_is_gone_is_replaced(
    repository: AccountRepository, settings: Settings, file: Path
) -> None:
    _leave_old_ones(file)
    key = await ensure_development_key(repository, settings)
    assert key is not None
    assert _content(file) == f"{key}\n"
    assert _mode(file) == 0o600


@sqlite_alone
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.example"])
async def test_no_key_is_made_where_others_reach_the_gateway(
    repository: AccountRepository,
    keys: KeyAdministration,
    settings: Settings,
    file: Path,
    host: str,
) -> None:
    open_to_all = settings.model_copy(update={"server": Server(host=host)})
    assert await ensure_development_key(repository, open_to_all) is None
    assert not _is_there(file)
    assert await keys.page(100) == []


@pytest.mark.parametrize("storage", ["postgresql"], indirect=True)
async def test_no_key_is_made_in_a_database_server(
    repository: AccountRepository, keys: KeyAdministration, settings: Settings
) -> None:
    assert await ensure_development_key(repository, settings) is None
    assert await keys.page(100) == []


@each_row(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("localhost.example", False),
        ("::ffff:8.8.8.8", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback_addresses_are_recognised(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


@sqlite_alone
async def test_a_code_is_redeemed_for_the_key_once(
    repository: AccountRepository, settings: Settings, clock: ManualClock
) -> None:
    key = await ensure_development_key(repository, settings)
    code = issue(str(settings.storage.data_dir), clock.now())
    assert await redeem_sign_in_code(repository, settings, clock, code) == key
    assert await redeem_sign_in_code(repository, settings, clock, code) is None


@sqlite_alone
async def test_no_code_is_redeemed_for_a_revoked_key(
    repository: AccountRepository, keys: KeyAdministration, settings: Settings, clock: ManualClock
) -> None:
    key = await ensure_development_key(repository, settings)
    assert key is not None
    await keys.revoke((await keys.find(key)).id)
    code = issue(str(settings.storage.data_dir), clock.now())
    assert await redeem_sign_in_code(repository, settings, clock, code) is None


@sqlite_alone
async def test_no_code_is_redeemed_where_others_reach_the_gateway(
    repository: AccountRepository, settings: Settings, clock: ManualClock
) -> None:
    await ensure_development_key(repository, settings)
    code = issue(str(settings.storage.data_dir), clock.now())
    open_to_all = settings.model_copy(update={"server": Server(host="0.0.0.0")})
    assert await redeem_sign_in_code(repository, open_to_all, clock, code) is None
