"""Bounds on output tokens, in the words of the servers that name them."""

from services.inference.circuit_breaker import ModelKey
from services.inference.output_bounds import OutputBounds, bound_in
from tests.grid import each_row

WORDS = {
    "max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas "
    "you provided 64000.": 16384,
    "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for m": 8192,
    "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got "
    "200000 instead.": 128000,
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]": 8192,
    "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 16384]": 16384,
    "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less "
    "than the `context_window` for this model": 8192,
    '{"detail":[{"type":"less_than_equal","loc":["body","max_tokens"],"msg":"Input should be less '
    'than or equal to 4096","input":64000}]}': 4096,
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum "
    "tokens value that is lower than 4096.": 4096,
    "Unable to submit request because it has a maxOutputTokens value of 64000 but the supported "
    "range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.": 8192,
    "max_tokens (64000) exceeds the maximum of 32768": 32768,
}


@each_row("words", WORDS)
def test_a_bound_is_read_from_the_words_of(words):
    assert bound_in(words) == WORDS[words]


@each_row(
    "words",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        "Unknown parameter: 'max_tokens supports at most 300 completion tokens'.",
        "Extra inputs are not permitted: max_tokens at most 300",
        "max_tokens must be greater than thinking.budget_tokens",
        "max_tokens must be at least 1",
        "Requests with max_tokens > 4096 must have stream=true",
        "max_tokens must be at most 1",
        "temperature must be at most 1000",
        "",
    ],
)
def test_other_errors_name_no_bound(words):
    assert bound_in(words) == 0


def test_the_lower_of_two_bounds_counts():
    bounds, key = OutputBounds(), ModelKey("p", "m")
    assert (bounds.of(key), bounds.of(key, 500)) == (0, 500)
    bounds.add(key, 1000)
    assert (bounds.of(key), bounds.of(key, 500), bounds.of(key, 2000)) == (1000, 500, 1000)
    assert bounds.of(ModelKey("p", "other")) == 0


def test_bounds_of_a_thousand_models_are_stored():
    bounds = OutputBounds()
    for number in range(1_001):
        bounds.add(ModelKey("p", str(number)), 1000)
    assert bounds.of(ModelKey("p", "0")) == 0
    assert bounds.of(ModelKey("p", "1")) == bounds.of(ModelKey("p", "1000")) == 1000
