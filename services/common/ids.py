"""Generators of identifiers and random numbers.

Both are passed as arguments, so that tests control them.
"""

import os
import random
import re
import threading
import time
from collections.abc import Callable
from itertools import product
from typing import TypeAlias

# Returns a new identifier with a given prefix.
IdGenerator: TypeAlias = Callable[[str], str]

MAX_REQUEST_ID = 128  # characters of a request id that the caller chose

# Returns a random number between two bounds. The system's random source is not predictable.
uniform: Callable[[float, float], float] = random.SystemRandom().uniform


# Crockford's base 32: two characters for each value of ten bits.
_PAIRS = ["".join(pair) for pair in product("0123456789ABCDEFGHJKMNPQRSTVWXYZ", repeat=2)]
_SHIFTS = range(120, -1, -10)
_RANDOM_BITS = 80

_CONVERSATION = "conv_gw"
_CONVERSATION_ID = re.compile(r"conv_gw[0-9a-f]{44}")


class UlidGenerator:
    """Generator of strictly increasing ULIDs; thread-safe.

    Most stored objects have a ULID, and each turn and response needs several; python-ulid takes
    twice as long.

    Args:
        now_ns: returns Unix nanoseconds.
        random_bytes: returns a number of random bytes.
    """

    def __init__(
        self,
        now_ns: Callable[[], int] = time.time_ns,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._now_ns = now_ns
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._last = 0

    def make(self) -> str:
        """Return a ULID of 26 characters: 48 bits of Unix milliseconds, and 80 random bits.

        Within one millisecond, each ULID is the previous one plus 1.
        """
        with self._lock:
            begin = self._now_ns() // 1_000_000 << _RANDOM_BITS
            if begin > self._last:
                self._last = begin | int.from_bytes(self._random_bytes(_RANDOM_BITS // 8))
            else:
                self._last += 1
            number = self._last
        return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


_ulids = UlidGenerator()


def new_id(prefix: str) -> str:
    """Return `prefix` and a ULID: 26 characters that sort by creation time."""
    return prefix + _ulids.make()


def time_prefix(prefix: str, time_ms: int) -> str:
    """Return the beginning of an id that sorts by time: `prefix` and the time as hex digits."""
    return f"{prefix}{max(0, time_ms):011x}"


def new_request_id() -> str:
    """Return an id for a request: `req_` and 24 hex digits."""
    return f"req_{os.urandom(12).hex()}"


def new_response_id() -> str:
    """Return an id for a response: `resp_` and 48 hex digits."""
    return f"resp_{os.urandom(24).hex()}"


def new_conversation_id() -> str:
    """Return an id for a stored conversation: `conv_gw` and 44 hex digits."""
    return f"{_CONVERSATION}{os.urandom(22).hex()}"


def is_conversation_id(name: str) -> bool:
    """Return whether a name has the form of the ids of `new_conversation_id`.

    The prefix differs from the ids of OpenAI's conversations, and is unlikely for memory names.
    """
    return _CONVERSATION_ID.fullmatch(name) is not None


# Prefix of the ids of usage records, before the time; see `time_prefix`.
RECORD = "use_"

# Prefix of the ids of entries of the request log, before the time.
LOGGED_REQUEST = "log_"


def new_logged_request_id(time_ms: int) -> str:
    """Return an id for an entry of the request log, which sorts by time."""
    return f"{time_prefix(LOGGED_REQUEST, time_ms)}_{os.urandom(8).hex()}"


# Prefix of the ids of calls of the gateway's own tools: like Anthropic's server tool calls, but
# distinguishable from them.
SERVER_CALL = "srvtoolu_gw"


def new_server_call_id() -> str:
    """Return an id for a call of one of the gateway's own tools."""
    return f"{SERVER_CALL}{os.urandom(10).hex()}"


# Prefix of the ids of calls whose provider or caller named none, in dialects without them.
UNNAMED_CALL = "gwcall_"
