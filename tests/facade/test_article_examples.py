"""The examples of document editing in the OpenAPI document: played against a gateway.

They are one session in their order, so the ids in them stand for those that the server
made: an example's answer and the real one, side by side, say which stands for which.
"""

import re

import jsonschema_rs
import pytest
import pytest_asyncio

from facade.description import openapi
from facade.dialects.articles.examples import EXAMPLES
from facade.endpoints import ENDPOINTS as ALL_ENDPOINTS
from facade.routes.articles import ENDPOINTS, image
from tests.gateway_in_process import running_gateway
from tests.grid import each_row
from tests.openapi import openapi_document

pytestmark = pytest.mark.asyncio(loop_scope="module")

PREFIX = "/article/v1/"
SERVER_MADE = {"sessionId", "id", "ids", "outer_id", "time_create", "time", "group_id", "user"}
SERVER_MADE |= {"time_join", "commentId", "suggestionId", "edited", "idle"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory):
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


def learn(example, real, names, key=""):
    """Record which ids of the server stand for those of an example."""
    if isinstance(example, dict) and isinstance(real, dict):
        for name in example.keys() & real.keys():
            learn(example[name], real[name], names, name)
    elif isinstance(example, list) and isinstance(real, list):
        for one, other in zip(example, real, strict=False):
            learn(one, other, names, key)
    elif key in SERVER_MADE:
        assert type(example) is type(real)
        assert names.setdefault(example, real) == real


def translated(example, names):
    if isinstance(example, dict):
        return {name: translated(value, names) for name, value in example.items()}
    if isinstance(example, list):
        return [translated(value, names) for value in example]
    return example if isinstance(example, bool) else names.get(example, example)


def schema(of):
    return jsonschema_rs.validator_for({**of, "components": openapi_document()["components"]})


def operation(path):
    return openapi_document()["paths"][PREFIX + path]["post"]


async def test_examples_work_in_order_with_the_documented_answers(gateway):
    names = {}
    calls = []
    for path, example in EXAMPLES.items():
        if example.before is not None:
            calls.append(example.before)
        calls.append((path, example))
    for path, example in calls:
        body = translated(example.body, names)
        headers = {"x-api-key": gateway.key}
        async with gateway.http.post(
            gateway.url + PREFIX + path, json=body, headers=headers
        ) as answer:
            answer_body = await answer.json()
        assert answer_body["code"] == 1, (path, answer_body)
        learn(example.data, answer_body["data"], names)
        assert answer_body["data"] == translated(example.data, names), path
        content = operation(path)["responses"]["200"]["content"]["application/json"]
        schema(content["schema"]).validate(answer_body)


@each_row("path", EXAMPLES)
async def test_an_example_fits_its_schema(path):
    described = operation(path)
    sent = described["requestBody"]["content"]["application/json"]
    schema(sent["schema"]).validate(sent["example"])
    given = described["responses"]["200"]["content"]["application/json"]
    schema(given["schema"]).validate(given["example"])
    assert sent["example"] == EXAMPLES[path].body
    assert given["example"] == {"code": 1, "data": EXAMPLES[path].data}


async def test_every_endpoint_has_an_example():
    assert {PREFIX + path for path in EXAMPLES} == {
        endpoint.path for endpoint in ENDPOINTS if endpoint is not image.ENDPOINT
    }


async def test_a_refusal_fits_its_schema(gateway):
    headers = {"x-api-key": gateway.key}
    url = gateway.url + PREFIX + "doc/read"
    async with gateway.http.post(url, json={"sessionId": "x"}, headers=headers) as answer:
        body = await answer.json()
    assert (answer.status, body["code"]) == (404, 40401)
    content = operation("doc/read")["responses"]["4XX"]["content"]["application/json"]
    schema(content["schema"]).validate(body)


async def test_every_reference_in_the_document_leads_somewhere():
    names = re.findall(r'"#/components/schemas/([^"]+)"', openapi.document(ALL_ENDPOINTS).decode())
    assert set(names) <= openapi_document()["components"]["schemas"].keys()
