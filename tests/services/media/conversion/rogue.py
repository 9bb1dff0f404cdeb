"""A worker process with conversions that misbehave; run as the worker itself is."""

import os
import resource
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from services.media.conversion import process
from services.media.conversion.errors import ConversionError
from services.media.conversion.parts import PageText, Source, WebPage


def hang(_: str) -> str:
    time.sleep(600)
    return ""


def crash(_: str) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return ""


def leave(_: str) -> str:
    os._exit(3)


def eat(_: str) -> str:
    return str(len(bytearray(3 << 30)))


def fail(_: str) -> str:
    raise IndexError("a secret path")


def refuse(text: str) -> str:
    raise ConversionError(text, limit="limits.conversion_memory_bytes")


def lack(library: str) -> str:
    raise ModuleNotFoundError("no", name=library)


def write(path: str) -> str:
    Path(path).write_bytes(b"left behind")
    return ""


def read(path: str) -> str:
    return Path(path).read_text()


def list_folder(path: str) -> str:
    return " ".join(os.listdir(path))


def remove(path: str) -> str:
    os.remove(path)
    return "removed"


def change_mode(path: str) -> str:
    os.chmod(path, 0o777)
    return "changed"


def connect(family: str) -> str:
    socket.socket(getattr(socket, family))
    return "opened"


def fork(_: str) -> str:
    if not os.fork():
        os._exit(0)
    return "forked"


def spawn(_: str) -> str:
    return str(subprocess.run(["/bin/true"]).returncode)


def start_thread(_: str) -> str:
    done: list[str] = []
    thread = threading.Thread(target=done.append, args=("threaded",))
    thread.start()
    thread.join()
    return done[0]


def signal_parent(_: str) -> str:
    os.kill(os.getppid(), 0)
    return "signalled"


def signal_group(_: str) -> str:
    os.kill(0, 0)
    return "signalled"


def limit_parent(_: str) -> str:
    return str(resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE))


def babble(_: str) -> str:
    print("noise on standard output", flush=True)
    return "done"


def environment(name: str) -> str:
    return os.environ.get(name, "unset")


def flood(_: str) -> str:
    return "x" * (9 << 20)


def echo(text: str) -> str:
    return text


def act(source: Source, *, url: str) -> WebPage | PageText:
    """Call the function that the address names."""
    if url == "wrong":
        return PageText(1, "of another type")
    return WebPage(str(os.getpid()), globals()[url](source.content.decode()))


if __name__ == "__main__":
    process._find = lambda name: act
    process.main()
