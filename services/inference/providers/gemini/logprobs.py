"""Convert Gemini's log probabilities (`logprobsResult`) to OpenAI's format."""

from itertools import zip_longest
from typing import Any

from services.inference.providers.bounds import dump

Json = dict[str, Any]


def read_logprobs(result: Json) -> bytes:
    """Return the log probabilities of tokens and of their alternatives.

    Raises:
        ValueError: the JSON is nested too deeply.
        AttributeError, TypeError: the JSON is malformed.
    """
    chosen = result.get("chosenCandidates") or ()
    alternatives = result.get("topCandidates") or ()
    content = [
        {
            **_token(one),
            "top_logprobs": [_token(other) for other in (top or {}).get("candidates") or ()],
        }
        for one, top in zip_longest(chosen, alternatives[: len(chosen)])
    ]
    return dump({"content": content, "refusal": None})


def _token(candidate: Json) -> Json:
    token = candidate.get("token") or ""
    probability = candidate.get("logProbability") or 0
    return {"token": token, "logprob": probability, "bytes": list(token.encode())}
