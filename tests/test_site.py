"""The documents as a website: its pages, and their links."""

import re
import runpy
from pathlib import Path

import pytest

from tests.documents import ROOT, broken_links

SITE = ROOT / "deploy" / "site"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    runpy.run_path(str(SITE / "stage.py"))["main"](folder)
    return folder / "pages"


def test_the_navigation_has_every_page(pages: Path) -> None:
    navigation = (SITE / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"([\w/-]+\.md)$", navigation, re.M)
    assert sorted(listed) == sorted(
        path.relative_to(pages).as_posix() for path in pages.rglob("*.md")
    )


def test_links_of_the_site_lead_to_its_pages(pages: Path) -> None:
    broken = {
        str(path): links
        for path in pages.rglob("*.md")
        if (links := broken_links(path.read_text(), path.parent))
    }
    assert broken == {}
    operating = (pages / "operating.md").read_text()
    assert "](envoy.md)" in operating
    assert "](../contributing.md)" in (pages / "internals/walkthroughs.md").read_text()
