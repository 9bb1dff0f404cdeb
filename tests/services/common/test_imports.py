import subprocess
import sys

import pytest

from services.common.imports import without_tls


def test_what_is_imported_inside_finds_no_tls_and_what_comes_after_does() -> None:
    import ssl

    with without_tls(), pytest.raises(ImportError):
        import ssl  # the second one is the test
    assert sys.modules["ssl"] is ssl


def test_a_process_that_had_none_loaded_can_load_it_later() -> None:
    code = """
import sys
from services.common.imports import without_tls
with without_tls():
    import asyncio
print("ssl" in sys.modules)
import ssl
print(ssl.SSLContext.__name__)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "SSLContext"]


def test_an_import_that_fails_leaves_tls_where_it_was() -> None:
    import ssl

    with pytest.raises(ModuleNotFoundError), without_tls():
        import no_such_module  # noqa: F401  # there is none
    assert sys.modules["ssl"] is ssl
