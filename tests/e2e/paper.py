"""Writes a paper over HTTP, from an empty document to its Markdown.

python paper.py http://127.0.0.1:8080 gw-…
"""

import json
import sys
from functools import partial
from urllib.request import Request, urlopen

address, key = sys.argv[1:]
HEADERS = {"x-api-key": key, "Content-Type": "application/json"}


def call(endpoint, /, **body):
    """Call an endpoint of document editing; give the data of its answer."""
    request = Request(f"{address}/article/v1/{endpoint}", json.dumps(body).encode(), HEADERS)
    with urlopen(request) as answer:
        return json.load(answer)["data"]


def text(kind, words):
    """Describe a block of plain text."""
    return {"type": kind, "children": [{"text": words}]}


document = call("doc/create", name="Tides")["article"]["outer_id"]
session = call("session/create", docId=document)["sessionId"]
edit = partial(call, sessionId=session)

# Title, authors and abstract.
authors = {
    "type": "author",
    "author": [
        {"id": 1, "name": "Ada Quay", "institutionId": 1, "isStar": True},
        {"id": 2, "name": "Ben Shore", "institutionId": 2},
    ],
    "institution": [{"id": 1, "name": "Harbour College"}, {"id": 2, "name": "Tide Office"}],
}
abstract = text("abstract", "We measure how high the sea rises, and say why.")
edit("block/insert", path=[0], blocks=[text("title", "On the height of tides"), authors, abstract])

# Sections, the second with an equation in it and a listing.
section, claim, *_ = edit(
    "block/insert",
    path=[3],
    blocks=[
        text("h1", "Theory"),
        text("paragraph", "The moon pulls the sea"),
        text("paragraph", "The pull falls with the third power of the distance:"),
        {"type": "equation", "equation": r"a = \frac{2 G M r}{d^3}"},
        text("h1", "Method"),
        {
            "type": "list",
            "style": {"orderType": "decimal"},
            "children": [text("list-item", "Read the gauge."), text("list-item", "Wait an hour.")],
        },
    ],
)["ids"]
edit("block/text/append", blockId=claim, text=" and so does the sun.")
edit("style/leaf", blockId=claim, italic=True)
edit("block/text/replace", blockId=section, children="Why the sea rises")

# A table and a figure at the end.
rows = [["Port", "Height"], ["Brest", "6.9 m"], ["Saint-Malo", "10.7 m"]]
table = {
    "type": "table",
    "children": [
        {"type": "table-row", "children": [text("table-cell", cell) for cell in row]}
        for row in rows
    ],
}
figure = {"url": "https://example.org/gauge.png", "alt": "A tide gauge", "title": "The gauge"}
end = call("session/create", docId=document)["blockCount"]
edit(
    "block/insert",
    path=[end],
    blocks=[text("h1", "Results"), table, {"type": "image", "image": [figure]}],
)

# References, numbered in the order in which they are cited.
principia = {"id": "newton", "author": ["I. Newton"], "title": "Principia", "year": "1687"}
almanac = {"id": "almanac", "author": ["Tide Office"], "title": "Almanac", "year": "2026"}
edit("reference/add", reference=almanac)
edit("reference/add", reference=principia)
edit("block/cite", blockId=claim, cite="newton")
edit("block/cite", leafPath=[10, 1, 1, 0], cite="almanac")

# How it is printed, and what it says.
edit("style/article", style={"global": {"paperSize": "A4"}, "h1": {"style": {"fontSize": 18}}})
print(edit("doc/read")["text"])
edit("session/destroy")
