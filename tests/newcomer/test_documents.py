"""Every block of the documents: pasted in their order, as they stand, against a real gateway."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents import DOCUMENTS
from tests.e2e.gateway import Gateway, sandbox_upstream
from tests.grid import each_row
from tests.newcomer.blocks import DATA, RUN, Block, blocks
from tests.newcomer.gateways import gateway_with, settings_of
from tests.newcomer.session import BlockError, Session

# Its gateway has a search engine: `tests/e2e/test_web_search.py` runs it.
ELSEWHERE = {"docs/web-search.md"}
PAGES = [
    document
    for document in DOCUMENTS
    if document not in ELSEWHERE and any(block.is_run for block in blocks(document))
]
OF_PROVIDERS = [document for document in PAGES if document.startswith("docs/providers/")]
OTHERS = [document for document in PAGES if document not in OF_PROVIDERS]


@pytest.fixture(scope="module")
def upstream_port() -> Iterator[int]:
    with sandbox_upstream() as port:
        yield port


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_with(tmp_path_factory.mktemp("gateway"), "") as started:
        yield started


def paste(document: str, front: Gateway, folder: Path) -> None:
    """Run the blocks of a document in their order."""
    settings = front.data_dir.parent / "gateway.toml"
    session = Session(front, folder, {"GATEWAY_CONFIG": str(settings)})
    try:
        for block in blocks(document):
            if block.is_run:
                session.run(block)
    finally:
        session.close()


@pytest.mark.parametrize("document", OTHERS)
def test_a_document_runs_as_it_stands(document: str, front: Gateway, tmp_path: Path) -> None:
    paste(document, front, tmp_path)


@pytest.mark.parametrize("document", OF_PROVIDERS)
def test_a_provider_answers_as_its_page_says(
    document: str, upstream_port: int, tmp_path: Path
) -> None:
    settings = settings_of(blocks(document), upstream_port)
    (tmp_path / "session").mkdir()
    with gateway_with(tmp_path, settings) as started:
        paste(document, started, tmp_path / "session")


@each_row("document", DOCUMENTS)
def test_every_block_is_run_or_says_why_not(document: str) -> None:
    unknown = [block.place for block in blocks(document) if block.language not in RUN | DATA]
    assert unknown == [], "name a language: ```sh, ```python, ```js, …, or ```text"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "false\n"),
        ("sh", "echo $NOT_SET\n"),
        ("sh", "curl http://127.0.0.1:8080/nowhere\n"),
        ("sh", "false | true\n"),
        ("python", "raise ValueError\n"),
        ("python", "print(1)\n# 2\n"),
        ("js", 'throw new Error("no");\n'),
    ],
)
def test_a_block_that_fails_is_noticed(
    language: str, text: str, front: Gateway, tmp_path: Path
) -> None:
    with pytest.raises(BlockError, match=r"page\.md:7"):
        Session(front, tmp_path).run(Block("page.md:7", language, text))


def test_variables_and_names_outlive_their_block(front: Gateway, tmp_path: Path) -> None:
    session = Session(front, tmp_path)
    session.run(Block("1", "sh", "GREETING=Hello\n"))
    session.run(Block("2", "python", "number = 7\n"))
    assert session.run(Block("3", "sh", 'echo "$GREETING"\n')) == "Hello\n"
    assert session.run(Block("4", "python", "print(number)\n")) == "7\n"
