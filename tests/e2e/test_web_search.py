"""The web search of `docs/web-search.md`, against `gateway up` and an imitation of SearXNG."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, gateway
from tests.e2e.scripts import run
from tests.e2e.searxng import SearXNG, searxng
from tests.newcomer.blocks import blocks
from tests.newcomer.session import Session

SCRIPT = Path(__file__).parent / "web_search.py"
SHOWN = blocks("docs/web-search.md")
TOLD = [
    "[('https://typst.app/docs/', 'Typst Documentation')]",
    "Typst sets documents, and is written like text.",
    "web_search_requests=1",
]


@pytest.fixture(scope="module")
def engine() -> Iterator[SearXNG]:
    with searxng() as running:
        yield running


@pytest.fixture(scope="module")
def searching(
    tmp_path_factory: pytest.TempPathFactory, upstream_port: int, engine: SearXNG
) -> Iterator[Gateway]:
    """A gateway with the settings of the document, but for the port."""
    (settings,) = (block.text for block in SHOWN if block.language == "toml")
    assert "http://127.0.0.1:8888" in settings
    settings = settings.replace("http://127.0.0.1:8888", engine.url)
    folder = tmp_path_factory.mktemp("searching")
    with gateway(folder, upstream_port, settings=f"\n{settings}") as started:
        yield started


def show(front: Gateway, *what: str) -> str:
    return run(SCRIPT, front.address, front.key, *what)


def test_the_document_shows_what_works(searching: Gateway, tmp_path: Path) -> None:
    session = Session(searching, tmp_path)
    (shown,) = (session.run(block) for block in SHOWN if block.is_run)
    session.close()
    assert shown == "['text', 'server_tool_use', 'web_search_tool_result', 'text']\n"


def test_a_model_searches_the_web(searching: Gateway, engine: SearXNG) -> None:
    before = len(engine.queries)
    shown = show(searching, "whole")
    kinds, *_ = shown.splitlines()
    assert kinds == "['text', 'server_tool_use', 'web_search_tool_result', 'text']"
    assert all(words in shown for words in TOLD), shown
    assert ["Typst" in query for query in engine.queries[before:]] == [True]


def test_a_search_is_streamed_as_it_is_made(searching: Gateway, engine: SearXNG) -> None:
    before = len(engine.queries)
    shown = show(searching, "streamed")
    kinds = shown.splitlines()[:4]
    assert kinds == ["text", "server_tool_use", "web_search_tool_result", "text"]
    assert all(words in shown for words in TOLD), shown
    assert len(engine.queries) == before + 1


@pytest.mark.parametrize("host", ["{}", "[::ffff:{}]"])
def test_a_page_of_this_machine_is_not_fetched(searching: Gateway, host: str) -> None:
    # Of a port that pages of the web may have, on an address of this machine that is free.
    address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
    with socket.create_server((address, 8080)) as listener:
        listener.settimeout(0)
        shown = show(searching, "fetch", f"http://{host.format(address)}:8080/secret")
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "web_fetch_tool_result_error url_not_accessible" in shown
