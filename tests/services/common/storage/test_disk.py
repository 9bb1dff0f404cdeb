"""The reserve of the disk."""

import logging
from pathlib import Path

import pytest

from services.common.errors import GatewayError
from services.common.storage.disk import DiskReserve


def test_writes_below_the_reserve_are_refused_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    free, states = [10], list[float]()
    reserve = DiskReserve(Path("data"), 10, show=states.append, read=lambda folder: free[0])
    reserve.check()
    free[0] = 9
    for _ in range(3):
        reserve.look()
        with pytest.raises(GatewayError) as raised:
            reserve.check()
        assert (raised.value.http_status, raised.value.code) == (503, "storage_full")
        assert raised.value.retry_after_s == 30
    free[0] = 10
    reserve.look()
    reserve.check()
    assert states == [1, 0]
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_no_reserve_refuses_nothing() -> None:
    reserve = DiskReserve(Path("data"), 0, read=lambda folder: 0)
    reserve.look()
    reserve.check()


def test_a_folder_that_cannot_be_asked_changes_nothing(tmp_path: Path) -> None:
    reserve = DiskReserve(tmp_path / "missing", 1)
    reserve.look()
    reserve.check()


def test_the_free_bytes_are_those_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(GatewayError):
        DiskReserve(tmp_path, 1 << 62).check()
    DiskReserve(tmp_path, 1).check()
