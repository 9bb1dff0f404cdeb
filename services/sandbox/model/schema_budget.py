"""Bounds of the work on the schemas of one request, and the errors raised without an example."""

from collections.abc import Iterable

MAX_STEPS = 15_000
MAX_CHARACTERS = 400_000
# Levels of values within each other, and of schemas that apply to one value.
MAX_DEPTH = 64
# Characters of the schema's names and values that are compared in one step.
_READ_AT_ONCE = 1_000


class NoExampleError(Exception):
    """Error raised if no value is found: the schema allows none, or is too complex."""


class TooComplexError(NoExampleError):
    """Error raised when a search has used up its budget; no other branch is tried."""


class Budget:
    """Steps and characters that a search may still take.

    Every function of the search counts its steps before it takes them: a visited schema, a keyword,
    an entry of a list or object that is read or copied. Characters are those of the JSON that is
    produced, without escapes.
    """

    def __init__(self, steps: int = MAX_STEPS, characters: int = MAX_CHARACTERS) -> None:
        self._steps = steps
        self._characters = characters

    def take_steps(self, count: int = 1) -> None:
        """Count steps.

        Raises:
            TooComplexError: there are no more steps.
        """
        self._steps -= count
        if self._steps < 0:
            raise TooComplexError("the schema is too large, or has too many branches")

    def read(self, texts: Iterable[str]) -> None:
        """Count the steps of comparing texts.

        Raises:
            TooComplexError: there are no more steps.
        """
        self.take_steps(sum(map(len, texts)) // _READ_AT_ONCE)

    def produce(self, count: int) -> None:
        """Count characters.

        Raises:
            TooComplexError: there are no more characters.
        """
        self._characters -= count
        if self._characters < 0:
            raise TooComplexError("its values are too long")
