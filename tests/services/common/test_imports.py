import importlib
import ssl
import subprocess
import sys

import pytest

from services.common.imports import import_without_tls


def test_what_is_imported_finds_no_tls_and_what_comes_after_does(tmp_path, monkeypatch) -> None:
    (tmp_path / "needs_tls.py").write_text("import ssl")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="ssl"):
        import_without_tls("needs_tls")
    assert importlib.import_module("needs_tls").ssl is ssl


def test_a_process_that_had_none_loaded_can_load_it_later() -> None:
    code = """
import sys
from services.common.imports import import_without_tls
import_without_tls("asyncio")
import asyncio
print("ssl" in sys.modules)
import ssl
print(ssl.SSLContext.__name__)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "SSLContext"]


def test_an_import_that_fails_leaves_tls_where_it_was() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_without_tls("no_such_module")
    assert sys.modules["ssl"] is ssl
