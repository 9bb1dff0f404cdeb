"""Files and objects of JSON lines: whole lines, and no more bytes than allowed."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from facade.dialects.admin.request_log import REQUEST_WITH_BODIES, render_entry
from services.common.storage.byte_store import Folder
from services.common.storage.disk import DiskReserve
from services.request_log.exporters.base import ExportError
from services.request_log.exporters.bucket import BucketExporter
from services.request_log.exporters.rotated_file import FileExporter
from tests.services.request_log.exporters.exported_requests import TRACE, exported

LINE = 2_000


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def exporter(path: Path, max_bytes: int = 3 * LINE, max_files: int = 3) -> FileExporter:
    return FileExporter(path, max_bytes, max_files, render_entry)


async def test_a_line_is_the_entry_of_the_administration_api(tmp_path: Path) -> None:
    path = tmp_path / "log" / "requests.jsonl"
    await exporter(path).send([exported(1, "Hello\n"), exported(2)])
    first, second = lines(path)
    assert set(first) == {*REQUEST_WITH_BODIES["required"], "trace_id"}
    assert (first["request_id"], first["trace_id"]) == ("req_1", TRACE.trace_id)
    assert first["request_body"] == {"content": "Hello\n", "truncated": False}
    assert second["request_body"] is None
    assert path.stat().st_mode & 0o777 == 0o600


async def test_full_files_are_renamed_and_the_oldest_removed(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    for number in range(12):
        await exporter(path).send([exported(number, "a" * (LINE // 2))])
    names = ["requests.jsonl", "requests.jsonl.1", "requests.jsonl.2"]
    assert sorted(os.listdir(tmp_path)) == names
    assert all((tmp_path / name).stat().st_size <= 3 * LINE for name in names)
    numbers = [line["request_id"] for name in reversed(names) for line in lines(tmp_path / name)]
    assert numbers == [f"req_{number}" for number in range(12 - len(numbers), 12)]
    await exporter(path, max_files=1).send([exported(12, "a" * 2 * LINE)])
    assert [line["request_id"] for line in lines(path)] == ["req_12"]


def test_processes_share_a_file_without_mixing_lines(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"

    def append(number: int) -> None:
        exporter(path, max_files=100)._append([exported(number, "a" * (LINE // 3))])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(append, range(100)))
    numbers = [line["request_id"] for file in tmp_path.iterdir() for line in lines(file)]
    assert sorted(numbers) == sorted(f"req_{number}" for number in range(100))


async def test_a_full_disk_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "requests.jsonl"
    await exporter(path).send([exported(1)])
    write = os.write

    def write_some(descriptor: int, content: bytes) -> int:
        if len(content) < 200:
            raise OSError(28, "No space left on device")
        return write(descriptor, content[:-100])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_some)
        with pytest.raises(ExportError, match="No space left"):
            await exporter(path).send([exported(2)])
    await exporter(path).send([exported(2)])
    assert [line["request_id"] for line in lines(path)] == ["req_1", "req_2"]


async def test_objects_of_a_bucket_are_bounded(tmp_path: Path) -> None:
    store = Folder(tmp_path / "bucket", DiskReserve(tmp_path, 0))
    kept = BucketExporter(store, 5 * LINE, render_entry)
    for number in range(101):
        await kept.send([exported(100 + number, "a" * (LINE // 2))])
    entries = {entry.key: entry.size for entry in await store.entries()}
    assert max(entries) == "2023-11-14/log_200.jsonl"
    assert sum(entries.values()) <= 5 * LINE
    assert lines(tmp_path / "bucket" / max(entries))[0]["id"] == "log_200"
    # A batch that is sent again replaces its object.
    await kept.send([exported(200)])
    assert len(await store.entries()) == len(entries)
