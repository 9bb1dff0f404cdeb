"""Limits on the tree: what lies at its top, the length of files of tests and of their names."""

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
# What client programs have installed is not ours.
INSTALLED = {"node_modules", ".venv"}
# Names that architecture or convention puts at the top; those that begin with a dot are tools'.
TOP = {
    *("pyproject.toml", "README.md", "proto", "generated", "services", "facade", "envoy", "tests"),
    *("Makefile", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs", "deploy"),
    *("requirements.lock", "requirements-run.lock", "Dockerfile", "compose.yaml"),
}
# Where inference asks for the dialect of a request's caller: answers to responses are stored, and
# the records of usage name the endpoint. Elsewhere fields of the request say what a caller wants.
ASKS_FOR_DIALECT = {"response_cache/rules.py", "usage/metering.py"}
# `isdigit` of bytes, which accepts ASCII digits alone.
READS_BYTES = {"facade/http/plain.py"}
# What mirrors something else has its names: wire types of dialects, adapters of providers, sections
# of the settings.
MIRRORS = (
    *("facade/dialects/", "services/sandbox/"),
    *("services/inference/providers/", "services/common/settings/"),
)
_DEFINITION = re.compile(r"^( {4}|)(?:async )?(class|def) (\w+)", re.M)
_PUBLIC_CLASS = re.compile(r"^class ([^\W_]\w*)", re.M)
MAX_LINES = 450
MAX_NAME_LENGTH = 59


@cache
def python_files() -> list[Path]:
    return [path for path in TESTS.rglob("*.py") if INSTALLED.isdisjoint(path.parts)]


def names_in(path: Path) -> Counter[str]:
    """Return how often a file defines each test; methods have their class in front.

    Read by lines, as trees of all files take longer than the other tests of this module.
    """
    names: Counter[str] = Counter()
    prefix = ""
    for indent, kind, name in _DEFINITION.findall(path.read_text()):
        if not indent:
            prefix = f"{name}." if kind == "class" else ""
        if kind == "def" and name.startswith("test") and bool(indent) == bool(prefix):
            names[prefix + name] += 1
    return names


def test_test_files_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in python_files()}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_test_names_are_short_and_unique_in_their_file():
    for path in python_files():
        for name, count in names_in(path).items():
            assert len(name.rpartition(".")[2]) <= MAX_NAME_LENGTH, f"{path}: {name}"
            assert count == 1, f"{path}: {name} hides another test"


def test_the_top_of_the_tree_holds_what_convention_puts_there():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=TESTS.parent, capture_output=True, text=True, check=True
    )
    names = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in names if not name.startswith(".")} <= TOP


def test_no_number_is_what_str_isdigit_accepts():
    root = TESTS.parent
    asking = {
        str(path.relative_to(root))
        for package in ("services", "facade", "envoy")
        for path in (root / package).rglob("*.py")
        if INSTALLED.isdisjoint(path.parts) and ".isdigit(" in path.read_text()
    }
    assert asking == READS_BYTES, "use services.common.text.texts.parse_digits: int('²') fails"


def test_no_two_public_classes_have_one_name():
    root = TESTS.parent
    modules: dict[str, list[str]] = {}
    for package in ("services", "facade", "envoy"):
        for path in (root / package).rglob("*.py"):
            module = str(path.relative_to(root))
            if module.startswith(MIRRORS) or not INSTALLED.isdisjoint(path.parts):
                continue
            for name in _PUBLIC_CLASS.findall(path.read_text()):
                modules.setdefault(name, []).append(module)
    shared = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert shared == {}


def asks_for_dialect(node: ast.AST) -> bool:
    """Return whether code depends on which dialect a request is written in.

    To compare it with the dialect of a provider or of a part of the request is another matter.
    """
    match node:
        case ast.Compare():
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
        case ast.Subscript():
            return ast.unparse(node.slice).endswith("request.dialect")
        case ast.Match():
            return ast.unparse(node.subject).endswith("request.dialect")
        case _:
            return False
    is_named = any(side.rpartition(".")[2].isupper() for side in sides)
    is_known = any(side.endswith("DIALECT_UNSPECIFIED") for side in sides)
    return is_named and not is_known and any(side.endswith("request.dialect") for side in sides)


def test_inference_does_not_ask_for_its_callers_dialect():
    inference = TESTS.parent / "services" / "inference"
    texts = {path: path.read_text() for path in inference.rglob("*.py")}
    asking = {
        str(path.relative_to(inference))
        for path, text in texts.items()
        if "request.dialect" in text and any(map(asks_for_dialect, ast.walk(ast.parse(text))))
    }
    assert asking == ASKS_FOR_DIALECT
