"""Bounds on output tokens, in the words of the servers that name them."""

from services.inference.circuit_breaker import ModelKey
from services.inference.learned.output_bounds import OutputBounds, bound_in, room_in
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


FITS = "This model's maximum context length is 8192 tokens"


@each_row(
    ("words", "room"),
    [
        (
            f"{FITS}. However, you requested 9000 tokens (1000 in the messages, 8000 in the "
            "completion). Please reduce the length of the messages or completion.",
            7192,
        ),
        (
            f"{FITS}. However, you requested 9100 tokens (1000 in the messages, 100 in the "
            "functions, and 8000 in the completion).",
            7092,
        ),
        (
            f"{FITS}. However, you requested 4096 output tokens and your prompt contains 5000 "
            "input tokens, for a total of 9096 tokens.",
            3192,
        ),
        (
            f"{FITS}. However, you requested 4096 output tokens and your prompt contains at least "
            "4097 input tokens",
            2048,
        ),
        (f"'max_tokens' is too large: 8192. {FITS} and your request has 13 input tokens", 8179),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You "
            "requested a total of 9000 tokens: 1000 tokens from the input messages and 8000 tokens "
            "for the completion.",
            7192,
        ),
        (
            "This endpoint's maximum context length is 8192 tokens. However, you requested about "
            "9000 tokens (1000 of text input, 8000 in the output).",
            7111,
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 100 `inputs` tokens and "
            "4000 `max_new_tokens`",
            3996,
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease "
            "input length or `max_tokens` and try again",
            10_000,
        ),
        # The prompt alone is too long, or leaves too little.
        (f"{FITS}. However, your messages resulted in 9000 tokens.", 0),
        (f"{FITS}. However, you requested 9100 tokens (9000 in the messages, 100 in the", 0),
        (f"{FITS}. However, you requested 9100 tokens (8100 in the messages, 1000 in the ", 0),
        ("prompt is too long: 213462 tokens > 200000 maximum", 0),
    ],
)
def test_what_a_prompt_leaves_of_the_context_is_found(words, room):
    assert room_in(words) == room
