"""Cohere's clients of both versions of its API: reranking, and what the gateway refuses."""

import cohere
from cohere.core.api_error import ApiError
from steps import ADDRESS, KEY, run

MODEL = "cohere/rerank-v5.0-pro"
QUERY = "warm dogs"
DOCUMENTS = ["a cat", "warm dogs sleep", "cold dogs"]
older = cohere.Client(api_key=KEY, base_url=ADDRESS)
newer = cohere.ClientV2(api_key=KEY, base_url=ADDRESS)


def reranks(model: str) -> None:
    answer = newer.rerank(
        model=model, query=QUERY, documents=DOCUMENTS, top_n=2, max_tokens_per_doc=100
    )
    assert [one.index for one in answer.results] == [1, 2], answer
    assert answer.meta.billed_units.search_units == 1, answer


async def reranks_asynchronously(model: str) -> None:
    async with cohere.AsyncClientV2(api_key=KEY, base_url=ADDRESS) as client:
        answer = await client.rerank(model=model, query=QUERY, documents=DOCUMENTS)
    assert [one.index for one in answer.results] == [1, 2, 0], answer


def reranks_with_the_older_version(model: str) -> None:
    answer = older.rerank(model=model, query=QUERY, documents=DOCUMENTS, return_documents=True)
    assert answer.results[0].document.text == DOCUMENTS[1], answer
    places = [{"text": "a cat", "title": "warm dogs"}, {"text": "dogs", "title": "none"}]
    answer = older.rerank(model=model, query=QUERY, documents=places, rank_fields=["title"])
    assert [one.index for one in answer.results] == [0, 1], answer


def reads_errors(model: str) -> None:
    for name, documents, key, status in (
        ("cohere", [], KEY, 400),
        ("nowhere/rerank", DOCUMENTS, KEY, 404),
        (model, DOCUMENTS, "gw-none", 401),
    ):
        client = cohere.ClientV2(api_key=key, base_url=ADDRESS)
        try:
            answer = client.rerank(model=name, query=QUERY, documents=documents)
        except ApiError as error:
            assert error.status_code == status, error
        else:
            raise AssertionError(answer)


run(
    reranks,
    reranks_asynchronously,
    reranks_with_the_older_version,
    reads_errors,
    models=[MODEL],
)
