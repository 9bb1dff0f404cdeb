"""Answers of Gemini's, as its reference and its servers have them."""

from typing import Any

import orjson

USAGE = {
    "promptTokenCount": 12,
    "candidatesTokenCount": 5,
    "totalTokenCount": 20,
    "thoughtsTokenCount": 3,
    "cachedContentTokenCount": 4,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
}
HEAD = {"modelVersion": "gemini-3-flash", "responseId": "r-1"}
CALL = {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "Y2FsbA=="}
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "AAE="}}


def chunk(*parts: Any, finish: str = "", usage: Any = USAGE, **fields: Any) -> dict[str, Any]:
    """Return a piece of an answer; `fields` are the candidate's."""
    end = {"finishReason": finish} if finish else {}
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **end, **fields}
    return {"candidates": [candidate], "usageMetadata": usage, **HEAD}


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"text": said, **fields}


def wire(*chunks: Any) -> bytes:
    """Return a stream as Google writes it."""
    return b"".join(b"data: %s\r\n\r\n" % orjson.dumps(one) for one in chunks)


# With everything that the reference documents.
WHOLE = chunk(
    text("hm", thought=True),
    text("Hello"),
    CALL,
    {"functionCall": {"name": "g"}},
    PICTURE,
    {"executableCode": {"language": "PYTHON", "code": "1"}},
    finish="STOP",
    avgLogprobs=-0.5,
    finishMessage="x",
    safetyRatings=[{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "LOW"}],
    citationMetadata={"citationSources": [{"uri": "https://x.test"}]},
    logprobsResult={
        "chosenCandidates": [{"token": "He", "tokenId": 1, "logProbability": -0.5}],
        "topCandidates": [{"candidates": [{"token": "Ho", "logProbability": -1.5}]}],
    },
)
CHUNKS = [
    chunk(text("h", thought=True), usage={"promptTokenCount": 12}),
    chunk(text("m", thought=True, thoughtSignature="dGhv")),
    chunk(text("Hel")),
    chunk(text("lo"), CALL),
    chunk(PICTURE),
    chunk(text("", thoughtSignature="dGV4dA=="), finish="STOP"),
]
