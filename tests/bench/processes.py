"""CPU seconds and memory of processes, read from their clocks and from /proc."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# The kind of a process's clock that counts user and system time (clock_getcpuclockid(3)).
_CPU_CLOCK = 2
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
    """Return a process and everything that descends from it."""
    by_parent = _by_parent()
    members = [pid]
    for member in members:
        members.extend(by_parent.get(member, []))
    return members


def is_running(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has waited for yet has."""
    fields = _stat(pid)
    return bool(fields) and fields[0] != "Z"


def children(pid: int) -> Sequence[int]:
    """Return the processes that a process started and has not waited for."""
    return _by_parent().get(pid, [])


def of_modules(pids: Sequence[int], modules: Sequence[str]) -> Mapping[str, int]:
    """Return those of the processes that run one of the modules, by its name."""
    commands = {pid: _command(pid) for pid in pids}
    return {module: pid for module in modules for pid in pids if module in commands[pid]}


def running_module(pids: Sequence[int], module: str) -> Sequence[int]:
    """Return those of the processes that run a module."""
    return [pid for pid in pids if module in _command(pid)]


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the CPU time that the processes have used, user and system."""
    used = 0.0
    for pid in pids:
        with suppress(OSError):  # it is gone
            used += time.clock_gettime(~pid << 3 | _CPU_CLOCK)
    return used


def memory(pids: Sequence[int]) -> Memory:
    """Return the memory that the processes hold now."""
    rss = pss = 0.0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, *values = line.split()
            if name == "Rss:":
                rss += int(values[0]) / _MB
            elif name == "Pss:":
                pss += int(values[0]) / _MB
    return Memory(rss, pss)


def forget_peak(pid: int) -> None:
    """Let the most memory that a process held be what it holds now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak(pid: int) -> float:
    """Return the megabytes that a process held at most, since `forget_peak`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, *values = line.split()
        if name == "VmHWM:":
            return int(values[0]) / _MB
    raise ProcessLookupError(pid)


def pin(cpus: Sequence[int]) -> None:
    """Keep this process to some processors."""
    if cpus:
        os.sched_setaffinity(0, cpus)


def _command(pid: int) -> Sequence[str]:
    """Return the words of a process's command, or none when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return ()


def _by_parent() -> Mapping[int, Sequence[int]]:
    """Return the processes of each parent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    return children


def _stat(pid: int) -> Sequence[str]:
    """Return the fields of /proc/PID/stat from the state on, or none when it is gone."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return content.rpartition(")")[2].split()
