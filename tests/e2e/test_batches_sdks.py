"""Batches of the official SDKs, new and old, at a gateway and behind a real Envoy.

`tests/facade/test_batches.py` has those of the current Python SDKs.
"""

import json
import subprocess
from typing import Any

from tests.e2e.gateway import Gateway
from tests.e2e.node import run_script, value
from tests.e2e.processes import ROOT

_PYTHON = ROOT / ".venv-sdk-old" / "bin" / "python"
_SCRIPT = ROOT / "tests/clients/sdk-old/batches.py"
MODEL = "sandbox/echo"
OPENAI = {"status": "completed", "ids": ["a", "b"], "listed": True, "end": "completed"}
ANTHROPIC = {
    "status": "message_batch_deleted",
    "ids": ["a", "b"],
    "listed": True,
    "end": "ended",
}


def test_node_runs_batches(front: Gateway) -> None:
    results = run_script("batches.mjs", front, MODEL)
    for name, expected in (("openai", OPENAI), ("anthropic", ANTHROPIC)):
        assert value(results, name) == expected
        assert value(results, f"{name}Old") == expected


def test_old_python_runs_batches(front: Gateway) -> None:
    command = [_PYTHON, _SCRIPT, front.address, front.key, MODEL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout)
    assert results == {"openaiOld": OPENAI, "anthropicOld": ANTHROPIC}
