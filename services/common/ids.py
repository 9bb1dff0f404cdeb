"""Where identifiers and the time come from.

Both are handed in, so that a test decides them.
"""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from ulid import ULID

MAX_REQUEST_ID = 128  # characters of an id that a caller gives a request

# Gives a number between two bounds. The system's dice have no state that others could see.
uniform: Callable[[float, float], float] = random.SystemRandom().uniform


def new_id(prefix: str) -> str:
    """Give `prefix` and 26 characters that sort by time of making (a ULID)."""
    return f"{prefix}{ULID()}"


def new_request_id() -> str:
    """Give an id for a request: `req_` and 24 hex digits."""
    return f"req_{os.urandom(12).hex()}"


@dataclass(frozen=True)
class Source:
    """Identifiers and both clocks, as one thing to hand in.

    Attributes:
        new_id: makes an identifier with the prefix it is given.
        now: Unix seconds.
        monotonic: seconds of a clock that never goes back.
    """

    new_id: Callable[[str], str] = new_id
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
