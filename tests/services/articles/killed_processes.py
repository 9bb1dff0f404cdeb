"""Processes that are killed while they edit documents, and checks of what they leave."""

import asyncio
import random
import signal
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import orjson
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceStub
from gateway.articles.v1.edits_pb2 import DeleteBlock, Edit, InsertBlocks
from services.articles.operation_log import OperationLog
from services.articles.tree.nodes import Leaf
from services.common.clock import Clock
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import Metadata, open_channel
from tests.forked import AsyncForkedProcess
from tests.services.articles.editor_services import paragraph, stored_and_replayed
from tests.services.processes import serving
from tests.waiting import until

_RUN = 3
_MOST_BEFORE_A_KILL = 30
# Answered calls of each caller before a process is killed.
_FEWEST_BEFORE_A_KILL = 4


@dataclass
class AcknowledgedEdits:
    """The acknowledged edits of one document.

    Attributes:
        article_id: the document.
        there: texts whose insertion was acknowledged and whose deletion was not begun, with
            the ids of their blocks.
        gone: texts whose deletion was acknowledged.
        revision: the highest one that was answered.
        answered: calls that were answered, in all.
        sent: an insertion that was not acknowledged, with its text: its caller sends it again.
    """

    article_id: str
    there: dict[str, list[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    revision: int = 0
    answered: int = 0
    sent: tuple[str, wire.ApplyEditRequest] | None = None


def editor_process(
    folder: Path, name: str
) -> AbstractAsyncContextManager[tuple[AsyncForkedProcess, str]]:
    """Run the services on the folder's data; yield the process and its address."""
    return serving(folder, ("accounts", "articles", "files"), name)


async def work_until_killed(
    address: str,
    process: AsyncForkedProcess,
    key: str,
    acknowledged: list[AcknowledgedEdits],
    chance: random.Random,
) -> None:
    """Edit from several callers, and kill the process once some more edits were answered."""
    metadata = call_metadata(key, "req_kill")
    async with open_channel(address, max_message_bytes=4 << 20) as channel:
        stub = ArticleEditorServiceStub(channel)
        callers = [
            asyncio.create_task(_edit(stub, metadata, one, random.Random(chance.random())))
            for one in acknowledged
        ]
        more = chance.randint(0, _MOST_BEFORE_A_KILL)
        enough = sum(one.answered for one in acknowledged) + more
        # Each caller some, however the processors are shared.
        enough_each = [one.answered + _FEWEST_BEFORE_A_KILL for one in acknowledged]
        await until(
            lambda: (
                (
                    sum(one.answered for one in acknowledged) >= enough
                    and all(
                        one.answered >= least
                        for one, least in zip(acknowledged, enough_each, strict=True)
                    )
                )
                or any(one.done() for one in callers)
            )
        )
        # Any moment is a moment to die: this is the one wait that is for nothing.
        await asyncio.sleep(chance.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        for outcome in await asyncio.gather(*callers, return_exceptions=True):
            assert isinstance(outcome, grpc.aio.AioRpcError), outcome


async def make_article(address: str, key: str) -> str:
    """Make a document; return its id."""
    async with open_channel(address, max_message_bytes=4 << 20) as channel:
        stub = ArticleEditorServiceStub(channel)
        made = await stub.CreateArticle(
            wire.CreateArticleRequest(), metadata=call_metadata(key, "req_kill")
        )
        return made.article.id


async def _edit(
    stub: ArticleEditorServiceStub,
    metadata: Metadata,
    acknowledged: AcknowledgedEdits,
    chance: random.Random,
) -> None:
    opened = await stub.CreateSession(
        wire.CreateSessionRequest(article_id=acknowledged.article_id), metadata=metadata
    )
    while True:
        if acknowledged.there and chance.random() < 0.3:
            text = chance.choice(list(acknowledged.there))
            # From here on nobody can say whether it is still there.
            block_id = acknowledged.there.pop(text)[0]
            edit = Edit(delete_block=DeleteBlock(block_id=block_id))
            deleted = await stub.ApplyEdit(
                wire.ApplyEditRequest(session_id=opened.session_id, edit=edit), metadata=metadata
            )
            acknowledged.gone.add(text)
            acknowledged.revision = max(acknowledged.revision, deleted.revision)
        else:
            text, request = acknowledged.sent or _insertion(f"{chance.getrandbits(64):x}")
            acknowledged.sent = text, request
            request.session_id = opened.session_id
            inserted = await stub.ApplyEdit(request, metadata=metadata)
            acknowledged.sent = None
            acknowledged.there[text] = list(inserted.ids)
            acknowledged.revision = max(acknowledged.revision, inserted.revision)
        acknowledged.answered += 1


def _insertion(text: str) -> tuple[str, wire.ApplyEditRequest]:
    blocks = [paragraph(f"{text}/{place}") for place in range(_RUN)]
    edit = Edit(insert_blocks=InsertBlocks(path=[0], blocks=orjson.dumps(blocks)))
    return text, wire.ApplyEditRequest(edit=edit, request_id=text)


async def assert_consistent(engine: AsyncEngine, acknowledged: AcknowledgedEdits) -> None:
    """Check the document against what its callers know, and against its log."""
    opened = await OperationLog(engine, Clock()).load(acknowledged.article_id)
    assert opened.revision >= acknowledged.revision, "an acknowledged edit is lost"
    parts: dict[str, list[int]] = {}
    for block in opened.document.blocks:
        leaf = block.children[0]
        assert isinstance(leaf, Leaf)
        text, _, place = leaf.text.partition("/")
        parts.setdefault(text, []).append(int(place))
    for text in acknowledged.there:
        assert parts.get(text) == list(range(_RUN)), "an acknowledged insertion is lost or half"
    for text, places in parts.items():
        # A deletion takes the first of a run.
        assert places in (list(range(_RUN)), list(range(1, _RUN))), "an edit is half there"
        assert text not in acknowledged.gone or places == list(range(1, _RUN)), (
            "a deletion is undone"
        )
    stored, replayed = await stored_and_replayed(engine, acknowledged.article_id)
    assert stored == replayed
