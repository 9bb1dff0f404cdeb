"""Entries as JSON lines. Pure."""

from collections.abc import Sequence

import orjson

from services.request_log.exporters.base import ExportedRequest, RenderEntry


def json_lines(batch: Sequence[ExportedRequest], render: RenderEntry) -> bytes:
    """Return a line for each entry: its object in the administration API, and its trace."""
    return b"".join(
        orjson.dumps(
            {
                **render(entry.logged, entry.bodies),
                "trace_id": None if entry.trace is None else entry.trace.trace_id,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for entry in batch
    )
