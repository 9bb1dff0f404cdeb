"""The journal: lines outlive their process, and each file is one process's at a time."""

import errno
import os
from pathlib import Path

import pytest

from services.inference.usage.journal import FOLDER, Journal

MANY = 1 << 20


def content(journal: Journal) -> list[bytes]:
    """Return the lines of the oldest closed file."""
    file = journal.oldest()
    assert file is not None
    return list(file.lines())


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", MANY)
    lines = [b'{"n":%d}%s' % (n, b" " * 3000) for n in range(300)]
    for line in lines:
        assert journal.append(line + b"\n")
    assert journal.oldest() is None
    journal.rotate()
    assert content(journal) == lines
    journal.close()


def test_files_are_closed_in_order_and_deleted(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", MANY)
    for name in (b"a", b"b"):
        journal.append(name + b"\n")
        journal.rotate()
    journal.rotate()  # nothing was written
    assert len(os.listdir(tmp_path / FOLDER)) == 2
    assert content(journal) == [b"a"]
    journal.remove_oldest()
    assert content(journal) == [b"b"]
    journal.remove_oldest()
    assert journal.oldest() is None
    assert os.listdir(tmp_path / FOLDER) == []


def test_a_journal_is_bounded(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", 10)
    assert journal.append(b"12345\n")
    journal.rotate()
    assert not journal.append(b"12345\n")
    assert journal.append(b"123\n")
    journal.rotate()
    journal.remove_oldest()
    assert journal.append(b"12345\n")
    journal.close()


def test_an_unfinished_line_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", MANY)
    journal.append(b"whole\n")
    journal.append(b"cut off")
    journal.rotate()
    assert content(journal) == [b"whole"]
    journal.close()


def test_files_of_a_process_that_lives_are_left_alone(tmp_path: Path) -> None:
    one, other = Journal(tmp_path, "one", MANY), Journal(tmp_path, "other", MANY)
    one.append(b"a\n")
    one.rotate()
    one.append(b"b\n")
    assert list(other.abandoned()) == []
    one.close()
    taken = []
    for file in other.abandoned():
        taken += file.lines()
        file.remove()
    assert taken == [b"a", b"b"]
    assert os.listdir(tmp_path / FOLDER) == []


def test_a_released_file_is_found_again(tmp_path: Path) -> None:
    one, other = Journal(tmp_path, "one", MANY), Journal(tmp_path, "other", MANY)
    one.append(b"a\n")
    one.close()
    [file] = other.abandoned()
    assert list(Journal(tmp_path, "third", MANY).abandoned()) == []
    file.release()
    [again] = other.abandoned()
    assert again.name == file.name
    again.release()


def test_files_are_for_the_gateways_user_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", MANY)
    journal.append(b"a\n")
    [path] = (tmp_path / FOLDER).iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    journal.close()


def test_a_full_disk_leaves_no_part_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, "one", MANY)
    journal.append(b"first\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:3]))
    with pytest.raises(OSError) as caught:
        journal.append(b"second\n")
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    journal.append(b"third\n")
    journal.rotate()
    assert content(journal) == [b"first", b"third"]
    journal.close()
