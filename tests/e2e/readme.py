"""The code that the README shows, for tests that run it."""

import io
import runpy
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from tests.e2e.processes import ROOT


def blocks(language: str) -> Sequence[str]:
    """Return the blocks of code in a language."""
    parts = (ROOT / "README.md").read_text().split(f"```{language}\n")[1:]
    return [part.partition("```")[0] for part in parts]


def block(language: str, word: str) -> str:
    """Return the only block in a language that has a word."""
    (code,) = (one for one in blocks(language) if word in one)
    return code


def is_part_of(shown: str, script: Path) -> bool:
    """Return whether a script has every line of a block, in that order, however indented."""
    lines = iter(line.strip() for line in script.read_text().splitlines())
    return all(line.strip() in lines for line in shown.splitlines() if line)


def run(script: Path, *arguments: str) -> str:
    """Run a script here, where the SDK that it uses is imported already; return what it prints."""
    with (
        redirect_stdout(io.StringIO()) as shown,
        patch.object(sys, "argv", [str(script), *arguments]),
    ):
        runpy.run_path(str(script), run_name="__main__")
    return shown.getvalue()
