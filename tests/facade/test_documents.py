"""Documents for models that do not read them: page images, or text."""

import base64

import pytest
import pytest_asyncio

from tests.facade.media import (
    CHAT,
    DOCX,
    MESSAGES,
    by_address,
    by_id,
    by_value,
    gateway_with_media,
    media_of,
    texts_of,
)
from tests.services.inference.fake_adaptation import DAMAGED

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDPOINTS = pytest.mark.parametrize("path", [CHAT, MESSAGES])
PDF = "application/pdf"
_number = iter(range(10_000))


def pdf(pages: int = 2) -> bytes:
    """Return a document that no other test sends."""
    name = next(_number)
    return b"%PDF-1.7 " + b"\f".join(
        b"page %d of paper %d" % (n, name) for n in range(1, pages + 1)
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory):
    async with gateway_with_media(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def forgotten(media):
    await media.sent()
    media.converting.asked.clear()
    media.fetching.asked.clear()


@ENDPOINTS
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", ["value", "file"])
async def test_a_pdf_is_text_for_a_model_that_reads_text_alone(media, path, stream, way):
    content = pdf()
    if way == "value":
        part = by_value(path, content, PDF)
    else:
        part = by_id(path, await media.keep("paper.pdf", content))
    answer = await media.ask(path, "blind-anthropic", [part], stream=stream)
    assert answer.status == 200, answer.text
    (sent,) = await media.sent()
    assert media_of(sent) == []
    texts = texts_of(sent)
    assert "text taken from the file" in texts
    assert "[Page 2 of 2]\npage 2 of paper" in texts
    assert ("(paper.pdf)" in texts) == (way == "file")
    assert answer.adapted == ["messages[0].content[1]:document-text"]
    assert media.converting.asked == ["text auto"]


@ENDPOINTS
@pytest.mark.parametrize("model", ["sees-openai", "sees-anthropic", "sees-gemini"])
async def test_a_model_that_reads_images_gets_the_pages(media, path, model):
    answer = await media.ask(path, model, [by_value(path, pdf(3), PDF)])
    assert answer.status == 200, answer.text
    (sent,) = await media.sent()
    assert len(media_of(sent)) == 3
    assert "[Page 3 of 3]" in texts_of(sent)
    assert answer.adapted == ["messages[0].content[1]:document-pages"]


@ENDPOINTS
@pytest.mark.parametrize("model", ["reads-openai", "reads-anthropic", "reads-gemini"])
async def test_who_reads_pdf_gets_it_whatever_is_asked_for(media, path, model):
    content = pdf()
    for multimodal in (None, {"pdf": {"mode": "text", "ocr": "always"}}):
        answer = await media.ask(path, model, [by_value(path, content, PDF)], multimodal=multimodal)
        assert answer.status == 200, answer.text
        (sent,) = await media.sent()
        assert base64.b64encode(content).decode() in str(sent["body"])
        assert answer.adapted == []
    assert media.converting.asked == []


@ENDPOINTS
async def test_a_docx_is_pages_or_text_also_for_who_reads_pdf(media, path):
    part = by_value(path, b"docx text\fmore", DOCX)
    answer = await media.ask(path, "reads-anthropic", [part])
    assert answer.adapted == ["messages[0].content[1]:document-pages"], answer.text
    answer = await media.ask(path, "blind-openai", [part])
    assert answer.adapted == ["messages[0].content[1]:document-text"]
    # Of an unknown model nobody knows that it sees.
    answer = await media.ask(path, "openai/echo", [part])
    assert answer.adapted == ["messages[0].content[1]:document-text"]


@ENDPOINTS
@pytest.mark.parametrize(
    ("pdf_settings", "asked", "what"),
    [
        ({"mode": "text", "ocr": "always"}, ["text always"], "document-text"),
        ({"mode": "text", "ocr": "never"}, ["text never"], "document-text"),
        ({"mode": "images"}, ["pictures"], "document-pages"),
    ],
)
async def test_mode_and_ocr_are_as_asked_for(media, path, pdf_settings, asked, what):
    part = by_value(path, pdf(), PDF)
    answer = await media.ask(path, "sees-openai", [part], multimodal={"pdf": pdf_settings})
    assert answer.status == 200, answer.text
    assert media.converting.asked == asked
    assert answer.adapted == [f"messages[0].content[1]:{what}"]
    texts = texts_of((await media.sent())[0])
    assert ("read by OCR" in texts) == (pdf_settings.get("ocr") == "always")


@ENDPOINTS
async def test_page_images_are_described_for_a_text_only_model(media, path):
    part = by_value(path, pdf(2), PDF)
    expected = {"pdf": {"mode": "images", "model": "sees-anthropic"}}
    answer = await media.ask(path, "blind-openai", [part], multimodal=expected)
    assert answer.status == 200, answer.text
    *described, sent = await media.sent()
    assert [one["dialect"] for one in described] == ["anthropic"] * 2
    assert "[Page 2 of 2]\n> Sandbox vision:" in texts_of(sent)
    assert answer.adapted == ["messages[0].content[1]:document-pages-described"]
    assert len(answer.helpers) == 2


@ENDPOINTS
@pytest.mark.parametrize(
    ("content", "said"), [(pdf(3), "3 pages"), (b"%PDF " + DAMAGED, "damaged")]
)
async def test_a_document_that_cannot_be_converted_is_named(media, path, content, said):
    part = by_value(path, content, PDF)
    expected = {"pdf": {"max_pages": 2}}
    answer = await media.ask(path, "blind-openai", [part], multimodal=expected)
    assert answer.status == 400
    assert answer.text.startswith("messages[0].content[1]: ")
    assert said in answer.text
    assert await media.sent() == []


@ENDPOINTS
@pytest.mark.parametrize(
    ("name", "mime_type", "content"),
    [
        ("notes.txt", "text/plain", "Grüße".encode()),
        ("notes.txt", "text/plain", "Grüße".encode("cp1252")),
        ("data.json", "application/json", '{"Grüße": 1}'.encode()),
        ("data.csv", "text/csv", "a,b\nGrüße,2".encode()),
    ],
)
@pytest.mark.parametrize("model", ["blind-openai", "reads-anthropic", "openai/echo"])
async def test_text_is_read_by_every_model(media, path, model, name, mime_type, content):
    answer = await media.ask(path, model, [by_value(path, content, mime_type)])
    assert answer.status == 200, answer.text
    (sent,) = await media.sent()
    assert "Grüße" in str(sent["body"]) or "GrÃ¼Ã" in texts_of(sent)


async def test_a_document_is_fetched_for_a_model_that_reads_none(media):
    url = "https://papers.example/one.pdf"
    media.fetching.held[url] = ("application/octet-stream", pdf())
    answer = await media.ask(MESSAGES, "blind-openai", [by_address(MESSAGES, url, "document")])
    assert answer.status == 200, answer.text
    assert "(one.pdf)" in texts_of((await media.sent())[0])
    answer = await media.ask(MESSAGES, "reads-openai", [by_address(MESSAGES, url, "document")])
    assert media_of((await media.sent())[0]) == ["file"]
    assert answer.adapted == []


async def test_citations_of_a_converted_document_are_dropped_by_name(media):
    part = by_value(MESSAGES, pdf(), PDF) | {"citations": {"enabled": True}}
    answer = await media.ask(MESSAGES, "blind-anthropic", [part])
    assert answer.status == 200, answer.text
    assert answer.headers["x-gateway-dropped"] == "messages[].content[].citations"


async def test_a_mark_for_the_cache_stays_behind_what_was_converted(media):
    part = by_value(MESSAGES, pdf(), PDF) | {"cache_control": {"type": "ephemeral"}}
    await media.ask(MESSAGES, "sees-anthropic", [part])
    (sent,) = await media.sent()
    marks = ["cache_control" in one for one in sent["body"]["messages"][0]["content"]]
    assert marks[-1]
    assert sum(marks) == 1


@ENDPOINTS
async def test_a_document_is_converted_once_for_all_turns_of_its_user(media, path):
    part = by_value(path, pdf(), PDF)
    for _ in range(2):
        assert (await media.ask(path, "blind-openai", [part])).status == 200
    assert media.converting.asked == ["text auto"]
