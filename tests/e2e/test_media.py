"""The media that the README shows, against `gateway up`."""

import subprocess
import sys
from pathlib import Path

from tests.e2e.gateway import Gateway

FOLDER = Path(__file__).parent


def show(front: Gateway, what: str) -> str:
    arguments = [sys.executable, str(FOLDER / "media.py"), front.address, front.key, what]
    done = subprocess.run(arguments, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_an_image_is_described_for_a_model_that_reads_text_alone(front: Gateway):
    told = show(front, "image")
    assert "[Image 1: described by the model sandbox/vision." in told
    assert "PNG of 7x5 pixels" in told
    assert "messages[0].content[1]:image-described\n" in told
