"""The embedded model as a provider: batches, fields it cannot serve, and failures."""

from collections.abc import Sequence

import pytest

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, EmbedResponse, GenerateRequest
from services.common.errors import GatewayError, UpstreamError, unsupported
from services.common.text import packed_floats
from services.inference.providers import embedded
from services.inference.providers.base import Call, EmbeddingCall, Target
from services.inference.providers.embedded import E5, EmbeddedProvider
from services.media.conversion.answers import refused
from services.media.conversion.parts import Source, TextVectors

NAME = f"embedded/{E5}"
TARGET = Target(NAME, "embedded", E5)


def extra(json: bytes) -> Opaque:
    return Opaque(dialect=DIALECT_OPENAI, json=json)


class LengthEmbedder:
    """Makes vectors of two numbers: the length of a text, and 1."""

    def __init__(self, error: GatewayError | None = None) -> None:
        self.batches: list[int] = []
        self.was_query = False
        self._error = error

    async def vectors(self, texts: Sequence[str], *, is_query: bool) -> TextVectors:
        self.was_query = is_query
        self.batches.append(len(texts))
        if self._error is not None:
            raise self._error
        packed = b"".join(packed_floats.pack([len(text), 1]) for text in texts)
        return TextVectors(2, packed, 3 * len(texts))

    async def transcript(self, source: Source, *, language: str) -> str:
        raise NotImplementedError


async def embed(embedder: LengthEmbedder, inputs: EmbedRequest) -> EmbedResponse:
    call = EmbeddingCall(GenerateRequest(), TARGET, stream=False, inputs=inputs)
    return await EmbeddedProvider("embedded", embedder).embed(call)


async def raised_by(embedder: LengthEmbedder, inputs: EmbedRequest) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await embed(embedder, inputs)
    return caught.value


async def test_many_texts_are_made_in_batches() -> None:
    embedder = LengthEmbedder()
    made = await embed(embedder, EmbedRequest(texts=["x" * n for n in range(1, 71)]))
    assert embedder.batches == [32, 32, 6]
    assert [list(packed_floats.unpack(one)) for one in made.vectors] == [
        [n, 1] for n in range(1, 71)
    ]
    assert (made.model, made.input_tokens) == (E5, 210)


async def test_other_dimensions_than_the_models_are_refused() -> None:
    made = await embed(LengthEmbedder(), EmbedRequest(texts=["a"], dimensions=2))
    assert len(made.vectors) == 1
    error = await raised_by(LengthEmbedder(), EmbedRequest(texts=["a"], dimensions=3))
    assert (error.reason, error.param) == (errors_pb2.REASON_INVALID_REQUEST, "dimensions")
    assert "must be 2 for" in error.message


@pytest.mark.parametrize(
    ("given", "is_query"),
    [
        (EmbedRequest(texts=["a"]), False),
        (EmbedRequest(texts=["a"], is_query=True), True),
        (EmbedRequest(texts=["a"], extra=extra(b'{"input_type":"query","x":1}')), True),
        (EmbedRequest(texts=["a"], extra=extra(b'{"input_type":"passage","x":1}')), False),
    ],
)
async def test_callers_say_what_the_texts_are_for(given: EmbedRequest, is_query: bool) -> None:
    embedder = LengthEmbedder()
    call = EmbeddingCall(GenerateRequest(), TARGET, stream=False, inputs=given)
    await EmbeddedProvider("embedded", embedder).embed(call)
    assert embedder.was_query is is_query
    assert call.dropped == (["extra.x"] if given.extra.json else [])


async def test_tokens_in_place_of_texts_are_refused() -> None:
    inputs = EmbedRequest()
    inputs.token_lists.add(tokens=[1])
    error = await raised_by(LengthEmbedder(), inputs)
    assert (error.reason, error.param) == (errors_pb2.REASON_UNSUPPORTED, "token_lists")


async def test_missing_library_says_what_to_install() -> None:
    missing = unsupported("", "pip install 'sluicegate[embeddings]'")
    error = await raised_by(LengthEmbedder(missing), EmbedRequest(texts=["a"]))
    assert not isinstance(error, UpstreamError)
    assert error.param == "model"
    assert "pip install 'sluicegate[embeddings]'" in error.message


async def test_a_failed_worker_is_a_failed_provider() -> None:
    error = await raised_by(
        LengthEmbedder(refused("it takes longer", "limits.conversion_timeout_s")),
        EmbedRequest(texts=["a"]),
    )
    assert isinstance(error, UpstreamError)
    assert error.limit == "limits.conversion_timeout_s"


async def test_requests_for_text_are_refused() -> None:
    provider = EmbeddedProvider("embedded", LengthEmbedder())
    for stream in (False, True):
        call = Call(GenerateRequest(), TARGET, stream)
        with pytest.raises(GatewayError) as caught:
            if stream:
                await anext(provider.stream(call))
            else:
                await provider.whole(call)
        assert caught.value.reason == errors_pb2.REASON_UNSUPPORTED
        assert NAME in caught.value.message


def test_model_is_listed_only_where_its_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedded.embedded_models()[E5].listed
    monkeypatch.setitem(embedded._LIBRARIES, E5, "no_such_library")
    assert not embedded.embedded_models()[E5].listed
