"""Translation between protobuf and JSON of memories, turns and profiles.

Both formats have the same fields, except that Format A has the kind of an object in `object` and
times in Unix seconds, and Format B has the kind in `type` and times of RFC 3339.
"""

from facade.dialects.memory.answers import (
    render_deleted_fact,
    render_deleted_memory,
    render_deleted_profile,
    render_fact,
    render_memory,
    render_memory_list,
    render_profile,
    render_snippets,
    render_turn_list,
)
from facade.dialects.memory.requests import (
    parse_correction,
    parse_memory_id,
    parse_page,
    parse_search,
)

__all__ = [
    "parse_correction",
    "parse_memory_id",
    "parse_page",
    "parse_search",
    "render_deleted_fact",
    "render_deleted_memory",
    "render_deleted_profile",
    "render_fact",
    "render_memory",
    "render_memory_list",
    "render_profile",
    "render_snippets",
    "render_turn_list",
]
