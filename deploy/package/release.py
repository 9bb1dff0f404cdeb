"""Write a version and its date wherever the repository states them.

    python deploy/package/release.py 0.1.0 2026-12-01

The files are those of `VERSIONS`, and the changelog, whose uppermost version is released.
"""

import datetime
import re
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
CHANGELOG = "CHANGELOG.md"
# The version in a file, in one group.
VERSIONS = {
    "services/common/version.py": r'^VERSION = "(.+)"$',
    "deploy/helm/gateway/Chart.yaml": r"^(?:version|appVersion): (.+)$",
}
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", re.ASCII)
_HEADING = re.compile(r"^## (?P<version>\S+) \((?P<date>[^)]*)\)$", re.M)
_UNRELEASED = "unreleased"


class ReleaseError(Exception):
    """Error raised when a version cannot be released; the message says why."""


def release_date(changelog: str, version: str) -> str:
    """Return the date of a version in a changelog, or "" if it has none."""
    dates = {match["version"]: match["date"] for match in _HEADING.finditer(changelog)}
    date = dates.get(version, _UNRELEASED)
    return "" if date == _UNRELEASED else date


def dated(changelog: str, version: str, date: str) -> str:
    """Return a changelog whose uppermost version is released on a date.

    Raises:
        ReleaseError: the version is released already, or no version is unreleased.
    """
    if release_date(changelog, version):
        raise ReleaseError(f"{CHANGELOG}: {version} is released already")
    heading = _HEADING.search(changelog)
    if heading is None or heading["date"] != _UNRELEASED:
        raise ReleaseError(f"{CHANGELOG}: no heading `## {version} ({_UNRELEASED})` at the top")
    return changelog[: heading.start()] + f"## {version} ({date})" + changelog[heading.end() :]


def release(root: Path, version: str, date: str) -> None:
    """Write the version and its date; files are written once all are known to be right.

    Raises:
        ReleaseError: the version cannot be released; no file is changed.
    """
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"VERSION={version}: must be three numbers, such as 1.2.0 or 1.2.0rc1")
    written = {CHANGELOG: dated((root / CHANGELOG).read_text("utf-8"), version, date)}
    for name, pattern in VERSIONS.items():
        text = (root / name).read_text("utf-8")
        written[name] = re.sub(
            pattern, lambda match: match[0].replace(match[1], version), text, flags=re.M
        )
    for name, text in written.items():
        (root / name).write_text(text, "utf-8")


def main() -> None:
    """Release the version and date of the command line."""
    version, *dates = sys.argv[1:] or [""]
    date = dates[0] if dates else datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        release(_ROOT, version, date)
    except ReleaseError as error:
        sys.exit(str(error))
    print(f"Version {version} of {date}. Review and commit it; then `make release-check`,")
    print(f"and push the tag v{version}.")


if __name__ == "__main__":
    main()
