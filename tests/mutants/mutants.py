"""Mutants: small changes to the sources, each of which breaks a rule that tests hold."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LIST = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """A change to one place of a source file.

    Attributes:
        name: the rule that it breaks.
        file: path of the source file.
        old: the text that it replaces; occurs once in the file.
        new: the text in its place.
        tests: paths of the tests that notice it.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """Return the source with the change.

        Raises:
            ValueError: the text to replace does not occur exactly once.
        """
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.file} has {source.count(self.old)} times what the mutant "
                f"{self.name!r} replaces; update tests/mutants/mutants.toml"
            )
        return source.replace(self.old, self.new)


def load() -> list[Mutant]:
    """Return the mutants of `mutants.toml`."""
    table = tomllib.loads(_LIST.read_text())
    return [Mutant(**entry | {"tests": tuple(entry["tests"])}) for entry in table["mutant"]]
