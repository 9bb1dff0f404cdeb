"""The manifest of a backup: its files, with their sizes and SHA-256 digests."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

NAME = "manifest.json"
DATABASE = "gateway.db"
# Folder of the users' files.
BLOBS = "files"

_FORMAT = 1
_PATH = re.compile(r"gateway\.db|dev\.key|files/file-[0-9A-Z]{26}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class BackupError(Exception):
    """Error raised when a backup cannot be made, read or restored; the text is for operators."""


class BackupFile(NamedTuple):
    """A file of a backup.

    Attributes:
        size: size in bytes.
        sha256: digest of the content, in hexadecimal digits.
    """

    size: int
    sha256: str


class Manifest(NamedTuple):
    """The content of a backup.

    Attributes:
        created_at: start time of the backup, ISO 8601, UTC.
        migration: migration step of the database.
        files: entries by path below the backup's folder.
    """

    created_at: str
    migration: str
    files: Mapping[str, BackupFile]

    def encode(self) -> str:
        """Return the text of the manifest."""
        files = {path: entry._asdict() for path, entry in sorted(self.files.items())}
        content = {"format": _FORMAT, **self._asdict(), "files": files}
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def decode(cls, text: str) -> "Manifest":
        """Parse the text of a manifest.

        Raises:
            BackupError: the text is not a manifest, or has the format of a newer version.
        """
        try:
            content: Any = json.loads(text)
            if content["format"] != _FORMAT:
                raise BackupError(f"{NAME}: format {content['format']} is of a newer version")
            files = {path: BackupFile(**entry) for path, entry in content["files"].items()}
            manifest = cls(str(content["created_at"]), str(content["migration"]), files)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupError(f"{NAME}: not the manifest of a backup") from error
        for path, entry in files.items():
            is_digest = isinstance(entry.sha256, str) and _DIGEST.fullmatch(entry.sha256)
            # Other paths could write outside of the data folder.
            if not (_PATH.fullmatch(path) and isinstance(entry.size, int) and is_digest):
                raise BackupError(f"{NAME}: {path!r}: not a file of a backup")
        if DATABASE not in files:
            raise BackupError(f"{NAME}: does not list {DATABASE}")
        return manifest
