"""Copy the documents for the website: `python deploy/site/stage.py FOLDER`.

Documents outside of `docs/` become pages too; links to other files of the repository become text.
"""

import re
import shutil
import sys
from os.path import relpath
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The pages of documents outside of `docs/`.
OUTSIDE = {ROOT / "CONTRIBUTING.md": "contributing.md", ROOT / "envoy/README.md": "envoy.md"}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?://|#)([^)#\s]+)([^)\s]*)\)")


def main(folder: Path) -> None:
    """Write the pages and the settings of the generator into a folder, which is emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    shutil.copytree(DOCS, pages)
    shutil.copy(Path(__file__).with_name("mkdocs.yml"), folder)
    documents = {path: path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))}
    for document, page in (documents | OUTSIDE).items():
        (pages / page).write_text(page_of(document, page))


def page_of(document: Path, page: str) -> str:
    """Return the text of a document as a page of the site, with the links that hold there."""

    def link(match: re.Match[str]) -> str:
        text, name, anchor = match.groups()
        target = (document.parent / name).resolve()
        if target in OUTSIDE:
            leads_to = OUTSIDE[target]
        elif target.is_relative_to(DOCS):
            leads_to = target.relative_to(DOCS).as_posix()
        else:
            return text
        return f"[{text}]({relpath(leads_to, Path(page).parent)}{anchor})"

    return _LINK.sub(link, document.read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
