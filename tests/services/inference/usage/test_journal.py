"""The journal: lines outlive their process, and each file is one process's at a time.

Each test runs with files that are mapped into memory, and as on a system that cannot do so.
"""

import errno
import os
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from services.common.storage import file_systems
from services.inference.usage.journal import FOLDER, Journal

MANY = 1 << 20


KILLED = """
import os, signal, sys
from pathlib import Path
from services.inference.usage.journal import Journal
if sys.argv[2] == "called":
    del os.posix_fallocate
journal = Journal(Path(sys.argv[1]), "killed", 1 << 20)
for number in range(2_000):
    journal.append(b'{"n":%d}' % number + b" " * 90 + b"\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=["mapped", "called"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return how lines are written."""
    if request.param == "called":
        monkeypatch.delattr(os, "posix_fallocate")
    return str(request.param)


def content(journal: Journal) -> list[bytes]:
    """Return the lines of the oldest closed file."""
    file = journal.oldest()
    assert file is not None
    return list(chain.from_iterable(file.lines()))


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
    taken: list[bytes] = []
    for file in other.abandoned():
        taken += chain.from_iterable(file.lines())
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


@pytest.mark.parametrize("end", [b"cut off", b"cut off" + bytes(1 << 17), bytes(10)])
def test_what_a_killed_process_left_is_read(tmp_path: Path, end: bytes) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "killed-1.lines").write_bytes(b"first\nsecond\n" + end)
    [file] = Journal(tmp_path, "one", MANY).abandoned()
    assert list(chain.from_iterable(file.lines())) == [b"first", b"second"]
    file.remove()


def test_lines_outlive_a_killed_process(tmp_path: Path, way: str) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), way]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    [file] = Journal(tmp_path, "one", MANY).abandoned()
    lines = [line.rstrip() for line in chain.from_iterable(file.lines())]
    assert lines == [b'{"n":%d}' % number for number in range(2_000)]
    file.remove()


def test_a_line_is_in_the_file_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", MANY)
    journal.append(b"a\n")
    [path] = (tmp_path / FOLDER).iterdir()
    assert path.read_bytes().rstrip(b"\0") == b"a\n"
    journal.rotate()
    assert path.read_bytes() == b"a\n"
    journal.close()


def test_a_full_disk_leaves_no_part_of_a_line(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, "one", 2 * MANY)
    journal.append(b"first\n")
    with monkeypatch.context() as patch:
        if way == "called":
            write = os.pwrite
            patch.setattr(os, "pwrite", lambda file, line, at: write(file, line[:3], at))
        else:
            patch.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(OSError) as caught:
            journal.append(b"x" * MANY + b"\n")
    assert caught.value.errno == errno.ENOSPC
    journal.append(b"third\n")
    journal.rotate()
    assert content(journal) == [b"first", b"third"]
    journal.close()


def test_a_disk_that_was_full_is_tried_again(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, "one", MANY)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse, raising=False)
        patch.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError):
            journal.append(b"first\n")
    journal.append(b"second\n")
    journal.rotate()
    assert content(journal) == [b"second"]
    journal.close()


def test_files_are_mapped_only_where_blocks_are_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_systems, "_IN_PLACE", frozenset())
    journal = Journal(tmp_path, "one", MANY)
    journal.append(b"first\n")
    [path] = (tmp_path / FOLDER).iterdir()
    assert path.read_bytes() == b"first\n"  # no blocks in advance
    assert path.name not in Path("/proc/self/maps").read_text()
    journal.close()


def refuse(*_arguments: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
