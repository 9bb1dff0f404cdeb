"""The files calls of the official Python SDKs, with base_url and key alone."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import anthropic
import openai
import pytest

from tests.e2e.gateway import Gateway

pytestmark = pytest.mark.thorough(one_in=3)

CONTENT = bytes(range(256)) * 4097
NO_FILE = "file-" + "0" * 26


@pytest.fixture
def openai_client(front: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{front.address}/beta/v1", api_key=front.key, max_retries=0
    ) as client:
        yield client


@pytest.fixture
def anthropic_client(front: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=f"{front.address}/beta", api_key=front.key, max_retries=0
    ) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_left(openai_client: openai.OpenAI) -> Iterator[None]:
    yield
    for file in openai_client.files.list():
        openai_client.files.delete(file.id)


def test_openais_calls(openai_client: openai.OpenAI, tmp_path: Path) -> None:
    files = openai_client.files
    path = tmp_path / "grüße.jsonl"
    path.write_bytes(CONTENT)
    made = files.create(
        file=path,
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert (made.object, made.filename, made.purpose) == ("file", "grüße.jsonl", "batch")
    assert made.bytes == len(CONTENT)
    assert made.expires_at == made.created_at + 3600
    assert files.retrieve(made.id) == made
    assert files.wait_for_processing(made.id) == made
    assert files.content(made.id).read() == CONTENT
    with files.with_streaming_response.content(made.id) as streamed:
        assert b"".join(streamed.iter_bytes()) == CONTENT
    deleted = files.delete(made.id)
    assert (deleted.id, deleted.object, deleted.deleted) == (made.id, "file", True)
    with pytest.raises(openai.NotFoundError):
        files.retrieve(made.id)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_openai_s_list_continues_over_pages(openai_client: openai.OpenAI, order: str) -> None:
    files = openai_client.files
    made = [files.create(file=("a", b"%d" % number), purpose="batch").id for number in range(5)]
    files.create(file=("a", b""), purpose="assistants")
    listed = files.list(limit=2, order="asc" if order == "asc" else "desc", purpose="batch")
    assert len(listed.data) == 2
    assert [file.id for file in listed] == (made if order == "asc" else made[::-1])


@pytest.mark.parametrize("beta", [True, False])
def test_anthropics_calls(anthropic_client: anthropic.Anthropic, beta: bool) -> None:
    files = anthropic_client.beta.files if beta else anthropic_client.files
    made = files.upload(file=("a b.txt", io.BytesIO(b"hello"), "text/plain"))
    assert (made.type, made.filename, made.size_bytes) == ("file", "a b.txt", 5)
    assert made.mime_type == "text/plain"
    assert made.downloadable is True
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).days == 30
    assert files.retrieve_metadata(made.id) == made
    assert files.download(made.id).read() == b"hello"
    deleted = files.delete(made.id)
    assert (deleted.id, deleted.type) == (made.id, "file_deleted")
    with pytest.raises(anthropic.NotFoundError):
        files.download(made.id)
    short = files.upload(file=b"bytes alone", expires_in_seconds=3600)
    assert short.filename == "unnamed"
    assert short.expires_at is not None
    assert (short.expires_at - short.created_at).total_seconds() == 3600


def test_anthropic_s_list_continues_over_pages(anthropic_client: anthropic.Anthropic) -> None:
    files = anthropic_client.beta.files
    made = [files.upload(file=("a", b"%d" % number)).id for number in range(5)]
    listed = files.list(limit=2)
    assert len(listed.data) == 2
    assert [file.id for file in listed] == made[::-1]


def test_a_file_of_one_format_is_read_in_the_other(
    openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    made = openai_client.files.create(file=("a.bin", CONTENT), purpose="assistants")
    assert anthropic_client.beta.files.download(made.id).read() == CONTENT
    assert anthropic_client.beta.files.retrieve_metadata(made.id).size_bytes == made.bytes
    other = anthropic_client.beta.files.upload(file=("b.bin", CONTENT))
    assert openai_client.files.content(other.id).read() == CONTENT
    assert openai_client.files.retrieve(other.id).purpose == "assistants"
    assert [file.id for file in openai_client.files.list()] == [other.id, made.id]


@pytest.mark.parametrize("purpose", get_args(openai.types.FilePurpose))
def test_every_purpose_of_the_client_is_kept(openai_client: openai.OpenAI, purpose: Any) -> None:
    made = openai_client.files.create(file=("a.png", CONTENT), purpose=purpose)
    assert openai_client.files.retrieve(made.id).purpose == made.purpose == purpose
    assert [file.id for file in openai_client.files.list(purpose=purpose)] == [made.id]


def test_errors_have_their_classes(
    openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    other: Any = "other"
    with pytest.raises(openai.NotFoundError):
        openai_client.files.content(NO_FILE)
    with pytest.raises(anthropic.NotFoundError):
        anthropic_client.beta.files.delete(NO_FILE)
    with pytest.raises(openai.BadRequestError) as refused:
        openai_client.files.create(file=("a", b"1"), purpose=other)
    assert refused.value.param == "purpose"
    with pytest.raises(openai.BadRequestError) as refused:
        openai_client.files.list(limit=10_001)
    assert refused.value.param == "limit"
    with pytest.raises(anthropic.BadRequestError, match="limit"):
        anthropic_client.beta.files.list(limit=1001)


@pytest.mark.parametrize("size", [0, 1, 50 << 20])
def test_bytes_come_back_as_they_went_in(openai_client: openai.OpenAI, size: int) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    made = openai_client.files.create(file=("a", content[:size]), purpose="batch")
    assert made.bytes == size
    assert openai_client.files.content(made.id).read() == content[:size]


def test_a_too_large_file_is_refused_during_the_upload(
    openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    content = bytes((50 << 20) + 1)
    with pytest.raises(openai.APIStatusError) as refused:
        openai_client.files.create(file=("a", content), purpose="batch")
    assert (refused.value.status_code, refused.value.param) == (413, "file")
    with pytest.raises(anthropic.RequestTooLargeError):
        anthropic_client.beta.files.upload(file=("a", content))
    assert not openai_client.files.list().data


def test_a_wrong_key_reaches_a_client_that_still_sends(front: Gateway) -> None:
    with (
        openai.OpenAI(
            base_url=f"{front.address}/beta/v1", api_key="gw-" + "A" * 43, max_retries=0
        ) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.files.create(file=("a", bytes(20 << 20)), purpose="batch")
