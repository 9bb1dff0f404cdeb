"""The editing session that the README shows, against `gateway up`."""

import subprocess
import sys
from pathlib import Path

from tests.e2e.gateway import Gateway

FOLDER = Path(__file__).parent


def test_a_paper_is_edited_and_exported_as_markdown(front: Gateway):
    arguments = [sys.executable, str(FOLDER / "paper.py"), front.address, front.key]
    done = subprocess.run(arguments, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == (FOLDER / "paper.md").read_text()
