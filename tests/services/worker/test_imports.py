import subprocess
import sys

# Modules that a worker does not use, or not before they are needed.
UNUSED = frozenset(
    "aiohttp.client aiohttp.connector aiohttp.web aiohttp.web_protocol alembic anthropic "
    "attr.validators difflib facade.openapi "
    "facade.dialects.admin facade.dialects.anthropic facade.dialects.articles "
    "facade.dialects.conversations facade.dialects.memory facade.dialects.responses "
    "facade.dialects.stored_responses "
    "facade.routes.admin facade.routes.articles "
    "google.protobuf.text_format grpc_reflection.v1alpha.reflection http.server openai "
    "services.accounts.admin.servicer services.articles.servicer services.articles.tree "
    "services.inference.providers.openai services.inference.response_cache.cached_answers "
    "services.inference.tools.loop services.memory.archive services.memory.profile.rules "
    "services.memory.servicer services.memory.turns services.sandbox.model.play "
    "prometheus_client.exposition sqlalchemy.orm sqlalchemy.dialects.postgresql typer".split()
)


def _run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_worker_imports_no_more_than_it_uses() -> None:
    loaded = set(
        _run("""
import sys
from services.worker.imports import import_used_parts
import_used_parts()
import services.worker.worker
print(*sys.modules)
""").split()
    )
    assert "services.worker.worker" in loaded
    assert UNUSED.isdisjoint(loaded)


def test_a_worker_reads_no_file_types_of_the_machine() -> None:
    output = _run("""
from services.worker.imports import import_used_parts
import_used_parts()
import services.worker.worker
import mimetypes
print(len(mimetypes.types_map) == len(mimetypes._types_map_default))
""")
    assert output.strip() == "True"


def test_a_worker_can_use_tls_and_scrape_metrics() -> None:
    _run("""
from services.worker.imports import import_used_parts
import_used_parts()
import services.worker.worker
import asyncio.sslproto, http.client, ssl, urllib.request
assert asyncio.sslproto.ssl is ssl and http.client.HTTPSConnection
assert urllib.request.HTTPSHandler
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.exposition import generate_latest
registry = CollectorRegistry()
Counter("calls", "Calls.", registry=registry).inc()
assert b"calls_total 1.0" in generate_latest(registry)
""")


def test_each_later_module_exists() -> None:
    _run("""
import importlib, sys
from services.worker import imports
imports.import_used_parts()
import services.worker.worker
for name in imports._LAZY:
    assert name not in sys.modules, name
for name in imports._LAZY:
    importlib.import_module(name)
""")
