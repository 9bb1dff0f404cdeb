"""`make mutants`: breaks one rule at a time in a copy of the sources, and runs the tests near it.

A mutant that its tests do not notice has survived: a rule without a test. Names as arguments
select mutants.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutants import ROOT, Mutant, load

_FOLDERS = ("services", "facade", "generated", "envoy", "proto", "docs", "deploy", "tests")
_NOT_COPIED = shutil.ignore_patterns("node_modules", ".venv", "__pycache__", "dist")
_NOTHING_FAILED = 0
_SOME_FAILED = 1
# A mutant may wait for ever; a busy machine does not take as long for the tests of one.
_MOST_SECONDS = 1_200


class Copy:
    """A copy of the sources in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seconds = itertools.count(int(time.time()))
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        for name in _FOLDERS:
            if (ROOT / name).exists():
                shutil.copytree(ROOT / name, folder / name, ignore=_NOT_COPIED)

    def passes(self, tests: Sequence[str]) -> tuple[bool, str]:
        """Return whether the tests pass, and what they print.

        Raises:
            RuntimeError: the tests could not be run.
        """
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(self._folder)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        try:
            run = subprocess.run(
                command,
                cwd=self._folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return False, "the tests did not end"
        if run.returncode not in (_NOTHING_FAILED, _SOME_FAILED):
            raise RuntimeError(f"{' '.join(command)}:\n{run.stdout}\n{run.stderr}")
        return run.returncode == _NOTHING_FAILED, run.stdout

    def survives(self, mutant: Mutant) -> bool:
        """Return whether the tests of a mutant pass with it."""
        path = self._folder / mutant.file
        source = path.read_text()
        self._write(path, mutant.applied(source))
        try:
            return self.passes(mutant.tests)[0]
        finally:
            self._write(path, source)

    def _write(self, path: Path, source: str) -> None:
        """Write a file with another second than before, by which Python selects compiled files."""
        path.write_text(source)
        second = next(self._seconds)
        os.utime(path, (second, second))


def main(names: Sequence[str]) -> int:
    """Try the mutants; return 1 if any survives."""
    mutants = [mutant for mutant in load() if not names or mutant.name in names]
    if missing := set(names) - {mutant.name for mutant in mutants}:
        print(f"no mutant is named {', '.join(sorted(missing))}", file=sys.stderr)
        return 2
    count = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="gateway-mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(count):
            path = Path(folder) / str(number)
            path.mkdir()
            copies.put(Copy(path))

        def survives(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                survived = copy.survives(mutant)
            finally:
                copies.put(copy)
            print(f"{'SURVIVED' if survived else 'caught'}: {mutant.name}", flush=True)
            return survived

        copy = copies.get()
        passed, output = copy.passes(sorted({test for one in mutants for test in one.tests}))
        copies.put(copy)
        if not passed:
            print(f"{output}\nthe tests fail without any mutant", file=sys.stderr)
            return 2
        with ThreadPoolExecutor(count) as threads:
            survivors = sum(threads.map(survives, mutants))
    print(f"{len(mutants)} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
