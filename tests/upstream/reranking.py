"""Cohere's rerankers of both versions of its API: documents by the words of the query they have."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from aiohttp import web

_SHARED: Final = frozenset({"model", "query", "documents", "top_n"})
# https://docs.cohere.com/v1/reference/rerank, https://docs.cohere.com/reference/rerank
_FIELDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "v1": _SHARED | {"rank_fields", "return_documents", "max_chunks_per_doc"},
        "v2": _SHARED | {"max_tokens_per_doc", "relevant_spans", "priority"},
    }
)


async def rerank(request: web.Request) -> web.Response:
    """Answer a request for an order of documents."""
    version = request.match_info["version"]
    body = orjson.loads(await request.read())
    if unknown := body.keys() - _FIELDS[version]:
        return _refusal(f"unknown fields: {sorted(unknown)}")
    documents = body["documents"]
    if version == "v2" and not all(isinstance(one, str) for one in documents):
        return _refusal("documents must be strings")
    texts = [one if isinstance(one, str) else _text(one, body) for one in documents]
    words = set(body["query"].split())
    scores = [len(words & set(text.split())) / len(words) for text in texts]
    results: list[dict[str, Any]] = [
        {"index": index, "relevance_score": score} for index, score in enumerate(scores)
    ]
    if body.get("return_documents"):
        for result, text in zip(results, texts, strict=True):
            result["document"] = {"text": text}
    results.sort(key=lambda result: -result["relevance_score"])
    meta = {"api_version": {"version": version[1:]}, "billed_units": {"search_units": 1}}
    return web.json_response(
        {"id": "rerank-1", "results": results[: body.get("top_n")], "meta": meta}
    )


def _text(document: Mapping[str, str], body: Mapping[str, Any]) -> str:
    return " ".join(document[name] for name in body.get("rank_fields", ["text"]))


def _refusal(message: str) -> web.Response:
    return web.json_response({"id": "rerank-1", "message": message}, status=400)
