"""Tokenizer: extracts search terms from text of any script. Pure.

A word is a run of letters, digits and combining marks. It is normalized (NFKC, case folded) and
stemmed where its script determines the stemmer. Scripts without spaces between words are divided
into overlapping bigrams instead; ideographs are terms by themselves too, since many words have only
one. Stop words are left out.

The terms of archived turns are stored, so a change here needs a migration that rebuilds the index.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from services.common.text.texts import normalized

# Combining marks of scripts that write vowels or tones with them; `\w` does not match them.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a51"
    "\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bd7"
    "\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d57\u0d81-\u0d83"
    "\u0dca-\u0ddf\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e"
    "\u17b4-\u17d3\u3099\u309a"
)
# Matches runs of each kind, first one without marks: other forms of the pattern take 1.5 times as
# long.
_WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*|(?:[{_MARKS}]+[^\W_]*)+")
# Thai, Lao, Burmese and Khmer; Chinese and Japanese; Chinese beyond the first plane.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
# The first letter of each stemmed script, the one after its last, and the stemmer.
_SCRIPTS = (
    ("a", "\u0370", "english"),
    ("\u0370", "\u0400", "greek"),
    ("\u0400", "\u0530", "russian"),
    ("\u0530", "\u0590", "armenian"),
    ("\u0600", "\u0700", "arabic"),
    ("\u0900", "\u0980", "hindi"),
    ("\u0b80", "\u0c00", "tamil"),
)
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_STARTS = [start for start, _, _ in _SCRIPTS]
# Longer words are keys, hashes or data, and are found by their prefix.
_MAX_WORD = 40
_REMEMBERED_WORDS = 20_000

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are aren as at be because been before
    being below between both but by can cannot could couldn d did didn do does doesn doing
    don down during each few for from further get go got had hadn has hasn have haven having
    he her here hers herself him himself his how i if in into is isn it its itself just let
    ll m ma me more most mustn my myself no nor not of off ok okay on once only or other our
    ours ourselves out over own please re s same shall shan she should shouldn so some such
    t than thank thanks that the their theirs them themselves then there these they this
    those through to too under until up us ve very was wasn we well were weren what when
    where which while who whom whose why will with won would wouldn yes you your yours
    yourself yourselves
    """.split()
)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...


def located_terms(text: str, among: frozenset[str] | None = None) -> Iterator[tuple[int, str]]:
    """Yield the terms of an NFKC text in order, or those `among` these, with their positions."""
    for match in _WORD.finditer(text):
        run = match[0]
        if run.isascii() or not _UNSPACED.search(run):
            for term in _terms(run[:_MAX_WORD]):
                if among is None or term in among:
                    yield match.start(), term
        else:
            for place, term in _located_in_run(run, match.start()):
                if among is None or term in among:
                    yield place, term


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, with repetitions."""
    whole = normalized("NFKC", text)
    return [term for _, term in located_terms(whole)]


def term_key(term: str) -> int:
    """Return the 63-bit hash by which a term is stored."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest()) >> 1


def _located_in_run(run: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the terms of a run that has characters of scripts without spaces."""
    # Pieces with odd numbers are of such scripts.
    for number, piece in enumerate(_UNSPACED.split(run)):
        if number % 2:
            for at in range(len(piece)):
                for term in _bigrams(piece, at):
                    yield start + at, term
        else:
            for term in _terms(piece[:_MAX_WORD]):
                yield start, term
        start += len(piece)


def _bigrams(run: str, at: int) -> tuple[str, ...]:
    """Return the bigram that begins at a character, and the character itself if an ideograph."""
    if len(run) == 1:
        return (run,)
    pair = (run[at : at + 2],) if at + 1 < len(run) else ()
    return (*pair, run[at]) if _IDEOGRAPH.match(run[at]) else pair


# The same words occur over and over.
@lru_cache(_REMEMBERED_WORDS)
def _terms(word: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKC", word).casefold()
    return tuple(term for match in _WORD.finditer(folded) for term in _stem(match[0]))


def _stem(word: str) -> list[str]:
    if word in STOP_WORDS:
        return []
    place = bisect_right(_STARTS, word[0]) - 1
    if place < 0 or word[0] >= _SCRIPTS[place][1]:
        return [word]
    return [_stemmer(_SCRIPTS[place][2]).stemWord(word)]


@lru_cache
def _stemmer(algorithm: str) -> _Stemmer:
    # Imported on demand: it takes 3 MB, and a process may never search.
    import Stemmer

    # 0 turns off the stemmer's own cache, since `_terms` is cached.
    stemmer: _Stemmer = Stemmer.Stemmer(algorithm, 0)
    return stemmer
