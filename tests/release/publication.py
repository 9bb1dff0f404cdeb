"""What a package that strangers install must state beyond what any build states."""

import zipfile
from pathlib import Path

from deploy.package.release import CHANGELOG, release_date
from services.common.version import VERSION
from tests.documents import ROOT


def missing(wheel: Path) -> list[str]:
    """Return what is missing before a wheel can be published, each with its remedy."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    remedies = []
    if "\nProject-URL: Repository, https://" not in metadata:
        remedies.append(
            "the address of its repository: make release-check REPOSITORY=https://…; "
            ".github/workflows/release.yml names its own"
        )
    if not release_date((ROOT / CHANGELOG).read_text("utf-8"), VERSION):
        remedies.append(f"the date of {VERSION} in {CHANGELOG}: make release VERSION={VERSION}")
    return remedies
