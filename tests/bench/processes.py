"""What processes cost: CPU seconds and memory, read from /proc."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_MB = 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes of some processes.

    Attributes:
        rss: resident, shared pages counted once a process.
        pss: resident, shared pages counted once.
    """

    rss: float
    pss: float


def family(pid: int) -> Sequence[int]:
    """Give a process and everything that descends from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    members = [pid]
    for member in members:
        members.extend(children.get(member, []))
    return members


def cpu_seconds(pids: Sequence[int]) -> float:
    """Give the CPU time that the processes have used, user and system."""
    used = 0
    for pid in pids:
        if fields := _stat(pid):
            used += int(fields[11]) + int(fields[12])
    return used / _TICKS


def memory(pids: Sequence[int]) -> Memory:
    """Give the memory that the processes hold now."""
    rss = pss = 0.0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, *values = line.split()
            if name == "Rss:":
                rss += int(values[0]) / _MB
            elif name == "Pss:":
                pss += int(values[0]) / _MB
    return Memory(rss, pss)


def pin(cpus: Sequence[int]) -> None:
    """Keep this process to some processors."""
    if cpus:
        os.sched_setaffinity(0, cpus)


def _stat(pid: int) -> Sequence[str]:
    """Give the fields of /proc/PID/stat from the state on, or none when it is gone."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return content.rpartition(")")[2].split()
