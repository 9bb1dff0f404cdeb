"""The memory of a process: buffers use that of others again, and what is free is returned."""

import subprocess
import sys

import pytest

_PROGRAM = """
import resource
from services.common.process.allocator import return_free_memory, set_up_allocator

MIB = 1 << 20

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // MIB

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

set_up_allocator()
bytes(8 * MIB)
before = faults()
for _ in range(20):
    bytearray(8 * MIB)[::4096] = b"x" * 2048
print(faults() - before)
many = [bytearray(MIB) for _ in range(200)]
last = bytearray(MIB)
held = rss()
del many
kept = rss()
return_free_memory()
print(held, kept, rss())
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="only glibc's malloc has the parameters that are set"
)
def test_memory_is_used_again_and_returned() -> None:
    output = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    ).stdout.split()
    faults, held, kept, returned = map(int, output)
    # Filling each buffer in memory that is mapped anew takes 2,048 page faults.
    assert faults < 10_000
    assert held - kept < 50, "the memory below a buffer in use is kept"
    assert held - returned > 150
