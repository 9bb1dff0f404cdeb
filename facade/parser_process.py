"""A process that parses bodies for a facade: `python -m facade.parser_process`.

It reads one body after the other from standard input and writes each result to standard output, in
frames of a JSON head and bytes. It exits when standard input closes, and so with the facade.
"""

import gc
import os
import signal
import sys
import traceback
from typing import Any

from facade.parsing import parse
from services.common.errors import GatewayError
from services.common.frames import read_frame, write_frame


def _answer(head: dict[str, Any], held: list[bytes]) -> tuple[dict[str, Any], bytes]:
    """Parse one body; return the frame with its result."""
    try:
        parsed = parse(head["kind"], held, head["options"], head["max_values"])
        content: bytes = parsed.request.SerializeToString()
        head = {
            "model": parsed.model,
            "stream": parsed.stream,
            "origins": parsed.origins.dump(),
            "include_usage": parsed.include_usage,
            "base64": parsed.base64,
            "state": None if parsed.state is None else parsed.state.dump(),
        }
        return head, content
    except GatewayError as error:
        refused = {
            "reason": error.reason,
            "message": error.message,
            "param": error.param,
            "limit": error.limit,
        }
        return {"refused": refused}, b""
    except Exception:
        return {"failed": traceback.format_exc()}, b""


def main() -> None:
    """Parse bodies until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the facade
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Redirect other output, which must not corrupt the frames.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    gc.freeze()
    gc.disable()
    try:
        while True:
            head, body = read_frame(sys.stdin.buffer)
            held = [body]
            del body
            write_frame(answers, *_answer(head, held))
            gc.collect()
    except (EOFError, BrokenPipeError):
        os._exit(0)


if __name__ == "__main__":
    main()
