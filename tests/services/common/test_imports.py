import importlib
import ssl
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from services.common.imports import import_bare, import_without_tls


def test_tls_is_hidden_from_one_import_only(tmp_path, monkeypatch) -> None:
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


DOCUMENTED = """
    'Of a module.'
    from abc import ABC
    from dataclasses import dataclass

    class Plain:
        'Of a class.'
        def method(self):
            'Of a method.'
            def inner():
                'Of a function inside.'
            return inner, 'result'

    class Abstract(ABC):
        'Of an abstract class.'

    @dataclass
    class Data:
        'Of a dataclass.'
        size: int = 1

    async def used():
        'Text.'
        return 'Text.'

    def plain():
        return 'first', lambda: 'second', [text for text in ('third',)]
"""


def test_modules_without_docstrings_work_as_before(tmp_path: Path) -> None:
    (tmp_path / "documented.py").write_text(textwrap.dedent(DOCUMENTED))
    code = """
import sys
from services.common.imports import drop_docstrings
drop_docstrings()
sys.path.insert(0, sys.argv[1])
import documented as module
inner, result = module.Plain().method()
docs = [module, module.Plain, module.Plain.method, inner, module.Abstract, module.Data]
assert not any(one.__doc__ for one in docs), [one.__doc__ for one in docs]
assert result == "result" and module.Data(2).size == 2
first, second, third = module.plain()
assert (first, second(), third) == ("first", "second", ["third"])
try:
    module.used().send(None)
except StopIteration as end:
    assert end.value == "Text.", end.value
import asyncio, email.policy, sqlalchemy, pydantic
assert not sqlalchemy.select.__doc__ and not asyncio.gather.__doc__
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
