"""The files of images, looked up in a real file store with the caller's own key."""

from pathlib import Path

import grpc
import orjson
import pytest

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceStub
from gateway.articles.v1.edits_pb2 import Edit, InsertBlocks
from gateway.files.v1.files_pb2 import (
    PURPOSE_ASSISTANTS,
    CreateFileRequest,
    FileHeader,
    FileTrailer,
)
from gateway.files.v1.files_pb2_grpc import FileStoreServiceStub
from services.accounts.repository import AccountRepository
from services.articles.files import check_ownership
from services.assembly import Services
from services.common.clock import Clock
from services.common.errors import GatewayError, from_rpc_error, unavailable
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.settings import Settings, Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate

MAX_MESSAGE = 8 << 20


async def test_a_file_of_the_callers_is_taken_and_anothers_is_not(tmp_path: Path) -> None:
    settings = Settings(storage=Storage(data_dir=tmp_path))
    database = open_engine(settings.storage)
    await migrate(database)
    accounts = AccountRepository(database)
    keys = [await accounts.create_key(user) for user in ("ada", "bob")]
    await database.dispose()
    services = await Services.start(
        ["accounts", "articles", "files"], "127.0.0.1:0", settings, Clock()
    )
    try:
        async with open_channel(
            f"127.0.0.1:{services.port}", max_message_bytes=MAX_MESSAGE
        ) as channel:
            assert [await insert(channel, keys[0], key) for key in keys] == [None, 40003]
    finally:
        await services.stop()


async def insert(channel: grpc.aio.Channel, key: str, files_key: str) -> int | None:
    """Insert an image of a file that the owner of a key has; give how that is refused."""
    messages = [
        CreateFileRequest(header=FileHeader(filename="a.png")),
        CreateFileRequest(chunk=b"png"),
        CreateFileRequest(trailer=FileTrailer(purpose=PURPOSE_ASSISTANTS)),
    ]
    kept = await FileStoreServiceStub(channel).CreateFile(
        iter(messages), metadata=call_metadata(files_key, "")
    )
    stub, metadata = ArticleEditorServiceStub(channel), call_metadata(key, "")
    made = await stub.CreateArticle(wire.CreateArticleRequest(), metadata=metadata)
    opened = await stub.CreateSession(
        wire.CreateSessionRequest(article_id=made.article.id), metadata=metadata
    )
    blocks = [{"type": "image", "image": [{"fileId": kept.file.id}]}]
    edit = Edit(insert_blocks=InsertBlocks(path=[0], blocks=orjson.dumps(blocks)))
    request = wire.ApplyEditRequest(session_id=opened.session_id, edit=edit)
    try:
        await stub.ApplyEdit(request, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error).article_code
    return None


class _Down:
    async def has(self, file_id: str) -> bool:
        raise unavailable("the file store does not answer")


async def test_a_store_that_does_not_answer_is_no_missing_file() -> None:
    with pytest.raises(GatewayError) as raised:
        await check_ownership(_Down(), {"file-a": "/image/0/fileId", "file-b": "/image/1/fileId"})
    assert (raised.value.http_status, raised.value.article_code) == (503, None)
