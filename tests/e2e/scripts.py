"""Runs the example scripts of this folder."""

import io
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch


def run(script: Path, *arguments: str) -> str:
    """Run a script here, where the SDK that it uses is imported already; return what it prints."""
    with (
        redirect_stdout(io.StringIO()) as shown,
        patch.object(sys, "argv", [str(script), *arguments]),
    ):
        runpy.run_path(str(script), run_name="__main__")
    return shown.getvalue()
