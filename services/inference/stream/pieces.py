"""Pieces of a long text, kept in little more memory than the text itself."""

# A short piece takes some 60 bytes, whatever it holds: more than so many become one.
MOST = 4096


def keep(pieces: list[str], piece: str) -> None:
    """Add a piece."""
    pieces.append(piece)
    if len(pieces) > MOST:
        join(pieces)


def join(pieces: list[str]) -> None:
    """Make one piece of many."""
    if len(pieces) > MOST:
        pieces[:] = ("".join(pieces),)
