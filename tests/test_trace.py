"""The report of `make trace`, on a real gateway in this process."""

from tests.bench.trace import ROOT, traces

FIRST = f"{ROOT}/facade/http/connection.py"


async def test_each_request_is_traced_from_its_connection_on() -> None:
    by_name = await traces()
    assert {"chat, whole", "edit", "remembered turn, whole"} <= by_name.keys()
    for name, trace in by_name.items():
        assert FIRST in trace.files, name
        assert len(trace.functions) > len(trace.files), name
        assert trace.moves >= len(trace.files), name
    assert f"{ROOT}/services/articles/committer.py" in by_name["edit"].files
    assert f"{ROOT}/services/memory/servicer.py" in by_name["remembered turn, whole"].files
