import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.common.storage.sign_in_codes import FOLDER, LIFETIME_S, issue, redeem

NOW = 1_700_000_000.0


def test_a_code_is_redeemed_once(tmp_path: Path) -> None:
    code = issue(str(tmp_path), NOW)
    assert redeem(str(tmp_path), code, NOW)
    assert not redeem(str(tmp_path), code, NOW)


def test_of_many_at_once_one_redeems_a_code(tmp_path: Path) -> None:
    code = issue(str(tmp_path), NOW)
    with ThreadPoolExecutor(8) as threads:
        redeemed = [*threads.map(lambda _: redeem(str(tmp_path), code, NOW), range(32))]
    assert redeemed.count(True) == 1


def test_a_code_expires(tmp_path: Path) -> None:
    early, late = issue(str(tmp_path), NOW), issue(str(tmp_path), NOW)
    assert redeem(str(tmp_path), early, NOW + LIFETIME_S - 1)
    assert not redeem(str(tmp_path), late, NOW + LIFETIME_S)


@pytest.mark.parametrize("code", ["", "A" * 43, "../" * 14 + "A", "A" * 42 + "\n", "ä" * 43])
def test_what_is_no_code_redeems_nothing(tmp_path: Path, code: str) -> None:
    good = issue(str(tmp_path), NOW)
    assert not redeem(str(tmp_path), code, NOW)
    assert not redeem(str(tmp_path / "elsewhere"), good, NOW)
    assert redeem(str(tmp_path), good, NOW)


def test_the_folder_does_not_hold_the_code(tmp_path: Path) -> None:
    code = issue(str(tmp_path), NOW)
    (file,) = (tmp_path / FOLDER).iterdir()
    assert code not in str(file)
    assert file.read_bytes() == b""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_expired_codes_are_removed_in_time(tmp_path: Path) -> None:
    issue(str(tmp_path), NOW)
    issue(str(tmp_path), NOW + LIFETIME_S)
    issue(str(tmp_path), NOW + 2 * LIFETIME_S)
    assert len([*(tmp_path / FOLDER).iterdir()]) == 2
