"""Fixtures and settings of all tests."""

import asyncio
import gc
from collections.abc import Callable, Generator, Iterator, Mapping

import grpc.aio
import hypothesis
import pytest
import trustme
import uvloop
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.compiled_statements import compiled_statements as compiled_statements
from tests.faults.clock import SkippingLoop
from tests.thoroughness import SOAK, is_soak, left_out, mark_left_out

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile("gateway", deadline=None, max_examples=50)
hypothesis.settings.register_profile(SOAK, deadline=None, max_examples=1_000)
hypothesis.settings.load_profile("gateway")

# When the last channel or server of grpc.aio is collected, the library ends, and waits for its
# thread; inside a garbage collection that can be for ever. With this it does not end.
grpc.aio.init_grpc_aio()

# Folders whose tests share processes of a session, by what those are. Each group of tests is
# run by one worker, so that its processes are started once. The groups take longest, and begin
# first: what is left to the end are short modules, so that no worker is the last by much.
SHARED_PROCESSES = {
    "PostgreSQL": tuple(f"tests/services/{name}/" for name in ("accounts", "common", "files")),
    "PostgreSQL of documents and memories": tuple(
        f"tests/services/{name}/" for name in ("articles", "memory", "responses")
    ),
    "attacked gateway": ("tests/attacks/",),
    "hosts": ("tests/hosts/",),
    "browser of documents": ("tests/console/test_documents",),
    "browser": ("tests/console/",),
    "converter": ("tests/services/media/conversion/",),
}
# Of these the tests behind Envoy are a group. Any worker starts the gateway of the others quickly.
BEHIND_ENVOY = "tests/e2e/"
# Modules that take ten seconds and more begin after the groups.
LONG = (
    *("tests/test_patterns.py", "tests/facade/description/test_openapi.py", "tests/matrix/"),
    *("tests/surface/", "tests/upstream/", "tests/services/test_erasures.py"),
)
IN_ORDER = (*SHARED_PROCESSES.values(), (BEHIND_ENVOY,), LONG)


# As in a process of the gateway: collections take a twentieth of the time of the tests otherwise.
gc.set_threshold(15_000, 150, 100)
# While tests are collected hardly anything is garbage.
gc.disable()


# Tests for Python's own loop. Their clients write to connections that the gateway may have closed,
# which uvloop refuses; the supervisor handles SIGCHLD, which uvloop keeps for itself.
ON_PYTHONS_LOOP = (
    "tests/attacks/",
    "tests/e2e/",
    "tests/facade/plain/",
    *(f"tests/facade/test_{name}.py" for name in ("background_responses", "stalled_readers")),
    "tests/services/common/storage/test_database.py",
    "tests/services/supervisor/",
)
# Tests of how long clients may take, and of requests in pieces, each of which is read before the
# next is sent: the clock stands as long as anything happens.
ON_A_SKIPPING_LOOP = tuple(
    f"tests/facade/test_{name}.py"
    for name in ("bodies", "connections", "file_uploads", "heads", "malformed")
)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run on the loop that the gateway runs on, which is a sixth faster than Python's own."""
    if item.nodeid.startswith(ON_A_SKIPPING_LOOP):
        return {"loop": SkippingLoop}
    is_pythons = item.nodeid.startswith(ON_PYTHONS_LOOP)
    return {"loop": asyncio.SelectorEventLoop if is_pythons else uvloop.new_event_loop}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for a part of the tests; without it, all that are named run."""
    parser.addoption("--sample", action="store_true", help="leave out tests as `make test` does")


class SharedProcessScheduling(LoadScopeScheduling):
    """Scheduling by module, and by group where modules share processes."""

    def _split_scope(self, nodeid: str) -> str:
        for group, folders in SHARED_PROCESSES.items():
            if nodeid.startswith(folders):
                return group
        if nodeid.startswith(BEHIND_ENVOY) and "envoy" in nodeid:
            return "Envoy"
        return super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Return the scheduling of `--dist loadscope`."""
    return SharedProcessScheduling(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.fixture(scope="session", autouse=True)
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have processes and clients trust one authority, which signs nothing.

    Every client of an SDK reads those that it trusts: those of the system take it 25 ms.
    """
    path = tmp_path_factory.mktemp("authority") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Sort the tests by when they begin, workers take them in this order; sample some."""
    # Before tests are selected by their marks.
    mark_left_out(items, is_sample=is_soak() or config.getoption("sample"))
    yield
    repetitions = left_out(items)
    if repetitions:
        config.hook.pytest_deselected(items=repetitions)
        leave = set(repetitions)
        items[:] = [item for item in items if item not in leave]

    def turn(item: pytest.Item) -> int:
        ranks = (turn for turn, paths in enumerate(IN_ORDER) if item.nodeid.startswith(paths))
        return next(ranks, len(IN_ORDER))

    items.sort(key=turn)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the garbage collector from the tests themselves: they are a million objects."""
    gc.collect()
    gc.freeze()
    gc.enable()
