"""Files of the caller that are the pictures of a text, by the addresses that it gives them."""

from collections.abc import Mapping
from urllib.parse import unquote

from services.articles.bibliography.entries import Omission
from services.articles.tree.errors import join_pointer
from services.articles.tree.values import schema_error
from services.common.articles import limits


class PictureFiles:
    """Ids of files by addresses of pictures, which are paths where the text was written.

    `./a%20b.png` and `a b.png` are one address.

    Args:
        file_ids: ids of files by addresses.

    Raises:
        EditError: there are too many, or an address or an id is too long.
    """

    def __init__(self, file_ids: Mapping[str, str]) -> None:
        if len(file_ids) > limits.FILES_A_TEXT:
            raise schema_error("/files", f"must name at most {limits.FILES_A_TEXT} files")
        for address, file_id in file_ids.items():
            if not 1 <= len(address) <= limits.URL:
                raise schema_error("/files", f"addresses must have 1 to {limits.URL} characters")
            if len(file_id) > limits.IDENTIFIER:
                problem = f"must have at most {limits.IDENTIFIER} characters"
                raise schema_error(join_pointer("/files", address), problem)
        self._addresses = {_normal(address): address for address in file_ids}
        self._file_ids = file_ids
        self._added: dict[str, str] = {}
        self._used: set[str] = set()

    def add(self, address: str, file_id: str) -> None:
        """Add a picture that the caller did not name, unless there is one with this address."""
        self._added.setdefault(_normal(address), file_id)

    def get(self, address: str) -> str | None:
        """Return the id of the file that is a picture, or None if there is none."""
        named = self._addresses.get(_normal(address))
        if named is None:
            return self._added.get(_normal(address))
        self._used.add(named)
        return self._file_ids[named]

    def pointers(self) -> dict[str, str]:
        """Return the files that were used, by id, with the JSON pointers of their fields."""
        return {self._file_ids[one]: join_pointer("/files", one) for one in self._used}

    def unused(self) -> list[Omission]:
        """Return the files whose addresses no picture has."""
        return [
            Omission(address[:200], "a file whose address no picture of the text has")
            for address in self._file_ids
            if address not in self._used
        ]


def _normal(address: str) -> str:
    return unquote(address).removeprefix("./")
