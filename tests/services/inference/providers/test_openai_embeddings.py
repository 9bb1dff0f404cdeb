"""OpenAI's embeddings at its servers, and at those that speak some of its dialect."""

import base64
import struct
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, DIALECT_OPENAI, Opaque
from gateway.inference.v1.inference_pb2 import EmbedRequest, TokenList
from services.common.errors import GatewayError, UpstreamError
from services.common.text.packed_floats import pack, unpack
from services.inference.providers import vectors
from services.inference.providers.openai import OpenAIProvider
from services.inference.providers.vectors import VectorTexts
from tests.services.inference.providers.changes import spread
from tests.services.inference.providers.embedding_calls import embedding_call
from tests.services.inference.providers.scripted_server import ScriptedUpstream, scripted_upstream

BASE64 = EmbedRequest.ENCODING_BASE64
FLOAT = EmbedRequest.ENCODING_FLOAT
USAGE = {"prompt_tokens": 3, "total_tokens": 3}


@pytest.fixture
async def here() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as made:
        yield made


def provider(here: ScriptedUpstream) -> OpenAIProvider:
    upstream = here.upstream(None)
    return OpenAIProvider("acme", upstream, pass_stateful=False, newest=False, fetches_urls=False)


def encoded(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def answer_of(*embeddings: Any, **fields: Any) -> bytes:
    items = [
        {"object": "embedding", "index": index, "embedding": embedding}
        for index, embedding in enumerate(embeddings)
    ]
    answer = {"object": "list", "data": items, "model": "m-1", "usage": USAGE, **fields}
    return orjson.dumps(answer, option=orjson.OPT_INDENT_2)


async def asked(here: ScriptedUpstream, answer: bytes, **fields: Any) -> Any:
    here.server.plays(lambda c: c.answer(answer))
    return await provider(here).embed(embedding_call(["a", "b"], **fields))


@pytest.mark.parametrize(
    ("encoding", "embeddings"),
    [
        (FLOAT, ([0.5, 1], [-1e-9, 2])),
        (EmbedRequest.ENCODING_UNSPECIFIED, ([0.5, 1], [-1e-9, 2])),
        (BASE64, (encoded(0.5, 1), encoded(0, 2))),
    ],
)
async def test_an_answer_goes_on_byte_for_byte(
    here: ScriptedUpstream, encoding: EmbedRequest.Encoding.ValueType, embeddings: Any
) -> None:
    answer = answer_of(*embeddings, of_next_year={"a": [1, 2]})
    # No vector is parsed into numbers.
    with patch.object(vectors, "packed", side_effect=AssertionError):
        response = await asked(here, answer, encoding=encoding)
    assert response.passthrough == answer
    assert not response.vectors
    assert (response.input_tokens, response.estimated) == (3, False)


@pytest.mark.parametrize(("encoding", "wanted"), [(FLOAT, [[0.5, 1.0]] * 2), (BASE64, None)])
async def test_a_server_without_the_encoding_is_mended(
    here: ScriptedUpstream, encoding: EmbedRequest.Encoding.ValueType, wanted: Any
) -> None:
    other = [0.5, 1] if encoding == BASE64 else encoded(0.5, 1)
    response = await asked(here, answer_of(other, other, extra={"a": [1]}), encoding=encoding)
    parsed = orjson.loads(response.passthrough)
    assert [item["embedding"] for item in parsed["data"]] == (wanted or [encoded(0.5, 1)] * 2)
    assert (parsed["extra"], parsed["usage"], parsed["model"]) == ({"a": [1]}, USAGE, "m-1")


async def test_what_a_server_leaves_out_is_added(here: ScriptedUpstream) -> None:
    items = [{"embedding": [2, 1], "index": 1, "own": 7}, {"embedding": [0.5, 1], "index": 0}]
    response = await asked(here, orjson.dumps({"data": items}))
    parsed = orjson.loads(response.passthrough)
    assert parsed == {
        "object": "list",
        "model": "embed",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.5, 1]},
            {"object": "embedding", "index": 1, "embedding": [2, 1], "own": 7},
        ],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }
    assert (response.input_tokens, response.estimated) == (2, True)


async def test_all_of_a_request_goes_on(here: ScriptedUpstream) -> None:
    extra = Opaque(dialect=DIALECT_OPENAI, json=b'{"of_next_year":{"a":[1]}}')
    fields: dict[str, Any] = {"dimensions": 2, "end_user": "ada", "extra": extra}
    await asked(here, answer_of(encoded(1, 2), encoded(1, 2)), encoding=BASE64, **fields)
    assert orjson.loads(here.server.requests[-1].body) == {
        "model": "embed",
        "input": ["a", "b"],
        "dimensions": 2,
        "encoding_format": "base64",
        "user": "ada",
        "of_next_year": {"a": [1]},
    }


async def test_tokens_go_on(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(answer_of([1], [2])))
    lists = [TokenList(tokens=[1, 2]), TokenList(tokens=[3])]
    await provider(here).embed(embedding_call(token_lists=lists))
    assert orjson.loads(here.server.requests[-1].body)["input"] == [[1, 2], [3]]


async def test_fields_of_another_dialect_are_dropped(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(answer_of([1])))
    call = embedding_call(["a"], extra=Opaque(dialect=DIALECT_ANTHROPIC, json=b'{"x":1}'))
    await provider(here).embed(call)
    assert call.dropped == ["extra.x"]
    assert "x" not in orjson.loads(here.server.requests[-1].body)


async def test_files_kept_at_the_provider_are_refused(here: ScriptedUpstream) -> None:
    call = embedding_call(["a"], extra=Opaque(dialect=DIALECT_OPENAI, json=b'{"file_id":"f"}'))
    with pytest.raises(GatewayError):
        await provider(here).embed(call)


@pytest.mark.parametrize("encoding", [FLOAT, BASE64])
async def test_any_value_in_an_answer_is_json_or_a_failure(
    here: ScriptedUpstream, encoding: EmbedRequest.Encoding.ValueType
) -> None:
    whole = orjson.loads(answer_of([0.5], encoded(1)))
    for value in (None, True, -1, 1e308, 1e30, "", "AAAA", "é", [], [[]], [{}], {}, [1, [2]]):
        for path in spread(whole):
            changed = orjson.loads(orjson.dumps(whole))
            at = changed
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = value
            try:
                response = await asked(here, orjson.dumps(changed), encoding=encoding)
            except UpstreamError:
                continue
            parsed = orjson.loads(response.passthrough)
            kinds = {type(item["embedding"]) for item in parsed["data"]}
            assert kinds == {str if encoding == BASE64 else list}
            assert [item["index"] for item in parsed["data"]] == [0, 1]
            assert parsed["usage"]["prompt_tokens"] == response.input_tokens


@given(
    st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=1), min_size=1, max_size=4),
    st.sampled_from([None, orjson.OPT_INDENT_2]),
    st.text(),
)
def test_lists_are_set_aside_and_found_again(
    lists: list[list[float]], option: int | None, text: str
) -> None:
    lists = [[number for number in one if abs(number) < 3e38] or [0.0] for one in lists]
    value = {"t": f'{text}"embedding":[1]', "data": [{"embedding": one} for one in lists], "n": [1]}
    answer = orjson.dumps(value, option=option)
    found = VectorTexts(answer, "embedding")
    outline = orjson.loads(found.outline)
    assert (outline["t"], outline["n"]) == (value["t"], [1])
    aside = [found.vector_of(item["embedding"]) for item in outline["data"]]
    assert [one and orjson.loads(one.text) for one in aside] == lists
    assert [one and one.length for one in aside] == [*map(len, lists)]
    for one, numbers in zip(aside, lists, strict=True):
        assert one is not None
        assert unpack(vectors.packed(one, "p")).tolist() == unpack(pack(numbers)).tolist()


@pytest.mark.parametrize(
    "text", ["AAAA", "AAAAA===", "AAAAA=A=", "AAA", "AAAAAA", "====", "", "AAAA AAA=", "AAAAAA-_"]
)
async def test_what_is_no_base64_of_floats_is_a_failure(here: ScriptedUpstream, text: str) -> None:
    with pytest.raises(UpstreamError):
        await asked(here, answer_of(text, text), encoding=BASE64)


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_the_length_is_known_without_decoding(numbers: list[float]) -> None:
    text = b'"%b"' % base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers))
    whole = orjson.dumps({"embedding": orjson.Fragment(text)})
    found = VectorTexts(whole, "embedding")
    vector = found.vector_of(orjson.loads(found.outline)["embedding"])
    assert vector == (text, len(numbers), True)
    as_list = orjson.dumps({"embedding": vectors.in_json(vector, "p", base64=False)})
    other = VectorTexts(as_list, "embedding").vector_of([0])
    assert vectors.check_lengths([vector, other], "p")
    assert unpack(vectors.packed(vector, "p")).tolist() == numbers


async def test_another_order_is_put_right(here: ScriptedUpstream) -> None:
    whole = orjson.loads(answer_of([0.5], [1]))
    whole["data"].reverse()
    response = await asked(here, orjson.dumps(whole))
    assert orjson.loads(response.passthrough) == orjson.loads(answer_of([0.5], [1]))
