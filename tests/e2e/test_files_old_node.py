"""The files calls of an older generation of the official Node SDKs."""

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.node import Results, run_script, value


@pytest.fixture(scope="module")
def results(front: Gateway) -> Results:
    return run_script("files_old.mjs", front, "sandbox/echo")


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_every_call_gives_what_was_made(results: Results, sdk: str) -> None:
    got = value(results, sdk)
    assert got["created"]["filename"] == {"openai": "grüße.txt", "anthropic": "a b.txt"}[sdk]
    assert got["retrieved"] == got["created"]
    assert got["created"]["id"] in got["listed"]
    assert got["content"] == "hello"
    assert got["deleted"]["id"] == got["created"]["id"]
