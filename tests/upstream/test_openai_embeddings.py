"""The upstream's vectors, requested with the official SDK."""

import math

import openai
import pytest

from tests.grid import each_row
from tests.upstream.checks import load_checks
from tests.upstream.openai_embeddings_rules import find_problem


@pytest.fixture
async def client(upstream):
    async with openai.AsyncOpenAI(
        base_url=f"{upstream.url}/v1", api_key="sk-1", max_retries=0
    ) as made:
        yield made


def likeness(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


async def vectors(client, *texts):
    answer = await client.embeddings.create(model="embed", input=list(texts))
    assert [item.index for item in answer.data] == list(range(len(texts)))
    return [item.embedding for item in answer.data]


async def test_each_text_gets_a_vector_of_length_one(client):
    made = await vectors(client, "a dog", "two cats", "…", "日本")
    assert {len(vector) for vector in made} == {256}
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-5) for vector in made)


async def test_the_same_text_gets_the_same_vector(client):
    assert await vectors(client, "a dog") == await vectors(client, "a dog")


async def test_texts_that_share_words_or_parts_of_them_are_near(client):
    asked, answer, other = await vectors(
        client,
        "what is my dog called?",
        "My dogs are called Rex and Bello.",
        "The train to Basel leaves at nine.",
    )
    assert likeness(asked, answer) > 0.3 > likeness(asked, other)


async def test_one_text_and_plain_numbers_are_taken_too(client):
    answer = await client.embeddings.create(
        model="sandbox/embed", input="a dog", encoding_format="float"
    )
    assert answer.data[0].embedding == pytest.approx((await vectors(client, "a dog"))[0], abs=1e-6)
    assert answer.usage.prompt_tokens == 2


async def test_tokens_are_taken_too(client):
    answer = await client.embeddings.create(model="embed", input=[[1, 20], [3]])
    assert [item.embedding for item in answer.data] == await vectors(client, "1 20", "3")
    answer = await client.embeddings.create(model="embed", input=[1, 20])
    assert len(answer.data) == 1


async def test_fewer_dimensions_are_taken_too(client):
    answer = await client.embeddings.create(model="embed", input="a dog", dimensions=8)
    [made] = [item.embedding for item in answer.data]
    assert len(made) == 8
    assert math.isclose(math.hypot(*made), 1, abs_tol=1e-5)


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("echo", openai.BadRequestError),
        ("none", openai.NotFoundError),
        ("fail-429", openai.RateLimitError),
        ("fail-500", openai.InternalServerError),
    ],
)
async def test_a_model_that_makes_none_says_so(client, model, error):
    with pytest.raises(error):
        await client.embeddings.create(model=model, input="a dog")


async def test_the_model_for_vectors_does_not_chat(client):
    with pytest.raises(openai.BadRequestError, match="does not chat"):
        await client.chat.completions.create(
            model="embed", messages=[{"role": "user", "content": "hi"}]
        )


@each_row(
    ("fields", "path"),
    [
        ({"input": []}, ("input",)),
        ({"input": ""}, ("input",)),
        ({"input": ["a", ""]}, ("input", 1)),
        ({"input": ["a"] * 2049}, ("input",)),
        ({"input": [[1, 2], []]}, ("input", 1)),
        ({"input": [1, "a"]}, ("input", 0)),
        ({"input": [1.5]}, ("input", 0)),
        ({"input": 1}, ("input",)),
        ({}, ("input",)),
        ({"input": "a", "encoding_format": "text"}, ("encoding_format",)),
        ({"input": "a", "dimensions": 0}, ("dimensions",)),
        ({"input": "a", "dimensions": 257}, ("dimensions",)),
        ({"input": "a", "texts": ["a"]}, ("texts",)),
    ],
)
def test_what_openai_refuses_is_refused_by_its_field(fields, path):
    body = {"model": "embed", **fields}
    problem = load_checks().embeddings(body) or find_problem(body)
    assert problem.path == path
