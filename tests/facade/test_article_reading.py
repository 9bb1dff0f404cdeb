"""Reading of documents in parts."""

import pytest
import pytest_asyncio

from tests.facade.article_editor import Editor
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


def text(words, kind="paragraph"):
    return {"type": kind, "children": [{"text": words}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory):
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield Editor(gateway, gateway.key)


async def test_a_document_is_read_in_parts(editor):
    await editor.open_new()
    ids = await editor.insert(*(text(f"block {n}") for n in range(5)))
    whole = await editor.read()
    for part, positions in (
        ({"from": 3}, [3, 4]),
        ({"limit": 2}, [0, 1]),
        ({"from": 1, "limit": 2}, [1, 2]),
        ({"from": 4, "limit": 9}, [4]),
        ({"from": 5, "limit": 1}, []),
        ({"from": 2**32 - 1}, []),
        ({"blockIds": [ids[4], "nowhere", ids[0]]}, [4, 0]),
    ):
        read = await editor.done("doc/read", **part)
        blocks = [whole["blocks"][position] for position in positions]
        text_of_part = "\n\n".join(block["text"] for block in blocks)
        assert read == {**whole, "blocks": blocks, "text": text_of_part}, part


async def test_a_wrong_part_is_refused(editor):
    await editor.open_new()
    for part, code, pointer in (
        ({"from": -1}, 40003, "/from"),
        ({"limit": 0}, 40003, "/limit"),
        ({"blockIds": ["b"], "limit": 1}, 40004, "/blockIds"),
        ({"blockIds": ["b"] * 501}, 40003, "/blockIds"),
        ({"images": "some"}, 40003, "/images"),
    ):
        refused = await editor.refused("doc/read", **part)
        assert (refused[0], refused[1].startswith(f"{pointer}: ")) == (code, True), refused


async def test_pictures_in_the_document_are_named_or_left_out(editor):
    await editor.open_new()
    pictures = [
        {"url": "https://a.org/b.png"},
        {"url": "data:image/gif;base64,R0lGODlh", "alt": "B"},
    ]
    figure, _ = await editor.insert({"type": "image", "image": pictures}, text("below"))
    address = f"/article/v1/doc/image?blockId={figure}&index=1"
    shown = f"![](https://a.org/b.png)\n![B]({address})\n\nbelow"
    assert (await editor.read())["text"] == shown
    assert (await editor.done("doc/read", images="none"))["text"] == "below"
