"""Disks as tests want them."""

from pathlib import Path

from services.common.storage.disk import DiskReserve


class Disk:
    """A disk whose free space tests decide.

    Attributes:
        free: bytes; with 1 there is room enough.
        reserve: what is asked for room; `look` takes a change in.
    """

    def __init__(self, free: int = 1) -> None:
        self.free = free
        self.reserve = DiskReserve(Path(), 1, read=lambda folder: self.free)

    def fill(self) -> None:
        """Leave less than what is to stay free."""
        self.free = 0
        self.reserve.look()

    def clear(self) -> None:
        """Leave enough."""
        self.free = 1
        self.reserve.look()
