"""The remembered conversation that the README shows, against `gateway up`."""

import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.gateway import Gateway

FOLDER = Path(__file__).parent


def test_the_third_conversation_recalls_the_first(front: Gateway):
    arguments = [sys.executable, str(FOLDER / "remembered.py"), front.address, front.key]
    done = subprocess.run(arguments, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    told = re.sub(r"20\d\d-\d\d-\d\d", "2026-11-20", done.stdout.decode())
    assert told == (FOLDER / "remembered.txt").read_text()
