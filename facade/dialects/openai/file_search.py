"""The tool `file_search` of responses."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import TypeAdapter

from facade.dialects.openai.vector_stores import RankingOptions, vector_share
from facade.dialects.validation import to_json
from gateway.inference.v1 import inference_pb2 as pb
from services.common.attribute_filters import parse_filter
from services.common.errors import GatewayError, invalid

FILE_SEARCH: Final = "file_search"
# The gateway's own ids; those of OpenAI have other characters.
_OWN = re.compile(r"vs_[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
_MAX_STORES: Final = 10
_MAX_RESULTS: Final = 50
_KNOWN: Final = frozenset(
    {"type", "vector_store_ids", "filters", "max_num_results", "ranking_options"}
)
_RANKING: TypeAdapter[RankingOptions] = TypeAdapter(RankingOptions)


def searches_own_files(tool: Mapping[str, Any]) -> bool:
    """Return whether a tool searches vector stores of the gateway."""
    if tool.get("type") != FILE_SEARCH:
        return False
    store_ids = tool.get("vector_store_ids")
    return isinstance(store_ids, list) and any(map(_is_own, store_ids))


def file_search_tool(tool: Mapping[str, Any], path: str) -> pb.WebTool:
    """Translate a tool `file_search` at `path`, which names a vector store of the gateway.

    Raises:
        GatewayError: invalid, naming the field.
    """
    store_ids: Sequence[Any] = tool["vector_store_ids"]
    where = f"{path}.vector_store_ids"
    if not all(map(_is_own, store_ids)):
        raise invalid(where, f"{where}: all must be vector stores of the gateway, or none")
    if len(store_ids) > _MAX_STORES:
        raise invalid(where, f"{where}: must have at most {_MAX_STORES} vector stores")
    search = pb.FileSearch(vector_store_ids=dict.fromkeys(store_ids))
    if (filters := tool.get("filters")) is not None:
        search.filters = to_json(filters, f"{path}.filters")
        try:
            parse_filter(search.filters)
        except GatewayError as error:
            raise invalid(f"{path}.{error.param}", f"{path}.{error.message}") from None
    if (options := tool.get("ranking_options")) is not None:
        _set_ranking(search, options, path)
    web = pb.WebTool(
        kind=pb.WebTool.KIND_FILES,
        files=search,
        foreign_fields=[
            name for name, value in tool.items() if name not in _KNOWN and value is not None
        ],
    )
    if (count := tool.get("max_num_results")) is not None:
        where = f"{path}.max_num_results"
        if not isinstance(count, int) or not 1 <= count <= _MAX_RESULTS:
            raise invalid(where, f"{where}: must be an integer from 1 to {_MAX_RESULTS}")
        web.max_results = count
    return web


def _set_ranking(search: pb.FileSearch, options: Any, path: str) -> None:
    where = f"{path}.ranking_options"
    try:
        ranking = _RANKING.validate_python(options)
    except ValueError:
        raise invalid(
            where,
            f"{where}: must be an object with ranker, score_threshold (0 to 1) and hybrid_search "
            "(embedding_weight and text_weight, numbers from 0 on)",
        ) from None
    search.score_threshold = ranking.score_threshold or 0.0
    if ranking.hybrid_search is not None:
        search.vector_share = vector_share(ranking.hybrid_search, f"{path}.")


def _is_own(name: Any) -> bool:
    return isinstance(name, str) and _OWN.fullmatch(name) is not None
