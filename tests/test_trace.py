"""The report of `make trace`, on a real gateway in this process, and the documents that tell it."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.bench.trace import ROOT, Trace, traces

FIRST = f"{ROOT}/facade/http/connection.py"
WALKTHROUGHS = ROOT / "docs" / "internals" / "walkthroughs.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
# At most so many files, functions and moves; a request that begins a new journal enters two files
# more than others, timers may run meanwhile, and a stream may arrive in several reads.
BOUNDS = {
    "chat, whole": (42, 132, 94),
    "chat, streamed": (58, 218, 178),
    "messages over OpenAI, streamed": (62, 230, 188),
    "remembered turn, whole": (90, 392, 360),
}


@pytest.fixture(scope="module")
def by_name() -> Mapping[str, Trace]:
    return asyncio.run(traces())


def not_named(files: Iterable[str], text: str) -> list[str]:
    """Return the files whose path a document lacks."""
    paths = {str(Path(file).relative_to(ROOT)) for file in files}
    return sorted(path for path in paths if f"`{path}`" not in text)


def test_each_request_is_traced_from_its_connection_on(by_name: Mapping[str, Trace]) -> None:
    assert {"chat, whole", "edit", "remembered turn, whole"} <= by_name.keys()
    for name, trace in by_name.items():
        assert FIRST in trace.files, name
        assert len(trace.functions) > len(trace.files), name
        assert trace.moves >= len(trace.files), name
    assert f"{ROOT}/services/articles/committer.py" in by_name["edit"].files
    assert f"{ROOT}/services/memory/servicer.py" in by_name["remembered turn, whole"].files


def test_requests_pass_through_few_files_and_functions(by_name: Mapping[str, Trace]) -> None:
    counts = {
        name: (len(trace.files), len(trace.functions), trace.moves)
        for name, trace in by_name.items()
        if name in BOUNDS
    }
    over = [
        name
        for name, numbers in counts.items()
        if any(number > most for number, most in zip(numbers, BOUNDS[name], strict=True))
    ]
    assert over == [], counts


def test_the_walkthroughs_name_every_traced_file(by_name: Mapping[str, Trace]) -> None:
    files = set[str]().union(*(trace.files for trace in by_name.values()))
    unnamed = not_named(files, WALKTHROUGHS.read_text())
    assert unnamed == [], f"name them in {WALKTHROUGHS.name}, in a walk or in the table at its end"


def test_a_file_that_is_not_named_is_found() -> None:
    text = "`facade/sse.py` and `facade/http/connection.py`"
    assert not_named([FIRST, f"{ROOT}/facade/http/plain.py"], text) == ["facade/http/plain.py"]


def test_a_chat_calls_the_functions_at_its_ten_stops(by_name: Mapping[str, Trace]) -> None:
    section = CONTRIBUTING.read_text().partition("\n## One request in ten stops\n")[2]
    stops = re.split(r"^\d+\. ", section.partition("\n## ")[0], flags=re.M)[1:]
    assert len(stops) == 10
    called = {function for _, function in by_name["chat, whole"].functions}
    for stop in stops:
        functions = set(re.findall(r"`([A-Z]\w+\.\w+|[a-z]\w+)`", stop))
        assert functions <= called, stop
