"""The steps of a newcomer: clone, `make run`, and the README from top to bottom.

    python -m tests.newcomer

It prints how long the first start took, and how much it installed. Unlike `make test`, it needs a
registry of packages.
"""

import os
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.documents import ROOT
from tests.e2e.gateway import Gateway
from tests.e2e.processes import Running, free_port
from tests.newcomer.blocks import blocks
from tests.newcomer.session import Session

_ADDRESS = r"http://127\.0\.0\.1:(\d+)"
# Nothing that is installed here may help: no environment that is active, no variable of make.
_NOT_INHERITED = ("VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "PYTHONPATH")
_MOST_S = 900


def main() -> None:
    """Print the figures of a first start, and run the README against it."""
    with TemporaryDirectory() as folder:
        clone = Path(folder) / "gateway"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        environ = dict.fromkeys(_NOT_INHERITED, "")
        environ |= {"GATEWAY_PORT": str(free_port()), "GATEWAY_METRICS_PORT": str(free_port())}
        started = time.monotonic()
        with Running(["make", "run"], environ=environ, folder=clone, stop_within_s=60) as process:
            port = int(process.wait_for(f"listens on {_ADDRESS}", _MOST_S)[1])
            seconds = time.monotonic() - started
            print(f"first start: {seconds:.0f} s, {_megabytes(clone):,} MB", flush=True)
            key = (clone / "var" / "dev.key").read_text().strip()
            run_readme(Gateway(port, 0, key, process, clone / "var"), Path(folder) / "session")


def run_readme(front: Gateway, folder: Path) -> None:
    """Run the blocks of the README, and print where each begins."""
    folder.mkdir()
    session = Session(front, folder, {"GATEWAY_CONFIG": os.devnull})
    for block in blocks("README.md"):
        print(f"{block.place} {block.language}", flush=True)
        session.run(block)
    session.close()


def _megabytes(clone: Path) -> int:
    """Return the size of what was installed, each file counted once."""
    sizes = {
        (status.st_dev, status.st_ino): status.st_blocks * 512
        for folder in clone.glob(".venv*")
        for path in folder.rglob("*")
        if not path.is_symlink() and (status := path.stat())
    }
    return sum(sizes.values()) >> 20


if __name__ == "__main__":
    main()
