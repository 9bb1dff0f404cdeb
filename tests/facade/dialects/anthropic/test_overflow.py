import pytest

from facade.dialects.anthropic import render_error
from facade.dialects.anthropic.overflow import overflow_message
from facade.dialects.openai import render_error as render_openai_error
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.inference.providers.failures import classify
from tests.grid import each_row

WORDS = {
    "OpenAI": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "130001 tokens. Please reduce the length of the messages.",
        (130001, 128000),
    ),
    "OpenAI, output too": (
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens "
        "(4905 in the messages, 4096 in the completion).",
        (9001, 8192),
    ),
    "OpenAI, responses": ("Your input exceeds the context window of this model.", None),
    "Gemini": (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        (1196265, 1048575),
    ),
    "Vertex": (
        "Unable to submit request because the input token count is 39300 but model only supports "
        "up to 32768.",
        (39300, 32768),
    ),
    "xAI": (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        (537812, 131072),
    ),
    "Mistral": (
        "Prompt contains 40001 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        (40001, 32768),
    ),
    "OpenRouter": (
        "This endpoint's maximum context length is 131,072 tokens. However, you requested about "
        "150,123 tokens (149,123 of text input, 1,000 in the output).",
        (150123, 131072),
    ),
    "vLLM": (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        (5000, 4096),
    ),
    "vLLM, output": (
        "This model's maximum context length is 4096 tokens and your request has 100 input tokens",
        None,
    ),
    "llama.cpp": (
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        (5000, 4096),
    ),
    "llama.cpp before": ("the request exceeds the available context size", None),
    "SGLang": (
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        (5000, 4096),
    ),
    "Groq": ("Please reduce the length of the messages or completion.", None),
    "Cerebras": (
        "Please reduce the length of the messages or completion. Current length is 40000 while "
        "limit is 8192",
        (40000, 8192),
    ),
    "Bedrock": ("Input is too long for requested model.", None),
    "Copilot": ("prompt token count of 74490 exceeds the limit of 72000", (74490, 72000)),
    "Fireworks": (
        "The prompt is too long: 5000, model maximum context length: 4096",
        (5000, 4096),
    ),
    "an id": ("The maximum context length is 4096 tokens (request 5000-6000-7000)", None),
}


@each_row("name", WORDS)
def test_any_providers_words_become_those_that_clients_look_for(name):
    words, numbers = WORDS[name]
    told = overflow_message(words)
    if numbers is None:
        assert told == f"prompt is too long ({words})"
    else:
        size, most = numbers
        assert told == f"prompt is too long: {size} tokens > {most} maximum ({words})"


@each_row("name", WORDS)
def test_they_are_known_for_what_they_are(name):
    error = classify("p", 400, {}, WORDS[name][0].encode(), now=lambda: 0)
    assert error.reason == errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 210118 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 187254 + 20000 > 204798, decrease "
        "input length or `max_tokens` and try again",
    ],
)
def test_anthropics_own_words_stay(words):
    assert overflow_message(words) == words


def test_each_dialect_has_its_own_error_format():
    words = WORDS["OpenAI"][0]
    error = GatewayError(errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED, words)
    status, body = render_error(error, "req_1")
    assert (status, b"prompt is too long: 130001 tokens > 128000 maximum" in body) == (400, True)
    assert b'"type":"invalid_request_error"' in body
    status, body = render_openai_error(error, "req_1")
    assert (status, b'"code":"context_length_exceeded"' in body) == (400, True)
    assert b"prompt is too long" not in body


def test_long_words_take_no_long_time():
    overflow_message("context length " + "1,111," * 300 + "context limit \n" * 100)
