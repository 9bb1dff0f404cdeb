"""Citations and references of a document in a style."""

import re
from typing import NamedTuple

import orjson

from gateway.articles.v1 import articles_pb2 as wire
from services.articles.cache import DocumentState
from services.articles.conversions import DocumentConverter, check_pandoc, converted, style_of
from services.articles.errors import FIELDS, SCHEMA, failure
from services.articles.pandoc.formatted import (
    DocumentCitation,
    Formatted,
    citations_in,
    read_entries,
    read_formatted,
    tree_to_format,
)
from services.articles.pandoc.markdown import leaves_markdown
from services.articles.pandoc.syntax import Node
from services.articles.tree.document import Document
from services.common.process.offload import offload_if

_LOCALE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,3}", re.ASCII)


class Styled(NamedTuple):
    """The citations of a document, and what a style makes of them."""

    citations: list[DocumentCitation]
    formatted: Formatted


async def apply_style(
    document: Document,
    style: str,
    converter: DocumentConverter,
    *,
    locale: str = "",
    with_all: bool = False,
) -> Styled:
    """Return the citations and references of a document in a style.

    Args:
        document: the document.
        style: path of the style.
        converter: converts in worker processes.
        locale: the language of the references, "" for that of the style.
        with_all: whether to return references that are not cited, too.

    Raises:
        GatewayError: see `converted`.
    """
    cited = citations_in(document)
    root = tree_to_format(document, cited, locale, with_all=with_all)
    content = await offload_if(True, orjson.dumps, root)
    conversion = converter.pandoc(content, reader="json", writer="json", style=style)
    output = await converted(conversion, "/style")
    formatted = await offload_if(True, lambda: read_formatted(orjson.loads(output.content)))
    return Styled(cited, formatted)


async def styled_entries(
    document: Document, style: str, converter: DocumentConverter
) -> dict[str, list[Node]]:
    """Return the texts of the cited references in a style, by their ids, in its order.

    Raises:
        GatewayError: see `converted`.
    """
    root = tree_to_format(document, citations_in(document), with_all=False)
    content = await offload_if(True, orjson.dumps, root)
    conversion = converter.pandoc(content, reader="json", writer="json", style=style)
    output = await converted(conversion, "/style")
    return await offload_if(True, lambda: read_entries(orjson.loads(output.content)))


async def format_references(
    state: DocumentState, request: wire.FormatReferencesRequest, converter: DocumentConverter
) -> wire.FormatReferencesResponse:
    """Return the citations and all references of a document in a style.

    Raises:
        GatewayError: see ArticleEditorService.FormatReferences.
    """
    check_pandoc("/style", "a style of citations")
    style = style_of(state.document, request.style)
    if not style:
        raise failure(FIELDS, "/style", "is required, as the article has no style of citations")
    if request.locale and not _LOCALE.fullmatch(request.locale):
        raise failure(SCHEMA, "/locale", "must be the name of a language, such as en-GB")
    response = wire.FormatReferencesResponse(revision=state.revision)
    if not state.document.references:
        return response
    cited, formatted = await apply_style(
        state.document, style, converter, locale=request.locale, with_all=True
    )
    for citation, leaves in zip(cited, formatted.citations, strict=True):
        response.citations.add(
            block_id=citation.block_id,
            reference_ids=citation.reference_ids,
            text=leaves_markdown(leaves),
        )
    for reference_id, text in formatted.bibliography:
        response.bibliography.add(reference_id=reference_id, text=text)
    return response
