"""Uploads in Google's resumable protocol, which take several requests.

The first request names the file and gets an address, to which the content is sent in one request or
several. The address is a secret that stands for the caller: Google's clients send no key there. An
upload is held by the process that began it, as are pieces that precede the last one, within the
budget of the process for bodies.

Source: ai.google.dev/gemini-api/docs/files and the requests of Google's clients.
"""

import secrets
from dataclasses import dataclass, field

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import FileHeader
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge
from services.common.process.timer_wheel import IdleTimer, TimerWheel

# Uploads of one user that have begun and not ended, and those of the process.
MAX_OF_USER = 16
_MAX = 1_024
_IDLE_S = 600.0
_RETRY_AFTER_S = 5
_ID_BYTES = 24


@dataclass(eq=False, slots=True)
class ResumableUpload:
    """An upload that has begun.

    Attributes:
        id: the secret in its address.
        user_id: the user who began it.
        api_key: the key with which it was begun.
        header: name and type of the file.
        charge: reserves the pieces that are held.
        pieces: the content that has been received.
        received: its size in bytes.
        is_busy: whether a request of it is being served.
    """

    id: str
    user_id: str
    api_key: str
    header: FileHeader
    charge: Charge
    pieces: list[bytes] = field(default_factory=list)
    received: int = 0
    is_busy: bool = False
    timer: IdleTimer | None = None


class ResumableUploads:
    """The uploads of a process that have begun and not ended.

    An upload ends after ten minutes without a request.
    """

    def __init__(self, timers: TimerWheel) -> None:
        self._timers = timers
        self._by_id: dict[str, ResumableUpload] = {}

    def begin(
        self, user_id: str, api_key: str, header: FileHeader, charge: Charge
    ) -> ResumableUpload:
        """Begin an upload.

        Raises:
            GatewayError: rate_limited, the user or the process has too many of them.
        """
        of_user = sum(upload.user_id == user_id for upload in self._by_id.values())
        if of_user >= MAX_OF_USER or len(self._by_id) >= _MAX:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"{of_user} of your uploads have begun and not ended; finish or cancel one of them",
                retry_after_s=_RETRY_AFTER_S,
            )
        upload = ResumableUpload(secrets.token_urlsafe(_ID_BYTES), user_id, api_key, header, charge)
        upload.timer = IdleTimer(self._timers, _IDLE_S, lambda: self._expire(upload))
        self._by_id[upload.id] = upload
        return upload

    def find(self, upload_id: str) -> ResumableUpload:
        """Return an upload.

        Raises:
            GatewayError: not_found.
        """
        upload = self._by_id.get(upload_id)
        if upload is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND,
                "this upload has ended, or was begun at another process of the gateway; "
                "begin again with POST /upload/v1beta/files",
            )
        assert upload.timer is not None
        upload.timer.touch()
        return upload

    def end(self, upload: ResumableUpload) -> None:
        """End an upload, and free what it holds."""
        self._by_id.pop(upload.id, None)
        if upload.timer is not None:
            upload.timer.stop()
        upload.pieces.clear()
        upload.charge.release()

    def _expire(self, upload: ResumableUpload) -> None:
        if not upload.is_busy:
            self.end(upload)
