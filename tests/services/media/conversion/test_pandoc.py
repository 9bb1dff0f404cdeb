"""Pandoc runs in a process that can do nothing but convert."""

import subprocess
from pathlib import Path

import pytest

from services.media.conversion import pandoc
from services.media.conversion.confinement import protections
from services.media.conversion.limits import WorkerLimits
from services.media.conversion.pandoc import PandocWorker, pandoc_path

BOUNDS = WorkerLimits(20, 1 << 30, 1)


@pytest.mark.skipif(not protections().landlock, reason="this kernel has no Landlock")
def test_pandoc_reads_no_file_even_if_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    arguments = ["--to=html", "--standalone", f"--include-in-header={secret}"]
    program = pandoc_path()
    assert program is not None
    free = subprocess.run([program, *arguments], input=b"x", capture_output=True, check=True)
    assert b"a secret" in free.stdout
    monkeypatch.setattr(pandoc, "_arguments", lambda options, bounds: arguments)
    worker = PandocWorker(BOUNDS)
    reply, content = worker.convert({"options": {}}, b"x")
    assert worker.end() != 0
    assert "ermission denied" in reply["refused"] and content == b""


def test_a_worker_that_was_killed_starts_nothing() -> None:
    worker = PandocWorker(BOUNDS)
    worker.kill()
    options = {"reader": "markdown", "writer": "html5", "is_standalone": False, "style": ""}
    with pytest.raises(pandoc.WorkerDiedError):
        worker.convert({"options": {**options, "numbers_sections": False}}, b"x")
    assert not worker.is_alive and worker.pid is None


def test_styles_are_found_by_their_names() -> None:
    for name in ("apa", "vancouver", "plos-one"):
        assert str(pandoc.style_path(name)).endswith(".csl")
    for name in ("../apa", "APA", "", "no-such-style", "a" * 300):
        assert pandoc.style_path(name) is None
