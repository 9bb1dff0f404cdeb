"""One-time codes of the links that sign in to the console with the development key.

A code is 32 random bytes. The data folder stores only its SHA-256, as the name of an empty file
with mode 0600. The file's modification time is the expiry of the code. Removing the file redeems
the code, so exactly one process can redeem it. The look-up by hash reveals nothing about a code by
its timing, and a code is too long to guess.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# Seconds for which a code can be redeemed.
LIFETIME_S = 600
FOLDER = "sign-in"

_RANDOM_BYTES = 32
_CODE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def issue(data_dir: str, now: float, random: Callable[[int], str] = secrets.token_urlsafe) -> str:
    """Return a new code that is valid for `LIFETIME_S` from `now`, in Unix seconds.

    Codes that expired at least `LIFETIME_S` ago are removed.

    Raises:
        OSError: the data folder cannot be written.
    """
    folder = Path(data_dir, FOLDER)
    folder.mkdir(mode=0o700, exist_ok=True)
    for file in folder.iterdir():
        with suppress(FileNotFoundError):
            # Another process may just have created the file and not yet set its expiry.
            if file.stat().st_mtime + LIFETIME_S <= now:
                file.unlink()
    code = random(_RANDOM_BYTES)
    file = folder / _name(code)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.utime(file, (now, now + LIFETIME_S))
    return code


def redeem(data_dir: str, code: str, now: float) -> bool:
    """Redeem a code; return whether it was valid at `now`. Later calls return False.

    Raises:
        OSError: the data folder cannot be written.
    """
    if _CODE.fullmatch(code) is None:
        return False
    file = Path(data_dir, FOLDER, _name(code))
    try:
        expires_at = file.stat().st_mtime
        file.unlink()
    except FileNotFoundError:
        return False
    return now < expires_at


def _name(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
