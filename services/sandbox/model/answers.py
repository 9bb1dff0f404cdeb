"""Answers of the sandbox's models: canonical choices, and the texts of their blocks."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Block, Usage
from gateway.inference.v1.inference_pb2 import Choice
from services.sandbox.model.signatures import reveal


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one request.

    The blocks of its choices are text, refusals, thinking, redacted thinking and tool calls. The id
    of a call is unique in the conversation; each dialect adds a prefix.

    Attributes:
        choices: one for each requested answer.
        usage: the tokens of all choices.
        top_logprobs: number of alternatives per token; None for no log probabilities.
    """

    choices: Sequence[Choice]
    usage: Usage
    top_logprobs: int | None = None


def prompt_tokens(usage: Usage) -> int:
    """Return all input tokens, cached ones included."""
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


def written(block: Block) -> str:
    """Return a block's text that counts as output tokens, including thinking and tool input."""
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
