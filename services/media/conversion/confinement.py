"""Confine a conversion process: no network, no other processes, and no files but its libraries.

Landlock (Linux 5.13) restricts the process to reading libraries and fonts; it cannot write, and
signals reach no other process. A seccomp filter denies system calls that open sockets, start
processes, or act on other processes, on the system and on the metadata of files, which Landlock
does not cover. Without support by the kernel, a protection is left out; `protections` tells which
of them a process will have.

https://docs.kernel.org/userspace-api/landlock.html
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import ctypes
import errno
import mimetypes
import os
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

# Landlock: the same numbers on all architectures.
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION = 1  # flag of create_ruleset that returns the version
_PATH_BENEATH = 1  # type of a rule
_EXECUTE = 1 << 0
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
# Rights on files, on TCP and on other processes, by the first version that knows them.
_FILE_RIGHTS = ((1, (1 << 13) - 1), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
_TCP_RIGHTS = ((4, 0b11),)
_SCOPES = ((6, 0b11),)

# Folders and files beside Python's own that libraries read when they are loaded or first used.
_SYSTEM_FILES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/fonts", "/etc/localtime", "/etc/timezone"),
    *("/etc/os-release", "/etc/lsb-release", *mimetypes.knownfiles),
    *("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts"),
    *("/usr/share/fontconfig", "/usr/share/zoneinfo"),
    *("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"),
    *("/dev/urandom", "/dev/null"),
)
_WRITABLE = ("/dev/null",)

# Denied system calls with their numbers on x86-64 and on AArch64, which lacks some of them.
_DENIED: dict[str, tuple[int, int | None]] = {
    # Network. io_uring opens sockets and files without passing a filter.
    **{"socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200)},
    **{"io_uring_setup": (425, 425)},
    # Other programs and processes.
    **{"execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None)},
    **{"ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271)},
    **{"process_madvise": (440, 440), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438)},
    **{"pidfd_send_signal": (424, 424), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138)},
    **{"rt_tgsigqueueinfo": (297, 240), "setpriority": (141, 140), "ioprio_set": (251, 30)},
    **{"migrate_pages": (256, 238), "move_pages": (279, 239)},
    **{"shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190)},
    # Metadata of files.
    **{"chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452)},
    **{"chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54)},
    **{"setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7)},
    **{"removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16)},
    **{"utime": (132, None), "utimes": (235, None), "futimesat": (261, None)},
    **{"utimensat": (280, 88), "mknod": (133, None), "mknodat": (259, 33)},
    **{"open_by_handle_at": (304, 265)},
    # The system; most of these also need privileges.
    **{"mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51)},
    **{"unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428)},
    **{"move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432)},
    **{"mount_setattr": (442, 442), "bpf": (321, 280), "perf_event_open": (298, 241)},
    **{"userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218)},
    **{"keyctl": (250, 219), "init_module": (175, 105), "finit_module": (313, 273)},
    **{"delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294)},
    **{"reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89)},
    **{"syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112)},
    **{"clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161)},
    **{"setdomainname": (171, 162), "quotactl": (179, 60)},
}
# Calls whose first argument is a process: allowed for this one.
_OF_A_PROCESS = {"kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261)}
# A filter cannot read the flags of clone3; without it, the C library uses clone.
_CLONE, _CLONE3, _CLONE_THREAD = (56, 220), (435, 435), 0x10000
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000  # numbers from here on are calls of another ABI on x86-64

# Classic BPF instructions.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL_PROCESS, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000


@dataclass(frozen=True, slots=True)
class Protections:
    """What the kernel offers to confine a process.

    Attributes:
        landlock: version of Landlock; 0 without it.
        seccomp: whether system calls can be filtered.
    """

    landlock: int
    seccomp: bool

    def missing(self) -> str:
        """Return what a confined process can still do, or "" if nothing is missing."""
        if not self.seccomp:
            return "read files and open connections" if not self.landlock else "open connections"
        return "" if self.landlock else "read the files of the gateway's user"


def protections() -> Protections:
    """Return what the kernel offers to a process started from this one."""
    if not sys.platform.startswith("linux") or os.uname().machine not in _ARCHITECTURES:
        return Protections(0, seccomp=False)
    libc = _libc()
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)
    # With a filter of a null address, a kernel that has seccomp fails with EFAULT.
    libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, None, 0, 0)
    return Protections(max(version, 0), seccomp=ctypes.get_errno() == errno.EFAULT)


def confine(program: str = "", files: Sequence[str] = ()) -> None:
    """Confine this process for good; it must not have started threads.

    Args:
        program: a program that the process will become, which can then read nothing but itself and
            `files`; "" for none.
        files: folders and files for `program`.

    Raises:
        OSError: a protection that the kernel offers is refused.
    """
    offered = protections()
    if offered.landlock or offered.seccomp:
        _call(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if offered.landlock:
        _restrict_files(offered.landlock, program, (program, *files) if program else readable())
    if offered.seccomp:
        allowed = ("execve",) if program else ()
        _filter_calls(system_call_filter(os.uname().machine, os.getpid(), allowed))


def readable() -> Sequence[str]:
    """Return the folders and files that a confined process may read."""
    packages = Path(__file__).parents[2]  # `services`
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = [sysconfig.get_path(name) for name in names]
    paths += [os.path.realpath(path) for path in sys.path if path]
    paths += filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    # A source checkout may have the data folder beside the packages.
    checkout = os.path.realpath(packages.parent)
    if os.path.basename(checkout) not in ("site-packages", "dist-packages"):
        paths = [path for path in paths if path != checkout]
    paths += [str(packages), *map(os.path.expanduser, _SYSTEM_FILES)]
    return sorted({path for path in paths if os.path.exists(path)})


def _restrict_files(version: int, program: str, paths: Iterable[str]) -> None:
    rights = [
        _known(version, rights_by_version)
        for rights_by_version in (_FILE_RIGHTS, _TCP_RIGHTS, _SCOPES)
    ]
    # Older versions have fewer fields.
    attributes = struct.pack(f"={sum(map(bool, rights))}Q", *filter(None, rights))
    libc = _libc()
    ruleset = _call(
        libc.syscall(
            _LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)
        )
    )
    for path in paths:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        allowed = _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)
        allowed |= _WRITE_FILE if path in _WRITABLE else 0
        allowed |= _EXECUTE if path == program else 0
        rule = struct.pack("=Qi", allowed, descriptor)
        _call(libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint(0)))
        os.close(descriptor)
    _call(libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, ctypes.c_uint(0)))
    os.close(ruleset)


def _known(version: int, rights: Sequence[tuple[int, int]]) -> int:
    return sum(bits for since, bits in rights if since <= version)


def system_call_filter(machine: str, pid: int, allowed: Sequence[str] = ()) -> Sequence[bytes]:
    """Return the instructions of the filter for a process; `allowed` calls are not denied."""
    column, architecture = _ARCHITECTURES[machine]
    denied = [numbers[column] for name, numbers in _DENIED.items() if name not in allowed]
    return list(_instructions(column, architecture, pid, denied))


def _instructions(
    column: int, architecture: int, pid: int, denied: Sequence[int | None]
) -> Iterator[bytes]:
    yield _instruction(_LOAD, _AT_ARCHITECTURE)
    yield _instruction(_EQUAL, architecture, on_true=1)
    yield _instruction(_RETURN, _KILL_PROCESS)
    yield _instruction(_LOAD, _AT_NUMBER)
    yield _instruction(_AT_LEAST, _X32, on_false=1)
    yield _instruction(_RETURN, _FAIL | errno.ENOSYS)
    for number in denied:
        if number is not None:
            yield _instruction(_EQUAL, number, on_false=1)
            yield _instruction(_RETURN, _FAIL | errno.EPERM)
    yield _instruction(_EQUAL, _CLONE3[column], on_false=1)
    yield _instruction(_RETURN, _FAIL | errno.ENOSYS)
    yield _instruction(_EQUAL, _CLONE[column], on_false=4)
    yield _instruction(_LOAD, _AT_FIRST_ARGUMENT)
    yield _instruction(_ANY_BIT, _CLONE_THREAD, on_true=1)
    yield _instruction(_RETURN, _FAIL | errno.EPERM)
    yield _instruction(_RETURN, _ALLOW)
    for numbers in _OF_A_PROCESS.values():
        yield _instruction(_EQUAL, numbers[column], on_false=5)
        yield _instruction(_LOAD, _AT_FIRST_ARGUMENT)
        yield _instruction(_EQUAL, pid, on_true=2)
        # 0 is this process for prlimit64, but its whole group, with the gateway, for kill.
        yield _instruction(_EQUAL, 0 if numbers == _OF_A_PROCESS["prlimit64"] else pid, on_true=1)
        yield _instruction(_RETURN, _FAIL | errno.EPERM)
        yield _instruction(_RETURN, _ALLOW)
    yield _instruction(_RETURN, _ALLOW)


def _instruction(code: int, value: int, on_true: int = 0, on_false: int = 0) -> bytes:
    """Return an instruction; the jumps are the numbers of instructions that are skipped."""
    return struct.pack("=HBBI", code, on_true, on_false, value)


def _filter_calls(instructions: Sequence[bytes]) -> None:
    code = ctypes.create_string_buffer(b"".join(instructions))
    program = struct.pack("@HP", len(instructions), ctypes.addressof(code))
    _call(_libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(result: int) -> int:
    """Return the result of a system call, or raise its error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
