"""Searches of vector stores."""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import orjson

from gateway.memory.v1.vector_stores_pb2 import FoundChunk, SearchVectorStoresRequest
from services.common.attribute_filters import Filter, parse_filter
from services.memory.archive.archive import Archive, Passage, QuestionVector
from services.memory.archive.score_fusion import ALPHA
from services.memory.vector_stores.file_repository import SearchedFile, VectorStoreFileRepository
from services.memory.vector_stores.records import expired
from services.memory.vector_stores.store_repository import StoreRepository

DEFAULT_RESULTS: Final = 10
_STORE_IDS: Final = "vector_store_ids"

# Returns the vector of a question of a user; None if no model returns one in time.
EmbedQuestion = Callable[[str, str], Awaitable[QuestionVector | None]]


class VectorStoreSearch:
    """Searches vector stores.

    Args:
        stores: the vector stores.
        files: their files.
        archive: the index.
        embed_question: returns the vectors of questions.
    """

    def __init__(
        self,
        stores: StoreRepository,
        files: VectorStoreFileRepository,
        archive: Archive,
        embed_question: EmbedQuestion,
    ) -> None:
        self._stores = stores
        self._files = files
        self._archive = archive
        self._embed_question = embed_question

    async def search(self, user_id: str, request: SearchVectorStoresRequest) -> list[FoundChunk]:
        """Return the chunks that match the queries of a request best.

        Raises:
            GatewayError: not_found; invalid, a filter, or a vector store that has expired.
        """
        is_searched = parse_filter(request.filters) if request.filters else None
        store_ids = list(dict.fromkeys(request.vector_store_ids))
        stores = await self._stores.find(user_id, store_ids, _STORE_IDS)
        if any(store.has_expired for store in stores):
            raise expired(_STORE_IDS)
        await self._stores.touch(user_id, stores)
        searched = await self._files.searched([store.id for store in stores])
        files = await asyncio.to_thread(_selected, searched, is_searched)
        if not files:
            return []
        ranges: dict[str, list[tuple[int, int]]] = {}
        for file in files:
            ranges.setdefault(file.store_id, []).append((file.first, file.end))
        share = request.vector_share if request.HasField("vector_share") else ALPHA
        best: dict[tuple[str, int], Passage] = {}
        for query in dict.fromkeys(request.queries):
            passages = await self._archive.search_ranges(
                user_id,
                ranges,
                query,
                limit=request.max_results or DEFAULT_RESULTS,
                vector=await self._embed_question(user_id, query) if share else None,
                alpha=share,
            )
            for passage in passages:
                key = passage.entity_id, passage.turn
                if key not in best or best[key].score < passage.score:
                    best[key] = passage
        ranked = sorted(best.values(), key=lambda passage: passage.score, reverse=True)
        return [
            _found(passage, files)
            for passage in ranked[: request.max_results or DEFAULT_RESULTS]
            if passage.score >= request.score_threshold
        ]


def _selected(files: Sequence[SearchedFile], is_searched: Filter | None) -> list[SearchedFile]:
    if is_searched is None:
        return list(files)
    return [file for file in files if is_searched(orjson.loads(file.attributes or b"{}"))]


def _found(passage: Passage, files: Sequence[SearchedFile]) -> FoundChunk:
    """Return a passage with its file; the files are sorted by store and number."""
    place = bisect_right(
        files, (passage.entity_id, passage.turn), key=lambda file: (file.store_id, file.first)
    )
    file = files[place - 1]
    return FoundChunk(
        file_id=file.file_id,
        filename=file.filename,
        score=passage.score,
        text=passage.text,
        attributes=file.attributes,
        vector_store_id=file.store_id,
    )
