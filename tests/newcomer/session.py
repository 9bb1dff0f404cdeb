"""The blocks that a newcomer pastes: one shell and one Python session, against one gateway."""

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from anthropic import Anthropic
from openai import OpenAI

from tests.documents import ROOT
from tests.e2e.gateway import Gateway
from tests.e2e.node import NODE
from tests.forked import write_command
from tests.newcomer.blocks import Block

ADDRESS, KEY = "http://127.0.0.1:8080", "gw-…"
# The gateway that the tests started stands for the one that this line starts.
_START = re.compile(r"^(?:make run|gateway up)\b.*$", re.M)
_CLIENTS = ROOT / "tests" / "clients"
# The variables of a shell outlive its blocks; a command that fails ends its block.
_SHELL = """set -aeuo pipefail
[ -e {state} ] && . {state}
{text}
export -p > {state}
"""


# The comment under a line that prints is what it prints.
_SHOWN = re.compile(r"^print\(.*\n# (.+)$", re.M)


class BlockError(Exception):
    """Error raised when a block fails, or prints something else than it says.

    The message has the block's place and its output.
    """


class Session:
    """Runs blocks in their order.

    Args:
        front: the gateway. Its address and key take the place of those in the documents.
        folder: an empty folder, in which the blocks run.
        environ: further variables of the shell.
    """

    def __init__(self, front: Gateway, folder: Path, environ: dict[str, str] | None = None) -> None:
        self._front = front
        self._folder = folder
        self._state = folder / ".state"
        self._names: dict[str, Any] = {"__name__": "__main__"}
        # A newcomer sees the error in an answer; here curl reports it.
        (folder / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
        commands = folder / ".commands"
        commands.mkdir()
        self._inherited = write_command(commands)
        self._environ = {
            "HOME": str(folder),
            "CURL_HOME": str(folder),
            "PATH": os.pathsep.join(
                [str(commands), str(ROOT / ".venv" / "bin"), os.environ["PATH"]]
            ),
            "GATEWAY_CONFIG": str(folder / "gateway.toml"),
            "GATEWAY_DATA_DIR": str(front.data_dir),
            **(environ or {}),
        }

    def run(self, block: Block) -> str:
        """Run a block, and return what it prints.

        Raises:
            BlockError: the block failed.
        """
        text = block.text.replace(ADDRESS, self._front.address).replace(KEY, self._front.key)
        match block.language:
            case "sh":
                text = _START.sub(":", text)
                script = _SHELL.format(text=text, state=self._state)
                return self._execute(block, ["bash", "-c", script], self._folder)
            case "js":
                command = [str(NODE), "--input-type=module", "--eval", text]
                return self._execute(block, command, _CLIENTS)
            case _:
                return self._python(block, text)

    def close(self) -> None:
        """Close the clients that the blocks made."""
        for value in self._names.values():
            if isinstance(value, Anthropic | OpenAI):
                value.close()

    def _execute(self, block: Block, command: Sequence[str], folder: Path) -> str:
        done = subprocess.run(
            command,
            cwd=folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            pass_fds=[self._inherited],
            check=False,
        )
        if done.returncode:
            raise BlockError(f"{block.place}: exit status {done.returncode}\n{done.stdout}")
        return done.stdout

    def _python(self, block: Block, text: str) -> str:
        shown = StringIO()
        with (
            chdir(self._folder),
            redirect_stdout(shown),
            patch.dict(os.environ, {"GATEWAY_KEY": self._front.key}),
        ):
            try:
                exec(compile(text, block.place, "exec"), self._names)
            except Exception as error:
                raise BlockError(f"{block.place}: {error!r}\n{shown.getvalue()}") from error
        for line in _SHOWN.findall(block.text):
            if line not in shown.getvalue().splitlines():
                raise BlockError(f"{block.place}: it does not print {line}\n{shown.getvalue()}")
        return shown.getvalue()
