"""Documents in other formats, and their references, over gRPC."""

from typing import Any

import grpc

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceServicer
from services.articles import responses
from services.articles.callers import Callers
from services.articles.committer import DocumentCommitter
from services.articles.conversions import DocumentConverter
from services.articles.exports import DocumentExporter
from services.articles.reference_styles import format_references
from services.common.process.offload import offload_if

Context = grpc.aio.ServicerContext

# References from which on they are written in a thread.
_MANY_REFERENCES = 20


class ExportCalls(ArticleEditorServiceServicer):
    """The RPCs that return documents and references in other formats."""

    _callers: Callers
    _committer: DocumentCommitter
    _converter: DocumentConverter
    _exporter: DocumentExporter

    async def ExportReferences(
        self, request: wire.ExportReferencesRequest, context: "Context[Any, Any]"
    ) -> wire.ExportReferencesResponse:
        """Return references in a format of bibliographies."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        return await offload_if(
            len(state.document.references) >= _MANY_REFERENCES,
            responses.export_references,
            state,
            request,
        )

    async def ExportArticle(
        self, request: wire.ExportArticleRequest, context: "Context[Any, Any]"
    ) -> wire.ExportArticleResponse:
        """Return a document in another format."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        return await self._exporter.export(state, request)

    async def FormatReferences(
        self, request: wire.FormatReferencesRequest, context: "Context[Any, Any]"
    ) -> wire.FormatReferencesResponse:
        """Return the citations and references of a document in a style."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        return await format_references(state, request, self._converter)
