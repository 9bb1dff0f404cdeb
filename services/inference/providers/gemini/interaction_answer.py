"""Answers of Google's Interactions API as those of `generateContent`. Pure.

Steps become parts of one candidate. A call's arguments are gathered until its step ends.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.gemini.events import MALFORMED, AnswerReader
from services.inference.providers.gemini.interaction_body import STEP
from services.inference.providers.sse import read_event
from services.inference.stream.patience import has_content

Json = dict[str, Any]

_REASONS: Final = {
    "completed": "STOP",
    "requires_action": "STOP",
    "incomplete": "MAX_TOKENS",
    "requires_continuation": "MAX_TOKENS",
}
_DONE: Final = b"[DONE]"
_TEXTS: Final = ("text",)
_MEDIA: Final = ("image", "audio", "video", "document")
_COUNTS: Final = {
    "total_input_tokens": "promptTokenCount",
    "total_output_tokens": "candidatesTokenCount",
    "total_thought_tokens": "thoughtsTokenCount",
    "total_cached_tokens": "cachedContentTokenCount",
    "total_tool_use_tokens": "toolUsePromptTokenCount",
    "total_tokens": "totalTokenCount",
}
_DETAILS: Final = {
    "input_tokens_by_modality": "promptTokensDetails",
    "cached_tokens_by_modality": "cacheTokensDetails",
    "output_tokens_by_modality": "candidatesTokensDetails",
}


class StepTranslator:
    """Translates the steps of one answer, whole or as they arrive, to parts."""

    def __init__(self) -> None:
        self._open: dict[int, Json] = {}  # steps whose end has not arrived
        self._arguments: dict[int, list[str]] = {}
        self._signature = ""  # of a thought without a text, for the next part
        self._has_text: set[int] = set()  # thoughts that have had a text
        self._queries: list[str] = []
        self._chunks: list[Json] = []  # of the grounding
        self._supports: list[Json] = []
        self._fetched: list[Json] = []
        self._length = 0  # of the text so far, in bytes

    def whole(self, steps: list[Json]) -> list[Json]:
        """Return the parts of whole steps."""
        parts = []
        for index, step in enumerate(steps):
            parts += self.start(index, step)
            parts += self.stop(index)
        return parts

    def start(self, index: int, step: Json) -> list[Json]:
        """Return the parts of a step that begins, with what it has already."""
        self._open[index] = step
        match step.get("type"):
            case "model_output":
                return [part for one in step.get("content") or () for part in self._content(one)]
            case "thought":
                texts = [one.get("text") for one in step.get("summary") or ()]
                return [part for text in texts if text for part in self._thought(index, text)]
        return []

    def delta(self, index: int, delta: Json) -> list[Json]:
        """Return the parts of a delta."""
        step = self._open.setdefault(index, {})
        match delta.get("type"):
            case "thought_summary":
                text = (delta.get("content") or {}).get("text")
                return self._thought(index, text) if text else []
            case "thought_signature":
                step["signature"] = delta.get("signature")
            case "arguments_delta":
                self._arguments.setdefault(index, []).append(delta.get("arguments") or "")
            case "text_annotation_delta":
                self._annotate(delta.get("annotations") or ())
            case str(kind) if kind == step.get("type"):
                step |= {name: one for name, one in delta.items() if name != "type"}
            case _:
                return self._content(delta)
        return []

    def stop(self, index: int) -> list[Json]:
        """Return the parts of a step that ends."""
        step = self._open.pop(index, {})
        match step.get("type"):
            case "model_output" | "user_input" | None:
                return []
            case "thought":
                return self._end_thought(index, step)
            case "function_call":
                return [self._signed(self._call(index, step))]
            case "google_search_call":
                self._queries += (step.get("arguments") or {}).get("queries") or ()
                return []
            case "google_search_result" | "url_context_call":
                return []
            case "url_context_result":
                self._fetched += [
                    {
                        "retrievedUrl": one.get("url"),
                        "urlRetrievalStatus": f"URL_RETRIEVAL_STATUS_{_upper(one.get('status'))}",
                    }
                    for one in step.get("result") or ()
                ]
                return []
            case "code_execution_call":
                code = (step.get("arguments") or {}).get("code") or ""
                program = {"language": "PYTHON", "code": code, "id": step.get("id") or ""}
                return [self._signed({"executableCode": program})]
            case "code_execution_result":
                outcome = "OUTCOME_FAILED" if step.get("is_error") else "OUTCOME_OK"
                result = {"outcome": outcome, "output": step.get("result") or ""}
                return [{"codeExecutionResult": {**result, "id": step.get("call_id") or ""}}]
        return [self._signed({STEP: step})]

    def metadata(self) -> Json:
        """Return the fields of the candidate about what Google has searched and read."""
        fields: Json = {}
        if self._queries or self._chunks:
            fields["groundingMetadata"] = {
                "webSearchQueries": self._queries,
                "groundingChunks": self._chunks,
                "groundingSupports": self._supports,
            }
        if self._fetched:
            fields["urlContextMetadata"] = {"urlMetadata": self._fetched}
        return fields

    def _thought(self, index: int, text: str) -> list[Json]:
        self._has_text.add(index)
        return [{"text": text, "thought": True}]

    def _end_thought(self, index: int, step: Json) -> list[Json]:
        signature = step.get("signature")
        if not signature:
            return []
        if index in self._has_text:
            return [{"text": "", "thought": True, "thoughtSignature": signature}]
        self._signature = signature
        return []

    def _call(self, index: int, step: Json) -> Json:
        written = "".join(self._arguments.pop(index, ()))
        args = orjson.loads(written) if written else step.get("arguments") or {}
        return {"functionCall": {"id": step["id"], "name": step["name"], "args": args}}

    def _content(self, content: Json) -> list[Json]:
        kind = content.get("type")
        if kind == "text":
            text = content.get("text") or ""
            self._length += len(text.encode())
            self._annotate(content.get("annotations") or ())
            return [self._signed({"text": text})] if text else []
        if kind in _MEDIA and content.get("data"):
            mime = content.get("mime_type") or "image/png"
            return [self._signed({"inlineData": {"mimeType": mime, "data": content["data"]}})]
        if kind in _MEDIA and content.get("uri"):
            file = {"fileUri": content["uri"], "mimeType": content.get("mime_type") or ""}
            return [self._signed({"fileData": file})]
        return [{STEP: {"type": "model_output", "content": [content]}}]

    def _signed(self, part: Json) -> Json:
        """Return a part with the signature of the thought before it."""
        if not self._signature:
            return part
        part["thoughtSignature"], self._signature = self._signature, ""
        return part

    def _annotate(self, annotations: Any) -> None:
        for one in annotations:
            if one.get("type") != "url_citation" or not one.get("url"):
                continue
            place = len(self._chunks)
            self._chunks.append({"web": {"uri": one["url"], "title": one.get("title") or ""}})
            end = one.get("end_index")
            segment = {
                "startIndex": one.get("start_index") or 0,
                "endIndex": self._length if end is None else end,
            }
            self._supports.append({"segment": segment, "groundingChunkIndices": [place]})


class InteractionReader(AnswerReader):
    """Parses one interaction; see `AnswerReader`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._steps = StepTranslator()
        self.ended = False

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; see `AnswerReader.feed`."""
        already = len(out)
        at = 0
        while at < len(text):
            sent, at = read_event(text, at)
            if sent is None or sent.data == _DONE:
                continue
            event = self._bounds.parse(sent.data)
            if not isinstance(event, dict):
                raise self._broken("streamed an event that is not a JSON object", sent.data)
            if event.get("event_type") == "error" or event.get("error"):
                raise self._errors.in_band(sent.data)
            try:
                self._read_event(event, out)
            except MALFORMED as error:
                raise self._broken("streamed a malformed event", sent.data) from error
        self.has_content = self.has_content or has_content(out[already:])

    def read_whole(self, answer: Json, out: list[Event]) -> None:
        """Append to `out` the events of a whole interaction.

        Raises:
            UpstreamError: it has failed, or is malformed.
        """
        try:
            parts = self._steps.whole(answer.get("steps") or [])
            self._add(parts, answer, out)
            self._finish(answer, out)
        except MALFORMED as error:
            raise self._broken("returned a malformed answer") from error
        self.end(out)

    def _read_event(self, event: Json, out: list[Event]) -> None:
        match event["event_type"]:
            case "interaction.created":
                self._add([], event["interaction"], out)
            case "step.start":
                self._add(self._steps.start(event["index"], event["step"]), {}, out)
            case "step.delta":
                self._add(self._steps.delta(event["index"], event["delta"]), {}, out)
            case "step.stop":
                self._add(self._steps.stop(event["index"]), {}, out)
            case "interaction.completed":
                self._finish(event["interaction"], out)
                self.ended = True

    def _add(self, parts: list[Json], about: Json, out: list[Event]) -> None:
        chunk: Json = {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]}
        self.read({**chunk, **_named(about)}, out)

    def _finish(self, interaction: Json, out: list[Event]) -> None:
        reason = _REASONS.get(interaction["status"])
        if reason is None:
            raise self._errors.in_band(orjson.dumps({"error": _error(interaction)}))
        candidate = {"index": 0, "finishReason": reason, **self._steps.metadata()}
        usage = _usage(interaction.get("usage") or {})
        self.read({"candidates": [candidate], "usageMetadata": usage, **_named(interaction)}, out)


def _named(interaction: Mapping[str, Any]) -> Json:
    names = (("id", "responseId"), ("model", "modelVersion"))
    return {own: interaction[name] for name, own in names if interaction.get(name)}


def _error(interaction: Json) -> Json:
    errors = interaction.get("errors") or [{}]
    status = interaction["status"]
    message = errors[0].get("message") or f"the interaction ended with the status {status}"
    return {"code": 500, "message": message, "status": errors[0].get("code") or "INTERNAL"}


def _usage(usage: Json) -> Json:
    made: Json = {own: usage[name] for name, own in _COUNTS.items() if usage.get(name)}
    for name, own in _DETAILS.items():
        if details := usage.get(name):
            made[own] = [
                {"modality": _upper(one.get("modality")), "tokenCount": one.get("tokens") or 0}
                for one in details
            ]
    return made


def _upper(value: object) -> str:
    return str(value or "").upper()
