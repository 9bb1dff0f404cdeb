"""Hints in the errors of unknown models: the name that was probably meant, or the missing key."""

import re
from collections.abc import Callable, Iterable, Mapping

from services.common.settings import SANDBOX
from services.common.settings.presets import PRESETS
from services.common.text.texts import MAX_NAME
from services.inference.facts import catalogue

_IGNORED = re.compile(r"[^a-z0-9]+")
# "gpt4o", for "gpt-4o".
_WITHOUT_HYPHEN = re.compile(r"(?<=[a-z])(?=[0-9])")
# Names with the same first letter that are compared with a misspelt one: more would take
# milliseconds.
_MAX_COMPARED = 100
_SIMILARITY = 0.75


class NamesByLikeness:
    """Model names, found by a name that differs from them in little.

    Args:
        names: the names; of several equally similar ones, the first is found.
    """

    def __init__(self, names: Iterable[str]) -> None:
        # Letters and digits of each name, with and without its provider.
        self._by_letters: dict[str, str] = {}
        self._by_initial: dict[str, list[str]] = {}
        for name in names:
            for part in (name, name.partition("/")[2], name.rpartition("/")[2]):
                letters = _letters(part)
                if letters and letters not in self._by_letters:
                    self._by_letters[letters] = name
                    same_initial = self._by_initial.setdefault(letters[0], [])
                    if len(same_initial) < _MAX_COMPARED:
                        same_initial.append(letters)

    def find(self, name: str, is_allowed: Callable[[str], bool]) -> str:
        """Return the most similar of the allowed names, or ""."""
        letters = _letters(name)
        for exact in (letters, _letters(name.rpartition("/")[2])):
            if (model_name := self._by_letters.get(exact)) is not None and is_allowed(model_name):
                return model_name
        from difflib import get_close_matches  # imported on demand: most names are correct

        candidates = [
            candidate
            for candidate in self._by_initial.get(letters[:1], ())
            if is_allowed(self._by_letters[candidate])
        ]
        close = get_close_matches(letters, candidates, n=1, cutoff=_SIMILARITY)
        return self._by_letters[close[0]] if close else ""


def missing_provider(name: str, kinds: Mapping[str, str]) -> str:
    """Return what makes the provider of a model available, or "" if that is not what is missing.

    Args:
        name: the name of an unknown model.
        kinds: the kinds of the present providers, by their names.
    """
    provider, slash, _ = name.partition("/")
    if slash and provider == SANDBOX and SANDBOX not in kinds:
        return "the sandbox is absent; set `enabled = true` in [sandbox]"
    if not slash:
        provider = catalogue.maker_of(name) or catalogue.maker_of(
            _WITHOUT_HYPHEN.sub("-", name, count=1)
        )
    preset = PRESETS.get(provider)
    if preset is None or provider in kinds:
        return ""
    return (
        f"no provider {provider} is configured; set {preset.joining_variable}, or add "
        f"[providers.{provider}]"
    )


def _letters(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return _IGNORED.sub("", name[:MAX_NAME].lower())
