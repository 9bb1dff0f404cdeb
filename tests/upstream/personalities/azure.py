"""Azure: results of the content filter, in a first chunk and in every choice.

Source: https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
"""

from collections.abc import Iterator

import orjson

from tests.upstream.personalities.base import (
    Chunks,
    Json,
    Personality,
    as_it_is,
    in_choices,
    thoughts_as,
)

_KINDS = ("hate", "self_harm", "sexual", "violence")
_SAFE = {kind: {"filtered": False, "severity": "safe"} for kind in _KINDS}
_PROMPT = [{"prompt_index": 0, "content_filter_results": _SAFE}]
_NAMELESS: Json = {"id": "", "object": "", "created": 0, "model": ""}
_FIRST = {**_NAMELESS, "choices": [], "prompt_filter_results": _PROMPT}
_silent = thoughts_as("")


def _convert_answer(answer: Json) -> Json:
    converted = in_choices(answer, _silent) if answer["model"] else dict(answer)
    for choice in converted["choices"]:
        choice["content_filter_results"] = _SAFE
    if converted["object"] == "chat.completion":
        converted["prompt_filter_results"] = _PROMPT
    return converted


def _convert_response(response: Json) -> Json:
    prompt_filter = {"blocked": False, "source_type": "prompt", "content_filter_results": _SAFE}
    return {**response, "content_filters": [prompt_filter]}


def _chunks() -> Chunks:
    return _filtered


def _filtered(chunk: Json) -> Iterator[Json]:
    """Yield a chunk; before the last one of a choice, a chunk of the filter without a delta."""
    for choice in chunk["choices"]:
        if choice["finish_reason"]:
            offsets = {"check_offset": 0, "start_offset": 0, "end_offset": 1}
            choice_head = {"index": choice["index"], "finish_reason": None}
            yield {**_NAMELESS, "choices": [{**choice_head, "content_filter_offsets": offsets}]}
    yield chunk


AZURE = Personality(
    "azure",
    "streams begin with a chunk of prompt_filter_results; content_filter_results in each choice, "
    "also in one without a delta; thoughts are not shown; content_filters in a response",
    opening=b"data: " + orjson.dumps(_FIRST) + b"\n\n",
    chunks=_chunks,
    convert_answer=_convert_answer,
    convert_responses_request=as_it_is,
    convert_response=_convert_response,
)
