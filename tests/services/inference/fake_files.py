"""Files that are simply there, for what reads files from the store."""

from collections.abc import Mapping

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import File
from services.common.errors import GatewayError


class FakeFiles:
    """Files by id: name, MIME type and bytes; `asked` tells which were read."""

    def __init__(self, files: Mapping[str, tuple[str, str, bytes]]) -> None:
        self.files = files
        self.asked: list[str] = []

    async def read(self, file_id: str, at_most: int) -> tuple[File, bytes]:
        self.asked.append(file_id)
        if file_id not in self.files:
            raise GatewayError(errors_pb2.REASON_NOT_FOUND, "there is no such file")
        name, mime_type, content = self.files[file_id]
        if len(content) > at_most:
            raise GatewayError(errors_pb2.REASON_TOO_LARGE, "too much")
        return File(id=file_id, filename=name, mime_type=mime_type), content
