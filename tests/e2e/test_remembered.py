"""The remembered conversation of `remembered.py`, against `gateway up`."""

import re
from pathlib import Path

from tests.e2e.gateway import Gateway
from tests.e2e.scripts import run

FOLDER = Path(__file__).parent


def test_the_third_conversation_recalls_the_first(front: Gateway):
    shown = run(FOLDER / "remembered.py", front.address, front.key)
    normalized = re.sub(r"20\d\d-\d\d-\d\d", "2026-11-20", shown)
    assert normalized == (FOLDER / "remembered.txt").read_text()
