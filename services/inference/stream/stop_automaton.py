"""Search for any of several strings in text that arrives in pieces.

An Aho-Corasick automaton: one step per character, whatever the strings are and however the text
is split (Aho, Corasick: Efficient string matching, CACM 18/6, 1975).
"""

from collections import deque
from collections.abc import Sequence


class StopAutomaton:
    """Finds the first match of any of several strings, one character at a time.

    Attributes:
        depths: by state, the number of characters at the end of the text that may begin a string.
        beginnings: the first characters of the strings.
    """

    __slots__ = ("_fallbacks", "_matches", "_steps", "beginnings", "depths")

    def __init__(self, strings: Sequence[str]) -> None:
        self.beginnings = frozenset(string[0] for string in strings)
        self._steps: list[dict[str, int]] = [{}]
        self._matches = [""]
        self.depths = [0]
        for string in strings:
            self._add(string)
        self._fallbacks = [0] * len(self._steps)
        self._link()

    def _add(self, string: str) -> None:
        state = 0
        for depth, character in enumerate(string, 1):
            step = self._steps[state].get(character)
            if step is None:
                step = self._steps[state][character] = len(self._steps)
                self._steps.append({})
                self._matches.append("")
                self.depths.append(depth)
            state = step
        self._matches[state] = string

    def _link(self) -> None:
        steps, fallbacks, matches = self._steps, self._fallbacks, self._matches
        waiting = deque(steps[0].values())
        while waiting:
            state = waiting.popleft()
            for character, step in steps[state].items():
                fallback = fallbacks[state]
                while fallback and character not in steps[fallback]:
                    fallback = fallbacks[fallback]
                fallbacks[step] = steps[fallback].get(character, 0)
                waiting.append(step)
            # The state's own string is longer than any other that ends here.
            matches[state] = matches[state] or matches[fallbacks[state]]

    def search(self, state: int, text: str) -> tuple[int, int, str]:
        """Return the state after `text`, the end position of the first match, and its string.

        Without a match the string is "" and the position has no meaning.
        """
        steps, fallbacks, matches = self._steps, self._fallbacks, self._matches
        for position, character in enumerate(text, 1):
            step = steps[state].get(character)
            while step is None and state:
                state = fallbacks[state]
                step = steps[state].get(character)
            state = step or 0
            if matches[state]:
                return state, position, matches[state]
        return state, len(text), ""
