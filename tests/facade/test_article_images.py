"""Figures of shared documents: whoever may read a document sees and edits its figures."""

import time

import aiohttp
import grpc
import pytest
import pytest_asyncio

from gateway.files.v1.files_pb2 import ReadSharedFileRequest
from gateway.files.v1.files_pb2_grpc import FileStoreServiceStub
from services.accounts.repository import AccountRepository
from services.articles.groups import GroupRepository
from services.common.clock import Clock
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.settings import parse
from services.common.storage.database import open_engine
from tests.facade.article_editor import Editor
from tests.gateway_in_process import running_gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
DATA_URL = "data:image/gif;base64,R0lGODlh"


class Member(Editor):
    """A member of a group, with a session on its document."""

    def __init__(self, gateway, key):
        super().__init__(gateway, key)
        self.bearer = {"Authorization": f"Bearer {key}"}

    def post(self, path, **body):
        url = f"{self.gateway.url}/article/v1/{path}"
        body = {"sessionId": self.session, **body}
        return self.gateway.http.post(url, json=body, headers={"x-api-key": self.key})

    async def upload(self):
        form = aiohttp.FormData()
        form.add_field("purpose", "user_data")
        form.add_field("file", PNG, filename="tide.png")
        url = f"{self.gateway.url}/v1/files"
        async with self.gateway.http.post(url, data=form, headers=self.bearer) as answer:
            return (await answer.json())["id"]

    async def status_of(self, file_id):
        url = f"{self.gateway.url}/v1/files/{file_id}"
        async with self.gateway.http.get(url, headers=self.bearer) as answer:
            return answer.status

    async def insert_image(self, *images):
        return (await self.insert({"type": "image", "image": [*images]}))[0]


class Advanced:
    """The seconds by which a test advances the clock."""

    seconds = 0


@pytest.fixture(scope="module")
def advanced():
    return Advanced()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gateway")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def members(folder, advanced):
    """Return two members of a group and a stranger; the members have a document open."""
    clock = Clock(lambda: time.time() + advanced.seconds)
    async with running_gateway(folder, clock=clock, limits={"sweep_every_s": 0.1}) as gateway:
        database = open_engine(parse({"storage": {"data_dir": str(folder)}}, "the test").storage)
        groups, accounts = GroupRepository(database, Clock()), AccountRepository(database)
        keys = [await accounts.create_key(name) for name in ("ada", "bob", "eve")]
        users = [(await accounts.identify(key)).user_id for key in keys]
        group = await groups.create("tides", users[0])
        await groups.add(group, users[1])
        await database.dispose()
        ada, bob, eve = (Member(gateway, key) for key in keys)
        document = (await ada.done("doc/create", group=group))["article"]["outer_id"]
        ada.document = document
        for member in (ada, bob):
            member.session = (await member.done("session/create", docId=document))["sessionId"]
        yield ada, bob, eve


async def test_a_member_sees_anothers_figure(members):
    ada, bob, eve = members
    figure = await ada.insert_image({"url": DATA_URL}, {"fileId": await ada.upload()})
    async with bob.post("doc/image", blockId=figure, index=1) as answer:
        assert answer.status == 200 and await answer.read() == PNG
        assert answer.headers["Content-Type"] == "image/png"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert 'filename="tide.png"' in answer.headers["Content-Disposition"]
    async with bob.post("doc/image", blockId=figure) as answer:
        assert (await answer.read(), answer.content_type) == (b"GIF89a"[:3] + b"89a", "image/gif")
    eve.session = ada.session
    stolen = {"sessionId": ada.session, "blockId": figure}
    assert (await eve.call("doc/image", stolen))["code"] == 40401


async def test_a_member_corrects_the_caption_of_anothers_figure(members):
    ada, bob, _ = members
    file_id = await ada.upload()
    figure = await ada.insert_image({"fileId": file_id, "title": "Tydes"})
    image = [{"fileId": file_id, "title": "Tides"}]
    await bob.done("block/text/replace", blockId=figure, image=image)
    # A file that the edit adds must be the editor's own.
    other = await ada.upload()
    image = [{"fileId": other}]
    code, message = await bob.refused("block/text/replace", blockId=figure, image=image)
    assert (code, message[:16]) == (40003, "/image/0/fileId:")


async def test_a_shown_file_is_deleted_on_demand_alone(members):
    ada, bob, _ = members
    file_id = await ada.upload()
    figure = await ada.insert_image({"fileId": file_id})
    url = f"{ada.gateway.url}/v1/files/{file_id}"
    for one, force, status, words in (
        (ada, "", 409, ada.document),
        (ada, "?force=false", 409, "force=true"),
        (ada, "?force=1", 400, "force"),
        (bob, "?force=true", 404, file_id),
        (ada, "?force=true", 200, "deleted"),
    ):
        async with one.gateway.http.delete(url + force, headers=one.bearer) as answer:
            assert (answer.status, words in await answer.text()) == (status, True), force
    image = [{"fileId": file_id, "alt": "Tides"}]
    await ada.done("block/text/replace", blockId=figure, image=image)
    code, message = await ada.refused("doc/image", blockId=figure)
    assert code == 40407 and "was deleted or has expired" in message


async def test_what_is_no_stored_figure_is_refused(members):
    ada, _, _ = members
    figure = await ada.insert_image({"url": "https://example.org/a.png"})
    text = {"type": "paragraph", "children": [{"text": "x"}]}
    (paragraph,) = await ada.insert(text)
    for block, index, code, words in (
        (figure, 0, 40003, "it is at https://example.org/a.png"),
        (figure, 1, 40407, "has 1 pictures"),
        (figure, -1, 40003, "/index"),
        (paragraph, 0, 40003, "not paragraph"),
        ("nowhere", 0, 40403, "no block"),
    ):
        refused = await ada.refused("doc/image", blockId=block, index=index)
        assert (refused[0], words in refused[1]) == (code, True), refused


async def test_no_key_reads_a_shared_file_over_grpc(members):
    ada, _, _ = members
    request = ReadSharedFileRequest(id=await ada.upload())
    metadata = call_metadata(ada.key, "")
    async with open_channel(ada.gateway.grpc, max_message_bytes=1 << 20) as channel:
        call = FileStoreServiceStub(channel).ReadSharedFile(request, metadata=metadata)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call.read()
    assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_file_that_a_document_shows_does_not_expire(members, advanced, folder):
    ada, bob, _ = members
    shown, other, suggested, refused = [await ada.upload() for _ in range(4)]
    figure = await ada.insert_image({"fileId": shown})
    suggestions = []
    for file_id in (suggested, refused):
        insertion = {"path": [0], "blocks": [{"type": "image", "image": [{"fileId": file_id}]}]}
        answer = await ada.done("block/insert", **insertion, suggest=True)
        suggestions.append(answer["suggestionId"])
    advanced.seconds = 31 * 24 * 3600
    await until(lambda: not (folder / "files" / other).exists())
    statuses = [await ada.status_of(one) for one in (shown, other, suggested, refused)]
    assert statuses == [200, 404, 200, 200]
    for member in (ada, bob):
        opened = await member.done("session/create", docId=ada.document)
        member.session = opened["sessionId"]
    async with bob.post("doc/image", blockId=figure) as answer:
        assert await answer.read() == PNG
    await bob.done("suggestion/accept", suggestionId=suggestions[0])
    await bob.done("suggestion/reject", suggestionId=suggestions[1])
    await bob.done("block/delete", blockId=figure)
    statuses = [await ada.status_of(one) for one in (shown, suggested, refused)]
    assert statuses == [404, 200, 404]
    await until(lambda: not (folder / "files" / shown).exists())
    assert (folder / "files" / suggested).exists()
