"""A process that parses bodies for a facade: `python -m facade.parser_process`.

It reads one body after the other from standard input and writes each result to standard output, in
frames of a JSON head and bytes. The first frame has the number of parts of the request; each part
follows in a frame of its own. The process exits when standard input closes, as when the facade
exits.
"""

import gc
import os
import signal
import sys
import traceback
from typing import Any

from facade.dialects.verbatim import VerbatimRequest
from facade.parsing import FORMATS, parse
from services.common.errors import GatewayError
from services.common.messages.large_request import serialize
from services.common.process.frames import read_frame, write_frame

# The processes that serve requests come first.
_LOWER = 10


def _answer(head: dict[str, Any], held: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Parse one body; return the head of the first frame, and the parts of the request."""
    try:
        parsed = parse(FORMATS[head["format"]], held, head["options"], head["max_values"])
        request, lazy = parsed.request, None
        if isinstance(request, VerbatimRequest):
            lazy, parts = request.dump()
        else:
            parts = serialize(request)
        head = {
            "parts": len(parts),
            "lazy": lazy,
            "model": parsed.model,
            "stream": parsed.stream,
            "source_map": parsed.source_map.dump(),
            "include_usage": parsed.include_usage,
            "calls_functions": parsed.calls_functions,
            "base64": parsed.base64,
            "metadata": parsed.metadata,
            "end_user": parsed.end_user,
            "includes_thoughts": parsed.includes_thoughts,
            "stored": parsed.stored,
            "state": None if parsed.state is None else parsed.state.dump(),
        }
        return head, parts
    except GatewayError as error:
        refused = {
            "reason": error.reason,
            "message": error.message,
            "param": error.param,
            "limit": error.limit,
        }
        return {"refused": refused}, []
    except Exception:
        return {"failed": traceback.format_exc()}, []


def main() -> None:
    """Parse bodies until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the facade
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Redirect other output, which must not corrupt the frames.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.nice(_LOWER)
    gc.freeze()
    gc.disable()
    try:
        while True:
            head, body = read_frame(sys.stdin.buffer)
            held = [body]
            del body
            result, parts = _answer(head, held)
            write_frame(answers, result)
            for part in parts:
                write_frame(answers, None, part)
            del parts
            gc.collect()
    except (EOFError, BrokenPipeError):
        os._exit(0)


if __name__ == "__main__":
    main()
