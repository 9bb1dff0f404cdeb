"""Legacy completions over models that only chat: each prompt is the message of a user. Pure.

Source: OpenAI's API reference, "Completions".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from facade.dialects.openai.errors import error_event
from facade.dialects.openai.response import FINISH_REASONS, usage_object
from facade.dialects.stream_formats import EVENTS
from gateway.conversation.v1.conversation_pb2 import FinishReason, Usage
from gateway.inference.v1.inference_pb2 import Choice, Event, GenerateResponse, RouteInfo
from services.common.errors import GatewayError, invalid, unsupported
from services.common.messages.plain_answer import PlainAnswer, PlainChoice

MAX_PROMPTS: Final = 20
_PREFIX: Final = "cmpl-"
_DONE: Final = b"data: [DONE]\n\n"
_KEEPALIVE: Final = b": keep-alive\n\n"
_STOP: Final = "stop"
# Fields that chats have not.
_OWN: Final = frozenset({"prompt", "suffix", "echo", "best_of", "logprobs"})

Json = dict[str, Any]
Answer = GenerateResponse | PlainAnswer


def prompts_of(body: Mapping[str, Any]) -> list[str]:
    """Return the prompts of a body that a model can answer that only chats.

    Raises:
        GatewayError: invalid, naming the field; unsupported, a chat cannot express it.
    """
    prompt = body.get("prompt")
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if not isinstance(prompts, list) or not 1 <= len(prompts) <= MAX_PROMPTS:
        raise invalid("prompt", f"prompt: must be a text, or a list of 1 to {MAX_PROMPTS} texts")
    for index, one in enumerate(prompts):
        path = "prompt" if isinstance(prompt, str) else f"prompt[{index}]"
        if not isinstance(one, str):
            raise unsupported(path, f"{path}: must be a text, as this model has only chats")
        if not one:
            raise invalid(path, f"{path}: must not be empty")
    if body.get("stream") and len(prompts) > 1:
        raise unsupported("prompt", "prompt: must be one text if stream is true, for this model")
    _check_others(body)
    return prompts


def _check_others(body: Mapping[str, Any]) -> None:
    """Check the fields beside the prompt.

    Raises:
        GatewayError: unsupported, a chat cannot express one; invalid.
    """
    if body.get("suffix"):
        raise unsupported("suffix", "suffix: not supported for this model, which has only chats")
    if body.get("logprobs") is not None:
        raise unsupported(
            "logprobs", "logprobs: not supported for this model, which has only chats"
        )
    n, best_of = body.get("n") or 1, body.get("best_of")
    if best_of is not None and best_of != n:
        raise unsupported("best_of", "best_of: must be the same as n for this model")
    if not isinstance(body.get("echo") or False, bool):
        raise invalid("echo", "echo: must be true or false")


def chat_body(body: Mapping[str, Any], prompt: str, model: str) -> bytes:
    """Return the body of a chat with a prompt."""
    chat = {name: value for name, value in body.items() if name not in _OWN}
    chat |= {"model": model, "messages": [{"role": "user", "content": prompt}]}
    return orjson.dumps(chat)


def render_completions(answers: Sequence[Answer], echoed: Sequence[str], created: int) -> bytes:
    """Return the answers to prompts as one `text_completion`.

    Args:
        answers: one for each prompt, in order.
        echoed: the prompts that the texts begin with, or "" for each.
        created: Unix seconds.
    """
    choices: list[Json] = []
    for answer, before in zip(answers, echoed, strict=True):
        for choice in answer.choices:
            text, reason = _text_of(choice)
            choices.append(_choice(len(choices), before + text, _finish_reason(reason)))
    usages = [usage_object(answer.usage) for answer in answers]
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return orjson.dumps(
        {
            "id": _id_of(answers[0].id),
            "object": "text_completion",
            "created": created,
            "model": answers[0].model,
            "choices": choices,
            "usage": {name: sum(usage[name] for usage in usages) for name in names},
        }
    )


def _text_of(choice: Choice | PlainChoice) -> tuple[str, FinishReason.ValueType]:
    if isinstance(choice, PlainChoice):
        return choice.text, choice.reason
    text = "".join(block.text or block.refusal for block in choice.blocks)
    return text, choice.finish.reason


def _finish_reason(reason: FinishReason.ValueType) -> str:
    name = FINISH_REASONS[reason]
    return _STOP if name == "tool_calls" else name


def _id_of(upstream: str) -> str:
    return upstream if upstream.startswith(_PREFIX) else _PREFIX + upstream


def _choice(index: int, text: str, reason: str | None) -> Json:
    return {"text": text, "index": index, "logprobs": None, "finish_reason": reason}


class CompletionStream:
    """Encodes the events of one answer as chunks of a legacy completion.

    Args:
        created: Unix seconds.
        echoed: what each text begins with, or "".
        include_usage: whether a last chunk has the usage.

    Attributes:
        format: the format of the stream.
        route: the model that serves the answer, once known.
        usage: token usage so far.
    """

    format = EVENTS

    def __init__(self, created: int, echoed: str, *, include_usage: bool) -> None:
        self.route = RouteInfo()
        self.usage = Usage()
        self._echoed = echoed
        self._begun: set[int] = set()
        self._include_usage = include_usage
        self._envelope: Json = {"object": "text_completion", "created": created}

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        return b"".join(map(self._encoded, events))

    def _encoded(self, event: Event) -> bytes:
        match event.WhichOneof("kind"):
            case "start":
                self.route = event.start.route
                self._envelope |= {"id": _id_of(event.start.id), "model": event.start.model}
            case "continued":
                self.route = event.continued
            case "usage":
                self.usage = event.usage
            case "text":
                return self._text(event.choice, event.text)
            case "refusal":
                return self._text(event.choice, event.refusal)
            case "block_start":
                block = event.block_start
                return self._text(event.choice, block.text or block.refusal)
            case "finish":
                reason = _finish_reason(event.finish.reason)
                return self._text(event.choice, "", reason)
        return b""

    def _text(self, index: int, text: str, reason: str | None = None) -> bytes:
        if index not in self._begun and (text or reason):
            self._begun.add(index)
            text = self._echoed + text
        if not (text or reason):
            return b""
        return self._chunk([_choice(index, text, reason)])

    def _chunk(self, choices: Sequence[Json], **fields: Any) -> bytes:
        return b"data: %b\n\n" % orjson.dumps({**self._envelope, "choices": choices, **fields})

    def finish(self) -> bytes:
        """Return the end of a complete answer."""
        if not self._include_usage:
            return _DONE
        return self._chunk([], usage=usage_object(self.usage)) + _DONE

    def keepalive(self) -> bytes:
        """Return a comment, which clients ignore."""
        return _KEEPALIVE

    def error(self, error: GatewayError) -> bytes:
        """Return an error event, which ends an interrupted answer."""
        return error_event(error)
