"""Answers of the sandbox's models: canonical choices, and the texts of their blocks."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Block, Usage
from gateway.inference.v1.inference_pb2 import Choice
from services.sandbox.model.signatures import reveal


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answers to one request.

    The blocks of its choices are text, refusals, thinking, redacted thinking and calls of tools.
    The id of a call tells it from the other calls of the conversation; each dialect puts a prefix
    before it.

    Attributes:
        choices: one for each that was asked for.
        usage: the tokens of all of them.
        top_logprobs: alternatives wanted for each token, or None for no log probabilities.
    """

    choices: Sequence[Choice]
    usage: Usage
    top_logprobs: int | None = None


def prompt_tokens(usage: Usage) -> int:
    """Return all tokens that were read, with or without the cache."""
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


def written(block: Block) -> str:
    """Return the text that a block of an answer costs: thoughts and input of tools as well."""
    match block.WhichOneof("kind"):
        case "text":
            return block.text
        case "refusal":
            return block.refusal
        case "thinking":
            return block.thinking.text
        case "redacted_thinking":
            return reveal(block.redacted_thinking)
    return block.tool_use.input
