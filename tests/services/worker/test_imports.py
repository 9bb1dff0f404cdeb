import subprocess
import sys

# What a worker has no use for, or not before somebody asks for it.
UNUSED = frozenset(
    "alembic anthropic openai sqlalchemy.orm sqlalchemy.dialects.postgresql typer".split()
)


def test_a_worker_loads_no_more_than_it_uses() -> None:
    code = """
import sys
from services.worker.__main__ import import_what_is_used
import_what_is_used()
import services.worker.prepare, services.worker.assembly
print(*sys.modules)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    assert "services.worker.assembly" in loaded
    assert UNUSED.isdisjoint(loaded)


def test_a_worker_can_still_speak_tls() -> None:
    code = """
from services.worker.__main__ import import_what_is_used
import_what_is_used()
import asyncio.sslproto, http.client, ssl, urllib.request
import aiohttp.connector
assert aiohttp.connector.ssl is None
assert asyncio.sslproto.ssl is ssl and http.client.HTTPSConnection
assert urllib.request.HTTPSHandler
"""
    subprocess.run([sys.executable, "-c", code], check=True)
