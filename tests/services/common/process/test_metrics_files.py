"""Files of metrics: read by the library, and written when the disk allows it."""

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict

from services.common.process.metrics_files import MetricsFile, write_files


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "counter_1.db")


@pytest.fixture
def file(path: str) -> Iterator[MetricsFile]:
    file = MetricsFile(path)
    yield file
    file.close()


def shared(path: str) -> dict[str, tuple[float, float]]:
    """Return the values that another process reads."""
    entries = MmapedDict.read_all_values_from_file(path)  # type: ignore[no-untyped-call]  # no types there
    return {key: (value, timestamp) for key, value, timestamp, _ in entries}


def test_others_read_what_was_written(path: str, file: MetricsFile) -> None:
    written = {}
    for number in range(2_000):
        # Keys of every length, more than once the first page of a file.
        key = f"key {number} é" + "x" * (number % 17)
        assert file.read_value(key) == (0, 0)
        written[key] = (float(number), number / 2)
        file.write_value(key, *written[key])
        if number % 700 == 0:
            write_files()
            assert shared(path) == written
    file.write_value("key 0 é", 7, 0)
    write_files()
    assert shared(path) == {**written, "key 0 é": (7, 0)}


def test_nothing_is_read_before_the_first_values(path: str, file: MetricsFile) -> None:
    file.write_value("key", 1, 0)
    assert not os.path.exists(path)
    write_files()
    assert shared(path) == {"key": (1, 0)}


def test_values_of_the_same_process_id_are_continued(path: str, file: MetricsFile) -> None:
    file.write_value("key", 1, 2)
    write_files()
    again = MetricsFile(path)
    assert again.read_value("key") == (1, 2)
    again.write_value("other", 3, 0)
    write_files()
    assert shared(path) == {"key": (1, 2), "other": (3, 0)}
    again.close()


@pytest.mark.parametrize("room", [0, 3, 20])
def test_a_full_disk_loses_no_value(
    path: str,
    file: MetricsFile,
    room: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "services.common.process.metrics_files")
    file.write_value("key", 1, 0)
    write_files()
    write = os.pwrite

    def write_until_full(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        size = min(room, len(data))
        room -= size
        return write(descriptor, data[:size], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write_until_full)
        for value in range(2, 5):
            file.write_value("another key", value, 0)
            write_files()
            assert shared(path) == {"key": (1, 0)}
    assert file.read_value("another key") == (4, 0)
    write_files()
    assert shared(path) == {"key": (1, 0), "another key": (4, 0)}
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_a_file_that_cannot_be_created_is_kept_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    file = MetricsFile(str(folder / "counter_1.db"))
    file.write_value("key", 1, 0)
    write_files()
    assert file.read_value("key") == (1, 0)
    folder.mkdir()
    write_files()
    assert shared(str(folder / "counter_1.db")) == {"key": (1, 0)}
    file.close()
