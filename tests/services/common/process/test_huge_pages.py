"""Requests of huge pages: for memory in use, and no other."""

import ctypes
import mmap
import re
from pathlib import Path

import pytest

from services.common.process.huge_pages import request_huge_pages

SIZE = 8 << 20
HUGE = 2 << 20
HAS_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage").exists()
MAPPING = re.compile(r"^(\w+)-(\w+) .*?^VmFlags: (.*?)$", re.DOTALL | re.MULTILINE)


def requested_bytes(first, last):
    """Return how much of a range of this process's memory the kernel may put in huge pages."""
    mappings = MAPPING.findall(Path("/proc/self/smaps").read_text())
    return sum(
        max(0, min(int(end, 16), last) - max(int(start, 16), first))
        for start, end, flags in mappings
        if "hg" in flags.split()
    )


@pytest.mark.parametrize(
    ("written", "is_requested"),
    [(SIZE, HAS_HUGE_PAGES), (0, False), (mmap.PAGESIZE, False)],
    ids=["used", "untouched", "one page used"],
)
def test_huge_pages_are_requested_for_used_memory(written, is_requested):
    memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE)
    memory.write(b"x" * written)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    # The whole huge pages in it: those at its ends are shared with what lies beside it.
    first, last = -(-start // HUGE) * HUGE, (start + SIZE) // HUGE * HUGE
    request_huge_pages()
    assert requested_bytes(first, last) == (last - first) * is_requested
