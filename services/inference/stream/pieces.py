"""Pieces of a long text, kept in little more memory than the text itself."""

# A short piece takes some 60 bytes, whatever its length: more pieces than these are joined.
MOST = 4096


def keep(pieces: list[str], piece: str) -> None:
    """Append a piece; join the pieces if there are more than `MOST`."""
    pieces.append(piece)
    if len(pieces) > MOST:
        join(pieces)


def join(pieces: list[str]) -> None:
    """Join the pieces into one if there are more than `MOST`."""
    if len(pieces) > MOST:
        pieces[:] = ("".join(pieces),)
