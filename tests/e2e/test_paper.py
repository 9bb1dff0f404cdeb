"""The editing session of `paper.py`, against `gateway up`."""

from pathlib import Path

from tests.e2e.gateway import Gateway
from tests.e2e.scripts import run

FOLDER = Path(__file__).parent


def test_a_paper_is_edited_and_exported_as_markdown(front: Gateway):
    shown = run(FOLDER / "paper.py", front.address, front.key)
    assert shown == (FOLDER / "paper.md").read_text()
