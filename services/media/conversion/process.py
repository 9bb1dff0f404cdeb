"""Worker process of conversions: `python -m services.media.conversion.process`.

It reads one conversion after the other from standard input and writes each reply to standard
output, in frames (`services.common.process.frames`). Media are untrusted: the process has a memory
limit, is confined (`confinement`), and gets only the environment variables that `worker` passes.
It exits when standard input closes, and so with the gateway.
"""

import contextlib
import gc
import os
import resource
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import orjson

from services.common.process.frames import read_frame, write_frame
from services.media.conversion.confinement import confine
from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_RESULT, MAX_TEXT, WorkerLimits
from services.media.conversion.loading import load
from services.media.conversion.parts import Source

# Module and function of each conversion, by the name of the `Converter` method.
_FUNCTIONS = {
    "pages_as_text": ("documents", "pages_as_text"),
    "pages_as_pictures": ("documents", "pages_as_pictures"),
    "page_picture": ("documents", "page_picture"),
    "docx_as_pdf": ("documents", "docx_as_pdf"),
    "image_facts": ("images", "image_facts"),
    "transcript": ("speech", "transcript"),
    "film": ("films", "film"),
    "web_page": ("web_pages", "read_page"),
    "vectors": ("vectors", "vectors"),
    "typeset": ("typeset", "markup_as_pdf"),
    "embedded_files": ("embedded", "embedded_files"),
}
# The kernel kills a process this many seconds after its time limit, in case the gateway is gone.
_GRACE_S = 10


def answer(head: dict[str, Any], contents: list[bytes]) -> tuple[Any, list[bytes]]:
    """Run one conversion of the bytes in `contents`; return the frame of its result."""
    blobs: list[bytes] = []

    def hold(value: Any) -> dict[str, int]:
        if not isinstance(value, bytes):
            raise TypeError(f"{type(value).__name__} is not part of a result")
        blobs.append(value)
        return {"blob": len(value)}

    try:
        source = Source(contents.pop(), head["mime_type"], head["file_name"])
        function = _find(head["name"])
        result = function(source, **head["options"])
        reply = orjson.dumps({"result": result}, default=hold)
        if len(reply) > MAX_TEXT:
            raise ConversionError(f"the result has more than {MAX_TEXT >> 20} MiB of text")
        if sum(map(len, blobs)) > MAX_RESULT:
            raise ConversionError(
                f"the result has more than {MAX_RESULT >> 20} MiB; send fewer pages"
            )
        return reply, blobs
    except ConversionError as error:
        return {"refused": str(error), "limit": error.limit}, []
    except ModuleNotFoundError as error:
        return {"missing": error.name}, []
    except RecursionError:
        return {"refused": "the file is nested too deeply", "limit": ""}, []
    except MemoryError:
        return {"out_of_memory": True}, []
    except Exception:
        return {"failed": traceback.format_exc()}, []


def _find(name: str) -> Callable[..., Any]:
    """Return the function of a conversion."""
    module, function = _FUNCTIONS[name]
    converter: Callable[..., Any] = getattr(load(module), function)
    return converter


def _restrict(bounds: WorkerLimits) -> None:
    with contextlib.suppress(ValueError, OSError):  # not supported on every system
        resource.setrlimit(resource.RLIMIT_AS, (bounds.memory, bounds.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # where files are not confined
    sys.dont_write_bytecode = True
    os.nice(10)  # lower priority than the gateway's event loop
    confine()


def _leave_with_parent() -> None:
    """Exit when the parent closes its end of standard input."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), 0)  # POLLHUP and POLLERR are always reported
    poll.poll()
    os._exit(0)


def main() -> None:
    """Run conversions until standard input closes; the limits are the arguments."""
    seconds, memory, threads = sys.argv[1:]
    bounds = WorkerLimits(float(seconds), int(memory), int(threads))
    _restrict(bounds)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the gateway
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Redirect the libraries' output, so that it corrupts neither the replies nor the gateway's log.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        while True:
            head, content = read_frame(sys.stdin.buffer)
            contents = [content]
            del content
            signal.alarm(int(bounds.seconds) + _GRACE_S)
            reply, blobs = answer(head, contents)
            signal.alarm(0)
            write_frame(answers, reply, *blobs)
            del reply, blobs
            gc.collect()
    except (EOFError, BrokenPipeError):
        os._exit(0)


if __name__ == "__main__":
    main()
