"""A client of document editing beside the console, and a document with everything in it."""

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.gateway_in_process import Gateway

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhf"
    "DwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def text(kind: str, *leaves: str | dict[str, Any], **style: Any) -> dict[str, Any]:
    """Return a block of text."""
    children = [{"text": leaf} if isinstance(leaf, str) else leaf for leaf in leaves]
    return {"type": kind, "children": children, **({"style": style} if style else {})}


def table(*rows: list[str]) -> dict[str, Any]:
    """Return a table."""
    cells = [[text("table-cell", cell) for cell in row] for row in rows]
    return {"type": "table", "children": [{"type": "table-row", "children": c} for c in cells]}


REFERENCES = [
    {
        "id": "newton1687",
        "author": ["Isaac Newton"],
        "title": "Principia",
        "year": "1687",
        "url": "https://example.org/principia",
    },
    {
        "id": "darwin1898",
        "author": ["George Howard Darwin"],
        "title": "The Tides",
        "year": "1898",
        "publisher": "Houghton Mifflin",
    },
    {"id": "uncited", "title": "Of nothing"},
]
EVERYTHING = [
    text("title", "On tides"),
    {
        "type": "author",
        "author": [
            {"id": 1, "name": "Ada Lovelace", "institutionId": 1, "isStar": True},
            {"id": 2, "name": "Mary Somerville", "institutionId": 0},
        ],
        "institution": [{"id": 1, "name": "Analytical Society"}],
    },
    text("abstract", "The sea rises and falls.", language="en"),
    text("h1", "Introduction"),
    text(
        "paragraph",
        "Plain, ",
        {"text": "bold", "bold": True},
        ", ",
        {"text": "italic", "italic": True},
        ", ",
        {"text": "underlined", "textDecoration": "underline"},
        ", ",
        {"text": "struck", "textDecoration": "line-through"},
        ", ",
        {"text": "coloured", "color": "#7a1010"},
        ", ",
        {"type": "inlinecode", "text": "x = 1"},
        ", ",
        {"type": "url", "text": "a link", "url": "https://example.org/tides"},
        " and ",
        {"type": "latex", "text": "e^{i\\pi}"},
        ".",
        indent=True,
    ),
    text("h2", "Observations"),
    text("paragraph", {"text": "The moon pulls.", "cite": "darwin1898"}, " As was known."),
    text("paragraph", {"text": "Gravity does it.", "cite": "newton1687"}),
    text("h3", "Details"),
    {
        "type": "list",
        "children": [
            text("list-item", "spring"),
            {
                "type": "list-item",
                "children": [
                    {"text": "neap"},
                    {
                        "type": "list",
                        "style": {"orderType": "decimal"},
                        "children": [text("list-item", "first"), text("list-item", "second")],
                    },
                ],
            },
        ],
    },
    table(["Port", "Range"], ["Brest", "6 m"]),
    {"type": "code", "language": "Python", "code": "def tide(t):\n    return sin(t)"},
    {"type": "equation", "equation": "\\frac{a}{b} = c", "style": {"serial": True}},
    {
        "type": "image",
        "image": [
            {"url": PIXEL, "alt": "A chart of the sea", "title": "The sea", "width": 40},
            {"url": "https://example.org/moon.png", "alt": "The moon"},
        ],
        "style": {"serial": True},
    },
    text("label", "Keywords: tides"),
    {
        "type": "label",
        "children": [
            {"type": "label-item", "name": "Moon", "children": [{"text": "the satellite"}]}
        ],
    },
]
# What papers have beside that.
OF_PAPERS = [
    {**text("h4", "Methods"), "label": "sec-methods"},
    text(
        "paragraph",
        "E = mc",
        {"text": "2", "script": "super"},
        " as ",
        {"text": "", "cite": [{"id": "newton1687", "locator": "p. 3"}, {"id": "darwin1898"}]},
        {"type": "note", "children": [{"text": "A note"}]},
        ", see ",
        {"type": "ref", "ref": "fig-moon"},
        " and ",
        {"type": "ref", "ref": "nowhere"},
    ),
    text("quote", "The moon pulls."),
    {
        "type": "image",
        "image": [{"url": PIXEL, "alt": "The moon"}],
        "caption": [{"text": "The "}, {"text": "moon", "bold": True}],
        "label": "fig-moon",
    },
    {
        **table(["Port", "Range"], ["Brest", "6 m"]),
        "caption": [{"text": "Ranges"}],
        "align": ["start", "end"],
    },
    {
        "type": "list",
        "children": [text("list-item", "fourth")],
        "style": {"orderType": "decimal"},
        "start": 4,
    },
]


class Editor:
    """A client of the API with a session on a document.

    Attributes:
        document_id: id of the document.
    """

    def __init__(self, gateway: Gateway, document_id: str, session_id: str) -> None:
        self._gateway = gateway
        self.document_id = document_id
        self._session = {"sessionId": session_id}

    @classmethod
    async def create(cls, gateway: Gateway, name: str = "On tides") -> "Editor":
        """Create a document and open it."""
        created = await _call(gateway, "doc/create", {"name": name})
        document_id = created["article"]["outer_id"]
        session = await _call(gateway, "session/create", {"docId": document_id})
        return cls(gateway, document_id, session["sessionId"])

    async def share(self, other: Gateway) -> "Editor":
        """Share the document with another user; return that user's client with it open."""
        user = (await _call(other, "group/list", {}))["user"]
        group = (await _call(self._gateway, "group/create", {"name": "Lab"}))["group"]["group_id"]
        await _call(self._gateway, "group/add", {"group": group, "user": user})
        document = {"docId": self.document_id}
        await _call(self._gateway, "doc/share", {**document, "group": group})
        session = await _call(other, "session/create", document)
        return Editor(other, self.document_id, session["sessionId"])

    @property
    def path(self) -> str:
        """The document's page in the console."""
        return f"/console/documents/{self.document_id}"

    async def call(self, endpoint: str, /, **body: Any) -> Any:
        return await _call(self._gateway, endpoint, {**self._session, **body})

    async def insert(self, *blocks: dict[str, Any], at: int = 0) -> list[str]:
        """Insert blocks; return their ids."""
        inserted = await self.call("block/insert", path=[at], blocks=list(blocks))
        return list(inserted["ids"])

    async def insert_everything(self) -> list[str]:
        """Insert a block of each kind, and the references that they cite."""
        for reference in REFERENCES:
            await self.call("reference/add", reference=reference)
        return await self.insert(*EVERYTHING)

    async def markdown(self) -> str:
        return str((await self.call("doc/read"))["text"])

    async def texts(self) -> list[str]:
        return [block["text"] for block in (await self.call("doc/read"))["blocks"]]


async def _call(gateway: Gateway, path: str, body: dict[str, Any]) -> Any:
    async with gateway.http.post(
        f"{gateway.url}/article/v1/{path}", json=body, headers={"x-api-key": gateway.key}
    ) as response:
        answer = await response.json()
    assert answer["code"] == 1, answer
    return answer["data"]


def block(page: Page, name: str, at: int = 0) -> Locator:
    """Return the frame of a block by the name of its type."""
    return page.get_by_role("group", name=name, exact=True).nth(at)


async def write(page: Page, name: str = "Paragraph", at: int = 0) -> None:
    """Put the caret at the end of a text."""
    await block(page, name, at).locator(".content").click()
    # A click puts it where it was made: in the middle.
    await page.keyboard.press("End")


async def select_left(page: Page, count: int, *, extend: bool = False) -> None:
    """Take the caret to the left, with what it passes where it extends the selection."""
    for _ in range(count):
        await page.keyboard.press("Shift+ArrowLeft" if extend else "ArrowLeft")
    # The page is told of a selection with the next frame.
    await page.evaluate(
        "new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))"
    )


async def saved(page: Page) -> None:
    """Wait until all that was typed is stored."""
    await expect(page.get_by_role("status", name="State of the text")).to_have_text("Saved")
