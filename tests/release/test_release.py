"""What a release writes into the sources and into the package."""

import shutil
import zipfile
from pathlib import Path

import pytest

from deploy.package import hatch_hooks
from deploy.package.release import (
    CHANGELOG,
    VERSIONS,
    ReleaseError,
    dated,
    release,
    release_date,
)
from services.common.version import VERSION
from tests.documents import ROOT
from tests.release import publication

UNRELEASED = "# Changelog\n\n## 1.2.0 (unreleased)\n\n- New\n\n## 1.1.0 (2026-01-02)\n\n- Old\n"
REPOSITORY = "https://forge.example/us/gateway"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with the files of the repository that state the version."""
    for name in VERSIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / CHANGELOG).write_text(UNRELEASED)
    return tmp_path


def contents(root: Path) -> list[str]:
    return [(root / name).read_text() for name in (CHANGELOG, *VERSIONS)]


def test_a_release_writes_version_and_date_everywhere(root: Path) -> None:
    release(root, "1.3.0rc1", "2026-11-27")
    changelog, version, chart = contents(root)
    assert "## 1.3.0rc1 (2026-11-27)\n\n- New\n\n## 1.1.0 (2026-01-02)" in changelog
    assert version.endswith('\nVERSION = "1.3.0rc1"\n')
    assert "\nversion: 1.3.0rc1\nappVersion: 1.3.0rc1\n" in chart
    assert VERSION not in "".join((version, chart))


@pytest.mark.parametrize("version", ["", "1.2", "v1.2.0", "1.2.0 ", "1.1.0"])
def test_what_cannot_be_released_changes_nothing(root: Path, version: str) -> None:
    before = contents(root)
    with pytest.raises(ReleaseError):
        release(root, version, "2026-11-27")
    assert contents(root) == before


def test_a_version_is_released_once() -> None:
    released = dated(UNRELEASED, "1.2.0", "2026-11-27")
    assert release_date(released, "1.2.0") == "2026-11-27"
    assert release_date(UNRELEASED, "1.2.0") == ""
    for version in ("1.2.0", "1.3.0"):
        with pytest.raises(ReleaseError):
            dated(released, version, "2026-11-28")


def test_the_changelog_begins_with_this_version() -> None:
    (first, *_) = [
        line for line in (ROOT / CHANGELOG).read_text().splitlines() if line.startswith("## ")
    ]
    assert first.startswith(f"## {VERSION} (")


TEXT = "[![A picture](docs/a.png)](docs/b.md) and [a page](docs/c.md#d), [other](https://o.example)"


def test_links_of_the_package_s_page_lead_to_its_version() -> None:
    assert hatch_hooks.absolute(TEXT, REPOSITORY, "1.2.0") == (
        f"[![A picture]({REPOSITORY}/raw/v1.2.0/docs/a.png)]({REPOSITORY}/blob/v1.2.0/docs/b.md) "
        f"and [a page]({REPOSITORY}/blob/v1.2.0/docs/c.md#d), [other](https://o.example)"
    )


def test_a_package_of_no_repository_names_no_address() -> None:
    assert hatch_hooks.absolute(TEXT, "", "1.2.0") == " and a page, [other](https://o.example)"
    assert hatch_hooks.urls("") == {}
    assert {*hatch_hooks.urls(REPOSITORY).values()} > {REPOSITORY, f"{REPOSITORY}/issues"}


@pytest.mark.parametrize(("lines", "is_missing"), [("", True), ("Repository, https://o.e", False)])
def test_no_package_is_published_without_its_repository(
    tmp_path: Path, lines: str, is_missing: bool
) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a.dist-info/METADATA", f"Name: a\nProject-URL: {lines}\n\nText")
    remedies = "".join(publication.missing(wheel))
    assert ("REPOSITORY=" in remedies) == is_missing
    is_dated = release_date((ROOT / CHANGELOG).read_text(), VERSION) != ""
    assert (f"make release VERSION={VERSION}" in remedies) != is_dated
