"""Files that are simply there, for what reads files from the store."""

from collections.abc import AsyncGenerator, Mapping

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import File
from services.common.errors import GatewayError

PIECE = 5  # bytes


class FakeFiles:
    """Files by id: name, MIME type and bytes; `asked` tells which were read."""

    def __init__(self, files: Mapping[str, tuple[str, str, bytes]]) -> None:
        self.files = files
        self.asked: list[str] = []

    async def find(self, file_id: str) -> File:
        if file_id not in self.files:
            raise GatewayError(errors_pb2.REASON_NOT_FOUND, "there is no such file")
        name, mime_type, content = self.files[file_id]
        return File(id=file_id, filename=name, mime_type=mime_type, size_bytes=len(content))

    async def pieces(self, file_id: str) -> AsyncGenerator[bytes, None]:
        self.asked.append(file_id)
        _, _, content = self.files[file_id]
        for start in range(0, len(content), PIECE):
            yield content[start : start + PIECE]
