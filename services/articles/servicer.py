"""Document editing over gRPC."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import grpc
import orjson

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceServicer
from services.articles import codec, responses
from services.articles.committer import DocumentCommitter, EditResult
from services.articles.errors import BODY, NO_GRANT, failure, no_session
from services.articles.files import Files, check_ownership, referenced_files
from services.articles.groups import GroupRepository
from services.articles.repository import ArticleRepository
from services.articles.sessions import SessionRef, SessionRepository, is_session_id
from services.articles.tree import requests
from services.articles.tree.errors import EditError
from services.articles.tree.operations import Operation
from services.common.authentication import caller
from services.common.disk import DiskReserve
from services.common.errors import GatewayError
from services.common.ids import Source
from services.common.plans import plan_name

SERVICE_NAME = "gateway.articles.v1.ArticleEditorService"

# Bytes of JSON. A request that has more is read, and a document that has more rendered, in a
# thread, so that it holds nobody up: a millisecond's work has about 2 kB.
_LARGE = 32 << 10

Context = grpc.aio.ServicerContext


class _EditRequest(Protocol):
    """What every request has that edits a document."""

    session_id: str
    if_revision: int

    def HasField(self, field_name: Any) -> bool: ...

    def ByteSize(self) -> int: ...


class ArticleEditorServicer(ArticleEditorServiceServicer):
    """Answers for the documents of whoever calls."""

    def __init__(
        self,
        articles: ArticleRepository,
        sessions: SessionRepository,
        committer: DocumentCommitter,
        files: Files,
        grants: GroupRepository | None,
        source: Source,
        reserve: DiskReserve,
    ) -> None:
        """Take what it is made of; without `grants` every user may edit documents."""
        self._reserve = reserve
        self._articles = articles
        self._sessions = sessions
        self._committer = committer
        self._files = files
        self._grants = grants
        self._new_id = lambda: source.new_id("")

    async def CreateSession(
        self, request: wire.CreateSessionRequest, context: "Context[Any, Any]"
    ) -> wire.CreateSessionResponse:
        """Open a document."""
        user_id = await self._user_id()
        plan = plan_name(caller.get().plan)
        session_id, reused = await self._sessions.open(user_id, plan, request.article_id)
        opened = await self._committer.read(SessionRef(session_id, user_id))
        return wire.CreateSessionResponse(
            session_id=session_id,
            block_count=len(opened.document.blocks),
            reused=reused,
            revision=opened.revision,
        )

    async def DestroySession(
        self, request: wire.DestroySessionRequest, context: "Context[Any, Any]"
    ) -> wire.DestroySessionResponse:
        """End a session."""
        await self._sessions.end(await self._named(request.session_id))
        return wire.DestroySessionResponse()

    async def ListArticles(
        self, request: wire.ListArticlesRequest, context: "Context[Any, Any]"
    ) -> wire.ListArticlesResponse:
        """List the caller's groups with their documents."""
        groups = await self._articles.list_groups(await self._user_id())
        return wire.ListArticlesResponse(groups=groups)

    async def CreateArticle(
        self, request: wire.CreateArticleRequest, context: "Context[Any, Any]"
    ) -> wire.CreateArticleResponse:
        """Make an empty document."""
        user_id = await self._user_id()
        self._reserve.check()
        plan = plan_name(caller.get().plan)
        article = await self._articles.create(user_id, plan, request.group_id, request.name)
        return wire.CreateArticleResponse(article=article)

    async def DeleteArticle(
        self, request: wire.DeleteArticleRequest, context: "Context[Any, Any]"
    ) -> wire.DeleteArticleResponse:
        """Delete a document."""
        await self._articles.delete(await self._user_id(), request.article_id)
        return wire.DeleteArticleResponse()

    async def ReadArticle(
        self, request: wire.ReadArticleRequest, context: "Context[Any, Any]"
    ) -> wire.ReadArticleResponse:
        """Read a document."""
        opened = await self._committer.read(await self._named(request.session_id))
        if opened.size < _LARGE:
            return responses.article(opened)
        return await asyncio.to_thread(responses.article, opened)

    async def ReadBlock(
        self, request: wire.ReadBlockRequest, context: "Context[Any, Any]"
    ) -> wire.ReadBlockResponse:
        """Read a block."""
        opened = await self._committer.read(await self._named(request.session_id))
        if opened.size < _LARGE:
            return responses.block(opened, request.block_id)
        return await asyncio.to_thread(responses.block, opened, request.block_id)

    async def InsertBlocks(
        self, request: wire.InsertBlocksRequest, context: "Context[Any, Any]"
    ) -> wire.InsertBlocksResponse:
        """Insert blocks."""

        def read() -> Operation:
            body = {"path": list(request.path), "blocks": _json(request.blocks, "/blocks")}
            return requests.insert(body, self._new_id)

        done = await self._edit(request, read)
        return wire.InsertBlocksResponse(ids=done.ids, revision=done.opened.revision)

    async def DeleteBlock(
        self, request: wire.DeleteBlockRequest, context: "Context[Any, Any]"
    ) -> wire.DeleteBlockResponse:
        """Delete an element."""
        done = await self._edit(request, lambda: requests.delete({"blockId": request.block_id}))
        return wire.DeleteBlockResponse(revision=done.opened.revision)

    async def ReplaceText(
        self, request: wire.ReplaceTextRequest, context: "Context[Any, Any]"
    ) -> wire.ReplaceTextResponse:
        """Replace what a block holds."""

        def read() -> Operation:
            body = _object(request.fields, "") | {"blockId": request.block_id}
            return requests.replace_text(body, self._new_id)

        done = await self._edit(request, read)
        return wire.ReplaceTextResponse(revision=done.opened.revision)

    async def AppendText(
        self, request: wire.AppendTextRequest, context: "Context[Any, Any]"
    ) -> wire.AppendTextResponse:
        """Append text to a block."""

        def read() -> Operation:
            body = {"blockId": request.block_id, "text": _json(request.text, "/text")}
            return requests.append_text(body)

        done = await self._edit(request, read)
        return wire.AppendTextResponse(revision=done.opened.revision)

    async def Cite(
        self, request: wire.CiteRequest, context: "Context[Any, Any]"
    ) -> wire.CiteResponse:
        """Set or clear a citation."""

        def read() -> Operation:
            body = _target(request)
            if request.HasField("reference_id"):
                body["cite"] = request.reference_id
            return requests.cite(body)

        done = await self._edit(request, read)
        return wire.CiteResponse(revision=done.opened.revision)

    async def AddReference(
        self, request: wire.AddReferenceRequest, context: "Context[Any, Any]"
    ) -> wire.AddReferenceResponse:
        """Add a reference."""

        def read() -> Operation:
            body = {"reference": _json(request.reference, "/reference")}
            return requests.add_reference(body, self._new_id)

        done = await self._edit(request, read)
        return wire.AddReferenceResponse(reference_id=done.ids[0], revision=done.opened.revision)

    async def UpdateReference(
        self, request: wire.UpdateReferenceRequest, context: "Context[Any, Any]"
    ) -> wire.UpdateReferenceResponse:
        """Change a reference."""

        def read() -> Operation:
            body = {"reference": _json(request.reference, "/reference")}
            return requests.update_reference(body)

        done = await self._edit(request, read)
        return wire.UpdateReferenceResponse(revision=done.opened.revision)

    async def DeleteReference(
        self, request: wire.DeleteReferenceRequest, context: "Context[Any, Any]"
    ) -> wire.DeleteReferenceResponse:
        """Delete a reference and clear its citations."""

        def read() -> Operation:
            body = {"referenceId": request.reference_id}
            return requests.delete_reference(body)

        done = await self._edit(request, read)
        return wire.DeleteReferenceResponse(revision=done.opened.revision)

    async def SetBlockStyle(
        self, request: wire.SetBlockStyleRequest, context: "Context[Any, Any]"
    ) -> wire.SetBlockStyleResponse:
        """Change a block's own properties."""

        def read() -> Operation:
            body = _object(request.properties, "") | {"blockId": request.block_id}
            return requests.style_block(body)

        done = await self._edit(request, read)
        return wire.SetBlockStyleResponse(revision=done.opened.revision)

    async def SetLeafStyle(
        self, request: wire.SetLeafStyleRequest, context: "Context[Any, Any]"
    ) -> wire.SetLeafStyleResponse:
        """Change the marks of leaves."""

        def read() -> Operation:
            body = _object(request.marks, "") | _target(request)
            return requests.style_leaf(body)

        done = await self._edit(request, read)
        return wire.SetLeafStyleResponse(revision=done.opened.revision)

    async def SetArticleStyle(
        self, request: wire.SetArticleStyleRequest, context: "Context[Any, Any]"
    ) -> wire.SetArticleStyleResponse:
        """Merge a style into the document's."""

        def read() -> Operation:
            body = {"style": _json(request.style, "/style")}
            return requests.style_article(body)

        done = await self._edit(request, read)
        return wire.SetArticleStyleResponse(revision=done.opened.revision)

    async def _edit(self, request: _EditRequest, read: Callable[[], Operation]) -> EditResult:
        named = await self._named(request.session_id)
        is_large = request.ByteSize() >= _LARGE
        try:
            self._reserve.check()
            operation = await asyncio.to_thread(_told, read) if is_large else _told(read)
            await check_ownership(self._files, referenced_files(operation))
        except GatewayError:
            # A refused call keeps its session alive too, and tells first when it is over.
            await self._committer.read(named)
            raise
        if_revision = request.if_revision if request.HasField("if_revision") else None
        return await self._committer.edit(named, operation, if_revision)

    async def _named(self, session_id: str) -> SessionRef:
        named = SessionRef(session_id, await self._user_id())
        if not is_session_id(session_id):
            raise no_session()
        return named

    async def _user_id(self) -> str:
        user_id = caller.get().user_id
        if self._grants is not None and not await self._grants.has_grant(user_id):
            raise failure(NO_GRANT, "", "you need a grant to edit documents; ask the operator")
        return user_id


def _told(read: Callable[[], Operation]) -> Operation:
    try:
        return read()
    except EditError as refusal:
        raise codec.told(refusal) from None


def _target(request: wire.CiteRequest | wire.SetLeafStyleRequest) -> dict[str, Any]:
    """Return those of blockId and leafPath that the request has."""
    target: dict[str, Any] = {}
    if request.HasField("block_id"):
        target["blockId"] = request.block_id
    if request.leaf_path:
        target["leafPath"] = list(request.leaf_path)
    return target


def _json(content: bytes, pointer: str) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise failure(BODY, pointer, "takes JSON in UTF-8") from None


def _object(content: bytes, pointer: str) -> dict[str, Any]:
    value = _json(content, pointer)
    if not isinstance(value, dict):
        raise failure(BODY, pointer, "takes a JSON object")
    return value
