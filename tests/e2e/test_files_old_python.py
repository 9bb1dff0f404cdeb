"""The files calls of an older generation of the official Python SDKs."""

import json
import subprocess
from typing import Any

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.processes import ROOT

pytestmark = pytest.mark.thorough(one_in=3)

_PYTHON = ROOT / ".venv-sdk-old" / "bin" / "python"


@pytest.fixture(scope="module")
def results(front: Gateway) -> dict[str, Any]:
    if not _PYTHON.exists():
        pytest.fail("the older SDKs are not installed; run: make sdks")
    done = subprocess.run(
        [_PYTHON, ROOT / "tests/clients/sdk-old/files.py", front.address, front.key],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout)
    return results


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_every_call_gives_what_was_made(results: dict[str, Any], sdk: str) -> None:
    assert "value" in results[sdk], results[sdk]
    got = results[sdk]["value"]
    assert got["made"]["filename"] == "grüße.bin"
    assert got["retrieved"] == got["made"]
    assert got["same"] is True
    assert got["deleted"]["id"] == got["made"]["id"]


def test_parts_become_a_file(results: dict[str, Any]) -> None:
    assert "value" in results["openai_uploads"], results["openai_uploads"]
    got = results["openai_uploads"]["value"]
    assert (got["uploaded"]["status"], got["same"]) == ("completed", True)


def test_an_expiry_in_brackets_is_kept(results: dict[str, Any]) -> None:
    made = results["openai"]["value"]["made"]
    assert made["expires_at"] == made["created_at"] + 3600


@pytest.mark.parametrize(("sdk", "turned"), [("openai", False), ("anthropic", True)])
def test_lists_go_on_over_pages(results: dict[str, Any], sdk: str, turned: bool) -> None:
    assert "value" in results[f"{sdk}_pages"], results[f"{sdk}_pages"]
    pages = results[f"{sdk}_pages"]["value"]
    assert pages["first"] == 2
    assert pages["listed"] == (pages["made"][::-1] if turned else pages["made"])


def test_a_list_goes_back_over_pages(results: dict[str, Any]) -> None:
    pages = results["anthropic_pages"]["value"]
    assert sorted(pages["before"]) == sorted(pages["made"][1:])


@pytest.mark.parametrize(
    ("step", "status"),
    [("openai_too_large", 413), ("anthropic_too_large", 413), ("unknown", 404)],
)
def test_an_error_has_its_status(results: dict[str, Any], step: str, status: int) -> None:
    assert results[step].get("status") == status, results[step]
