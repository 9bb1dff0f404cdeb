import io
import zipfile

from services.common.text.mime import detect_type
from tests.grid import each_row

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def archive(*names: str, stored: bytes = b"x") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name in names:
            made.writestr(name, stored)
    return buffer.getvalue()


@each_row(
    ("head", "found"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(30), "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "image/jpeg"),
        (b"GIF89a\x01\x00\x01\x00", "image/gif"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 " + bytes(20), "image/webp"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(20), "audio/wav"),
        (b"BM\x01\x02\x00\x00", "image/bmp"),
        (b"%PDF-1.4\nplain as text", "application/pdf"),
        (b"ID3\x03\x00\x00\x00" + bytes(20), "audio/mpeg"),
        (b"\xff\xfb\x90\x44" + bytes(20), "audio/mpeg"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00", "video/mp4"),
        (b"\x1f\x8b\x08\x00", "application/gzip"),
        (archive("[Content_Types].xml", "word/document.xml"), DOCX),
        (archive("[Content_Types].xml", "xl/workbook.xml"), XLSX),
        (
            archive("mimetype", stored=b"application/vnd.oasis.opendocument.text"),
            "application/vnd.oasis.opendocument.text",
        ),
        (archive("a.txt"), "application/zip"),
        (b"plain words", "text/plain"),
        ("größe".encode(), "text/plain"),
        ("größe".encode("latin-1"), "text/plain"),
        ("größe".encode("utf-16"), "text/plain"),
        (b"<!DOCTYPE html><p>", "text/html"),
        (b"<?xml version='1.0'?>\n<svg xmlns='x'/>", "image/svg+xml"),
        (bytes(range(1, 200)), "application/octet-stream"),
        (bytes(40), "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_content_says_what_it_is(head: bytes, found: str) -> None:
    assert detect_type(head, "", "name") == found


@each_row(
    ("head", "claimed", "filename", "found"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(30), "image/jpeg", "a.gif", "image/png"),
        (b"plain words", "image/png", "a.png", "text/plain"),
        (b"{}", "application/json; charset=utf-8", "a.txt", "application/json"),
        (b"a,b", "", "a.csv", "text/csv"),
        (b"# a", "application/octet-stream", "A.MD", "text/markdown"),
        (b"{}\n{}", "", "a.jsonl", "application/jsonl"),
        (b"BM is no picture", "", "a.txt", "text/plain"),
        (archive("a.txt"), "", "a.docx", DOCX),
        (archive("a.txt"), "image/png", "a", "application/zip"),
        (bytes.fromhex("d0cf11e0a1b11ae1"), "", "a.doc", "application/msword"),
        (bytes(range(1, 200)), "application/x-mine", "a.png", "application/x-mine"),
        (bytes(range(1, 200)), "", "a.png", "image/png"),
        (bytes(range(1, 200)), "text/plain", "a.txt", "application/octet-stream"),
        (b"", "text/csv", "a.json", "text/csv"),
        (b"", "", "a.json", "application/json"),
        (b"", "no type", "a", "application/octet-stream"),
        (b"", "a/b\r\nx: y", "a", "application/octet-stream"),
    ],
)
def test_then_the_caller_and_the_name_decide(
    head: bytes, claimed: str, filename: str, found: str
) -> None:
    assert detect_type(head, claimed, filename) == found
