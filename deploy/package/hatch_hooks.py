"""What the build of the package adds to `pyproject.toml`: its addresses, its text, and a check.

hatchling loads this file to build the sdist and the wheel. `REPOSITORY` is the address of the
repository that publishes the package; a package that is built without it names no address.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_CONSOLE = "facade/console/dist/index.html"
# Links and images of Markdown whose address is a path of the repository.
_RELATIVE = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def urls(repository: str) -> dict[str, str]:
    """Return the addresses of the package, by their names on its page."""
    if not repository:
        return {}
    return {
        "Homepage": repository,
        "Documentation": f"{repository}/tree/main/docs",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Repository": repository,
    }


def absolute(text: str, repository: str, version: str) -> str:
    """Return a Markdown text whose links and images lead to the files of a version.

    Without a repository, the labels of links stay as text, and images are left out.
    """

    def address(match: re.Match[str]) -> str:
        image, label, path = match.groups()
        # The label of a link may be an image.
        label = _RELATIVE.sub(address, label)
        if not repository:
            return "" if image else label
        kind = "raw" if image else "blob"
        return f"{image}[{label}]({repository}/{kind}/v{version}/{path})"

    return _RELATIVE.sub(address, text)


class Metadata(MetadataHookInterface):
    """Makes the addresses and the description of the package, which is the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the addresses and the description."""
        repository = os.environ.get("REPOSITORY", "").rstrip("/")
        metadata["urls"] = urls(repository)
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = absolute(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class BuiltConsole(BuildHookInterface[Any]):
    """Refuses to build a package without the pages of the console."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Check that the pages are there; an installation from this folder builds them later."""
        if version != "editable" and not Path(self.root, _CONSOLE).is_file():
            raise FileNotFoundError(
                f"{_CONSOLE}: the console has not been built, and a package without it would serve "
                "no pages. Run `make console` first; `make dist` builds both."
            )
