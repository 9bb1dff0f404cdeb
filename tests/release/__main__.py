"""`make release-check`: tries the package that `make dist` has built, as its users will.

    python -m tests.release dist

It needs a package index. Folders that it makes are removed at the end.
"""

import sys
import tempfile
from pathlib import Path

from tests.release import contents, installation, platforms, publication, reproduction, upgrade


def main() -> None:
    dist = Path(sys.argv[1]).absolute()
    (wheel,) = dist.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _say("the wheel holds its own packages, the console and nothing else")
        contents.check(wheel)
        _say("the same sources make the same bytes")
        reproduction.check(dist, root / "sources")
        _say("all dependencies have wheels for each platform")
        platforms.check(wheel)
        _say("it installs into an empty environment, and answers")
        bare = installation.install(root / "bare", wheel)
        installation.check_bare(bare, root / "new-bare")
        environment = installation.install(root / "environment", wheel, "[media]")
        installation.check(environment, root / "new")
        _say("it serves the data of the last release")
        upgrade.check(environment, root)
    if remedies := publication.missing(wheel):
        print(f"{wheel.name} works, but must not be published without:", *remedies, sep="\n- ")
        sys.exit(1)
    print(f"{wheel.name} can be published")


def _say(step: str) -> None:
    print(f"- {step}", flush=True)


if __name__ == "__main__":
    main()
