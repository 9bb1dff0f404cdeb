"""What the file system of an open file guarantees."""

import ctypes
import sys

# Magic numbers of file systems that write a block where it was allocated (statfs(2)). Others, such
# as btrfs and ZFS, allocate a new block for each write.
_IN_PLACE = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x01021994,  # tmpfs
    }
)
# `struct statfs` has at most 120 bytes.
_ROOM = 256
# The magic number is the first member, of 4 or 8 bytes, of which 4 are used.
_USED = 4


def overwrites_in_place(descriptor: int) -> bool:
    """Return whether a write to allocated blocks of a file needs no further space.

    Otherwise a write to a memory mapping of the file ends the process by SIGBUS if the disk is
    full, even if its blocks were allocated. False if the file system is unknown.
    """
    if sys.platform != "linux":
        return False
    status = (ctypes.c_char * _ROOM)()
    if ctypes.CDLL(None).fstatfs(descriptor, status) != 0:
        return False
    return int.from_bytes(status.raw[:_USED], sys.byteorder) in _IN_PLACE
