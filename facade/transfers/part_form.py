"""A streaming parser for the multipart form of a part of an upload: its field `data`."""

from collections.abc import Iterator

from facade.transfers import multipart
from facade.transfers.multipart import Part
from facade.transfers.upload_form import MAX_FIELD
from services.common.errors import invalid

_DATA = "data"


class PartForm:
    """An incremental form parser, which returns the content of one field; others are ignored."""

    def __init__(self, boundary: bytes) -> None:
        self._parser = multipart.Parser(boundary)
        self._part: Part | None = None
        self._has_data = False
        self._ignored = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Feed bytes of the body; return the content.

        Raises:
            GatewayError: invalid, naming the field.
        """
        for event in self._parser.feed(data):
            if isinstance(event, Part):
                self._begin(event)
            elif isinstance(event, bytes) and self._part is not None:
                if self._part.name == _DATA:
                    yield event
                else:
                    self._ignore(self._part.name, event)

    def close(self) -> None:
        """Check the form after the last bytes.

        Raises:
            GatewayError: invalid, naming the missing field.
        """
        self._parser.close()
        if not self._has_data:
            raise invalid(_DATA, f"{_DATA}: is required and must be a file")

    def _begin(self, part: Part) -> None:
        self._part = part
        self._ignored = 0
        if part.name == _DATA:
            if self._has_data:
                raise invalid(_DATA, f"{_DATA}: must be given only once")
            self._has_data = True

    def _ignore(self, name: str, data: bytes) -> None:
        self._ignored += len(data)
        if self._ignored > MAX_FIELD:
            name = name[:64]
            raise invalid(name, f"{name}: must have at most {MAX_FIELD:,} bytes")
