import importlib
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from services.common.process.imports import (
    import_bare,
    import_with_stand_in,
    import_without_tls,
)


def test_tls_is_hidden_from_one_import_only(tmp_path, monkeypatch) -> None:
    (tmp_path / "needs_tls.py").write_text("import ssl")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="ssl"):
        import_without_tls("needs_tls")
    assert importlib.import_module("needs_tls").ssl is ssl


def test_a_process_that_had_none_loaded_can_load_it_later() -> None:
    code = """
import sys
from services.common.process.imports import import_without_tls
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


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "__init__.py").write_text("import large.most\nfrom large.part import wanted")
    (folder / "part.py").write_text("wanted = 1\nmore = 2")
    (folder / "most.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("large", "large.part", "large.most"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("package")
def test_a_bare_package_has_the_names_asked_for_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import_bare("large", {"part": ["wanted"]}, version="1")
    large = importlib.import_module("large")
    assert (large.wanted, large.version) == (1, "1")
    assert not hasattr(large, "more")
    assert "large.most" not in sys.modules
    importlib.import_module("large.most")
    assert large.wanted == 1


@pytest.mark.usefixtures("package")
def test_a_package_that_is_whole_stays_so() -> None:
    large = importlib.import_module("large")
    import_bare("large", {"part": ["more"]})
    assert sys.modules["large"] is large
    assert "large.most" in sys.modules


@pytest.mark.usefixtures("package")
def test_a_bare_package_that_fails_is_not_left_behind() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_bare("large", {"nowhere": []})
    assert "large" not in sys.modules


@pytest.mark.usefixtures("package")
def test_a_stand_in_replaces_a_package_during_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_large.py").write_text("from large import Unused, part")
    monkeypatch.delitem(sys.modules, "needs_large", raising=False)
    module = import_with_stand_in("needs_large", "large", "Unused", "part")
    assert issubclass(module.Unused, Exception)
    assert "large" not in sys.modules
    assert importlib.import_module("large").wanted == 1
    assert import_with_stand_in("needs_large", "large") is module
