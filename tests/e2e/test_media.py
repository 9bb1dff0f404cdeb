"""Media for models that cannot read them, against `gateway up` and its real conversions."""

import base64
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionContentPartParam
from PIL import Image

from tests.e2e.gateway import Gateway, gateway
from tests.e2e.scripts import run
from tests.grid import each_row
from tests.services.media.conversion import office, papers
from tests.services.media.conversion.test_films import film
from tests.services.media.conversion.test_speech import SAID, recording

SCRIPT = Path(__file__).parent / "media.py"
PATH = "messages[0].content[1]"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
# A model of a provider that counts what it is asked, and that is known to read text alone.
BLIND = """
[[models]]
name = "blind"
provider = "openai"
upstream = "text"
inputs = ["text"]
"""


def show(front: Gateway, what: str) -> str:
    return run(SCRIPT, front.address, front.key, what)


def test_an_image_is_described_for_a_text_only_model(front: Gateway) -> None:
    shown = show(front, "image")
    assert "[Image 1: described by the model sandbox/vision." in shown
    assert "PNG of 7x5 pixels" in shown
    assert "messages[0].content[1]:image-described\n" in shown
    assert "describe_image sandbox/vision\n" in shown


def test_a_pdf_is_read_for_a_model_that_reads_text_alone(front: Gateway) -> None:
    shown = show(front, "pdf")
    assert "[Document 1 (paper.pdf): text taken from the file.]" in shown
    assert "Colds of the common sort\n" in shown
    assert "messages[0].content[1]:document-text\n" in shown


@pytest.fixture
def client(plain_gateway: Gateway) -> Iterator[openai.OpenAI]:
    address = f"{plain_gateway.address}/beta/v1"
    with openai.OpenAI(base_url=address, api_key=plain_gateway.key, max_retries=0) as opened:
        yield opened


def ask(
    client: openai.OpenAI, part: Any, model: str = "sandbox/text", **fields: Any
) -> tuple[str, str | None]:
    """Return the answer about a part, and what was converted."""
    content: list[ChatCompletionContentPartParam] = [{"type": "text", "text": "What?"}, part]
    answer = client.chat.completions.with_raw_response.create(
        model=model, messages=[{"role": "user", "content": content}], extra_body=fields
    )
    completion: ChatCompletion = answer.parse()
    return completion.choices[0].message.content or "", answer.headers.get("x-gateway-adapted")


def file_part(content: bytes, mime_type: str) -> Any:
    data = f"data:{mime_type};base64,{base64.b64encode(content).decode()}"
    return {"type": "file", "file": {"filename": "a.bin", "file_data": data}}


def image_part(content: bytes) -> Any:
    data = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return {"type": "image_url", "image_url": {"url": data}}


def test_a_recording_is_transcribed_by_the_embedded_engine(client: openai.OpenAI) -> None:
    data = base64.b64encode(recording("MP3")).decode()
    part = {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}}
    transcript, adapted = ask(client, part, multimodal={"audio": {}})
    assert papers.recall(SAID, transcript) > 0.8
    assert adapted == f"{PATH}:audio-transcribed"


def test_a_film_is_split_for_a_model_that_reads_images(client: openai.OpenAI) -> None:
    made = client.files.create(file=("a.mp4", film("mp4")), purpose="assistants")
    part = {"type": "file", "file": {"file_id": made.id}}
    description, adapted = ask(client, part, "sandbox/vision", multimodal={"video": {"frames": 3}})
    assert description.count("of 160x120 pixels") == 3
    assert "transcribed by the embedded engine" in description
    assert adapted == f"{PATH}:video-frames"
    client.files.delete(made.id)


@pytest.fixture(scope="module")
def blind(
    tmp_path_factory: pytest.TempPathFactory, upstream_port: int
) -> Iterator[tuple[openai.OpenAI, Gateway, str]]:
    """A gateway with a model that reads text alone, and the address of its provider's log."""
    folder = tmp_path_factory.mktemp("blind")
    with (
        gateway(folder, upstream_port, settings=BLIND) as started,
        openai.OpenAI(
            base_url=f"{started.address}/beta/v1", api_key=started.key, max_retries=0
        ) as client,
    ):
        yield client, started, f"http://127.0.0.1:{upstream_port}/sandbox/log"


def zip_bomb() -> bytes:
    """Return a DOCX of 300 kB that unpacks to 300 MB."""
    written = io.BytesIO(office.docx(""))
    with zipfile.ZipFile(written, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/more.xml", bytes(300 << 20))
    return written.getvalue()


def pixel_bomb() -> bytes:
    """Return a PNG of few bytes that has 100 megapixels."""
    return papers.packed(Image.new("1", (10_000, 10_000)), "PNG")


BAD = {
    "encrypted": lambda: file_part(papers.encrypted(), "application/pdf"),
    "damaged": lambda: file_part(office.docx(office.paragraph("x"))[:-200], DOCX),
    "zip bomb": lambda: file_part(zip_bomb(), DOCX),
    "pixel bomb": lambda: image_part(pixel_bomb()),
    "polyglot": lambda: file_part(b"GIF89a" + papers.pdf("x"), "application/pdf"),
    "no image": lambda: image_part(papers.pdf("x")),
    "an address of this machine": lambda: {
        "type": "image_url",
        "image_url": {"url": "http://127.0.0.1:8080/a.png"},
    },
}
WORDS = {
    "encrypted": "encrypted",
    "damaged": "damaged",
    "zip bomb": "unpacks to more than",
    "pixel bomb": "megapixels",
    "polyglot": "the file is an image, not a document",
    "no image": "the image is damaged",
    "an address of this machine": "unknown or not public",
}


def kept(front: Gateway) -> set[Path]:
    """Return the files of the conversions that a gateway keeps."""
    return {path for path in (front.data_dir / "conversions").rglob("*") if path.is_file()}


def asked(log: str) -> list[Any]:
    """Return what a provider was asked, but for the list of its models."""
    with urlopen(log) as answer:
        return [one for one in json.load(answer) if one["body"]]


@each_row("stream", [False, True])
@each_row("what", BAD)
def test_what_cannot_be_converted_is_named_and_costs_nothing(blind, what: str, stream: bool):
    client, front, log = blind
    with urlopen(Request(log, method="DELETE")):
        before = kept(front)
    with pytest.raises(openai.BadRequestError) as refused:
        ask(
            client,
            BAD[what](),
            "blind",
            multimodal={"image": {"model": "embedded"}},
            memory_id="never",
            stream=stream,
        )
    assert refused.value.param == PATH
    assert f"{PATH}: " in refused.value.message
    assert WORDS[what] in refused.value.message
    assert asked(log) == []
    assert kept(front) == before
    with pytest.raises(openai.NotFoundError):
        client.get("/memories/never", cast_to=object)


@pytest.mark.parametrize(
    ("multimodal", "path"),
    [
        ({"imagee": {}}, "multimodal.imagee"),
        ({"image": {"modell": "x"}}, "multimodal.image.modell"),
        ({"pdf": {"max_pages": "ten"}}, "multimodal.pdf.max_pages"),
        ({"audio": True}, "multimodal.audio"),
        ({"enabled": "yes"}, "multimodal.enabled"),
        ([], "multimodal"),
    ],
)
def test_unknown_and_wrong_settings_of_conversions_are_named(blind, multimodal: object, path: str):
    client, front, log = blind
    with urlopen(Request(log, method="DELETE")):
        before = kept(front)
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, file_part(papers.pdf("x"), "application/pdf"), "blind", multimodal=multimodal)
    assert refused.value.param == path
    assert asked(log) == []
    assert kept(front) == before
