import time
from pathlib import Path

import pytest

from services.accounts.keys import hash_key
from services.accounts.repository import AccountRepository
from services.common.key_format import is_key
from services.common.settings import Admin, Settings, Storage
from services.common.storage.database import open_engine
from services.common.storage.sign_in_codes import FOLDER, redeem
from services.worker.prepare import NotPreparedError, prepare


async def test_preparing_makes_tables_and_a_key_that_is_good(tmp_path: Path) -> None:
    settings = Settings(storage=Storage(data_dir=tmp_path / "var"))
    key, code = (await prepare(settings)).split(" ")
    assert is_key(key)
    assert redeem(str(settings.storage.data_dir), code, time.time())
    engine = open_engine(settings.storage)
    assert await AccountRepository(engine).find_caller(hash_key(key)) is not None
    await engine.dispose()
    assert (await prepare(settings)).split(" ")[0] == key


async def test_a_code_that_cannot_be_kept_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / FOLDER).touch()
    key, code = (await prepare(Settings(storage=Storage(data_dir=tmp_path)))).split(" ")
    assert is_key(key)
    assert code == ""


async def test_a_setting_without_an_admin_key_behind_it_is_named(tmp_path: Path) -> None:
    settings = Settings(
        storage=Storage(data_dir=tmp_path), admin=Admin(key_file=str(tmp_path / "none"))
    )
    with pytest.raises(NotPreparedError, match=r"admin\.key_file: .*No such file"):
        await prepare(settings)


@pytest.mark.parametrize(
    ("url", "message"), [("", "needs storage.database_url"), ("postgresql://a/b", "of a replica")]
)
async def test_an_unusable_replica_is_named(tmp_path: Path, url: str, message: str) -> None:
    storage = Storage(data_dir=tmp_path, database_url=url, reports_url="mysql://root:hunter2@a/b")
    with pytest.raises(NotPreparedError, match=rf"storage\.reports_url: .*{message}") as raised:
        await prepare(Settings(storage=storage))
    assert "hunter2" not in str(raised.value)


async def test_an_error_about_the_database_hides_its_password() -> None:
    url = "postgresql://gateway:hunter2@127.0.0.1:1/x"
    with pytest.raises(NotPreparedError, match="database does not answer") as raised:
        await prepare(Settings(storage=Storage(database_url=url)))
    assert "hunter2" not in str(raised.value)
