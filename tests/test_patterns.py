"""Every regular expression takes linear time, whatever the text: steps are counted, not seconds."""

import re
from collections.abc import Iterator
from itertools import islice

import pytest

from services.inference.providers import vectors
from tests.grid import each_row
from tests.patterns.collection import Held, compiled_in_functions, held
from tests.patterns.hostile import has_loop, texts
from tests.patterns.steps import StepCounter, TooManyStepsError
from tests.thoroughness import is_soak, sampled

# Expressions that functions compile, and why they are not in the list of `held`.
COMPILED_IN_FUNCTIONS = {
    "facade/http/router.py:_pattern": "a path of ours: segments, and at most one rest at the end",
    "services/articles/outline.py:_matcher": "an escaped text, or by RE2, which is linear",
    "services/common/text/linear_patterns.py:compile_linear": "accepts linear ones alone",
    "services/envoy/process.py:gauge": "a name of ours, on Envoy's own statistics",
    "services/inference/pricing/price_list.py:_patterns": "of the price list in the package",
    "services/inference/pricing/price_list.py:_matches": "of the price list in the package",
    "services/inference/providers/vectors.py:_member": "tested below",
    "services/memory/profile/patterns.py:_parse": "on the table in the module",
    "services/memory/profile/patterns.py:compiled": "on sentences of at most 500 characters",
    "facade/dialects/paths.py:_renamed": "a name of ours, on a path of the services",
}
# Texts of these lengths show whether steps grow faster than the text; the longer ones are for
# expressions with bounded repeats, which stop growing only then.
LENGTHS = ((40, 160), (1_000, 4_000))
# Four times the text; 16 times the steps are quadratic, and 4 linear.
MOST_GROWTH = 8.0
FEWEST_STEPS = 120  # what a short text takes at least, so that constants do not count as growth
MOST_STEPS = 3_000_000
# Of the texts that attack an expression so many are tried; in `make soak` all.
ONE_IN = 11
# Of the short texts whose growth shows neither, the slowest are tried long; in `make soak` all.
MOST_SUSPECTS = 3


def steps(one: Held, text: str | bytes, most: int = MOST_STEPS) -> float:
    """Return the steps that an expression takes on a text, as it is used; at most `most`.

    More are infinity.
    """
    uses = one.methods - {"pattern"}
    counter = StepCounter(one.pattern, most, is_whole=uses == {"fullmatch"})
    try:
        if uses and uses <= {"match", "fullmatch"}:
            counter.match(text)
        else:
            counter.find_all(text)
    except TooManyStepsError:
        return float("inf")
    return max(counter.steps, FEWEST_STEPS)


def slowest(one: Held) -> str:
    """Return a text on which an expression is not linear, or ""."""
    suspects = []
    for number, pair in sampled(enumerate(_pairs(one, LENGTHS[0])), ONE_IN):
        growth = _growth(one, *pair)
        if growth > MOST_GROWTH and (text := _slow_text(one, number)):
            return text
        if MOST_GROWTH / 2 < growth <= MOST_GROWTH:
            suspects.append((growth, number))
    suspects.sort(reverse=True)
    tried = suspects if is_soak() else suspects[:MOST_SUSPECTS]
    return next(filter(None, (_slow_text(one, number) for _, number in tried)), "")


def _slow_text(one: Held, number: int) -> str:
    """Return the long text of a number if an expression is not linear on it, else ""."""
    pair = next(islice(_pairs(one, LENGTHS[1]), number, None))
    return repr(pair[0][:80]) if _growth(one, *pair) > MOST_GROWTH else ""


def _pairs(one: Held, lengths: tuple[int, int]) -> Iterator[tuple[str | bytes, str | bytes]]:
    return zip(*(texts(one.pattern, length) for length in lengths), strict=True)


def _growth(one: Held, short: str | bytes, long: str | bytes) -> float:
    few = steps(one, short)
    if few == float("inf"):
        return few
    # What takes more steps is not linear, however many they are.
    return steps(one, long, min(MOST_STEPS, int(few * MOST_GROWTH))) / few


def of_functions() -> list[Held]:
    """Return the expressions that functions compile and keep."""
    return [Held(vectors._member("embedding"), ["vectors._member"], {"match"})]


@pytest.mark.thorough
def test_every_expression_takes_linear_time() -> None:
    expressions = [one for one in (*held(), *of_functions()) if has_loop(one.pattern)]
    assert len(expressions) > 100
    slow = [(one.places, slowest(one)) for one in sampled(expressions, 2)]
    assert [one for one in slow if one[1]] == []


def test_no_other_expression_is_compiled_while_running() -> None:
    assert sorted({*compiled_in_functions()}) == sorted(COMPILED_IN_FUNCTIONS)


@pytest.mark.parametrize(
    "expression",
    [
        "(a+)+b",
        r"\s*\n(.*)\n",
        r"[\w-]+\s*:",
        r"rgba\(.*,\s*0*\.?0+%?\s*\)",
        r"<b[^>]*>",
    ],
)
def test_what_is_not_linear_is_found(expression: str) -> None:
    assert slowest(Held(re.compile(expression), methods={"search"}))


@pytest.mark.parametrize(
    "expression",
    [
        r"(?<!a)a++b",
        "<meta[^>]{0,512}?charset",
        r'"[^"\\]*+(?:\\.[^"\\]*+)*+"',
        r"\w+",
        r"(?<![\s,])[\s,]++(?:now|too)",
    ],
)
def test_what_is_linear_passes(expression: str) -> None:
    assert not slowest(Held(re.compile(expression), methods={"sub"}))


def test_a_separator_that_is_content_too_is_found() -> None:
    expression = re.compile(r"/console(?:[/?](?!/)[A-Za-z0-9_.~?=&%+-]+)*/?", re.ASCII)
    assert slowest(Held(expression, methods={"fullmatch"}))


def test_anchored_use_counts_one_start() -> None:
    assert not slowest(Held(re.compile(r"\S*x"), methods={"fullmatch"}))
    assert slowest(Held(re.compile(r"0*\.?0+x"), methods={"fullmatch"}))


MATCHED = [
    (r"(\w+)@(\w+)\.com", "a@b.com, cc@dd.com x@y"),
    (r"(?i)straße|x{2,3}?", "STRASSE straße xxx"),
    (r"^(a|b)*$", "abba\n"),
    (r"(?m)^[ \t]*>.*$", "> a\n b\n\t> c"),
    (r"(['\"]).*?\1", '\'a" b\' "c"'),
    (r"(?<!\\)((?:\\\\)*)\$", r"\$ \\$ $"),
    (r"\b\d{4}-\d\d\b(?!x)", "2024-05 2024-06x 12345-06"),
    (r"(?:a|ab)(?:c|bcd)(d*)", "abcd abcdd"),
    (r"(?>a+)b|a", "aaab aaa"),
    (r"a*", "baac"),
    (rb"(?i:\r\nx-[a-z]+): *([0-9]+)(?=\r\n)", b"\r\nX-a: 12\r\nx-b:3\r\n"),
]


@each_row(("expression", "text"), MATCHED)
def test_the_counted_matcher_finds_what_re_finds(
    expression: str | bytes, text: str | bytes
) -> None:
    pattern = re.compile(expression)
    spans = [one.span() for one in pattern.finditer(text)]
    assert spans
    assert StepCounter(pattern, MOST_STEPS).find_all(text) == spans
