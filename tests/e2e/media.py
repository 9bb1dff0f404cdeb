"""An image and a PDF for a model that reads text alone.

python media.py http://127.0.0.1:8080 gw-… image
python media.py http://127.0.0.1:8080 gw-… pdf
"""

import base64
import json
import struct
import sys
import zlib
from urllib.request import Request, urlopen

address, key, what = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def ask(part, **multimodal):
    """Ask a model that reads text alone; return the answer and what the gateway converted."""
    body = {
        "model": "sandbox/text",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, part]}
        ],
        "multimodal": multimodal,
    }
    request = Request(f"{address}/beta/v1/chat/completions", json.dumps(body).encode(), HEADERS)
    with urlopen(request) as answer:
        return json.load(answer), answer.headers["x-gateway-adapted"]


def upload(name, content):
    """Keep a file; return its id."""
    form = (
        b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n\r\n%b\r\n--x--\r\n'
        % (name.encode(), content)
    )
    headers = {**HEADERS, "Content-Type": "multipart/form-data; boundary=x"}
    with urlopen(Request(f"{address}/beta/v1/files", form, headers)) as answer:
        return json.load(answer)["id"]


def png(width, height):
    """Return a red image."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    rows = (b"\0" + b"\xc0\x20\x20" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    image = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + image


def pdf(text):
    """Return a PDF of one page."""
    drawn = f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    written, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    ending = b"xref\n0 6\n0000000000 65535 f \n%btrailer\n<< /Size 6 /Root 1 0 R >>\n" % table
    return written + ending + b"startxref\n%d\n%%%%EOF\n" % len(written)


if what == "image":
    data = base64.b64encode(png(7, 5)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    told, adapted = ask(part, image={"model": "sandbox/vision"})
else:
    file_id = upload("paper.pdf", pdf("Colds of the common sort"))
    told, adapted = ask({"type": "file", "file": {"file_id": file_id}})

print(told["choices"][0]["message"]["content"])
print(adapted)
for helper in told["usage"].get("gateway", {}).get("helpers", []):
    print(helper["task"], helper["model"])
