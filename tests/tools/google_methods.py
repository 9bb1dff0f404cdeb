"""The methods of Google's client, from its sources, as `sdk_methods` has those of others.

Its modules build the paths of Google's two APIs: those of the Gemini API are taken. Newer modules
are generated, and name theirs in calls.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_BASE = "/v1beta/"
_UPLOAD = "/upload/v1beta/"
_VERTEX = "vertexai"
_VERSION = re.compile(r"\{+api_version\}+")
# Paths that are a variable, or begin with one, by module: the resource of the module.
_RESOURCES: Mapping[str, Mapping[str, str]] = {
    "caches": {"{name}": "cachedContents/{name}"},
    "documents": {
        "{name}": "fileSearchStores/{store}/documents/{name}",
        "{parent}": "fileSearchStores/{store}",
    },
    "file_search_stores": {
        "{name}": "fileSearchStores/{name}",
        "{file_search_store_name}": "fileSearchStores/{name}",
    },
    "models": {"{model}": "models/{model}", "{models_url}": "models", "{name}": "models/{name}"},
    "batches": {"{model}": "models/{model}", "{name}": "batches/{name}"},
    "operations": {"{operationName}": "operations/{name}"},
    "tunings": {"{name}": "tunedModels/{name}"},
}


def google_methods(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the HTTP method and the path of each method; variables are in braces."""
    for file in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield from _of_function(node, file.stem)
    for file in sorted((folder / "_gaos").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                yield from _of_generated(node)


def _of_function(function: ast.FunctionDef, module: str) -> Iterator[tuple[str, str]]:
    """Yield the request of a method, if it sends one to the Gemini API."""
    verbs = [
        call.args[0].value.upper()
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("request", "request_streamed")
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    ]
    paths = {path for node in _of_gemini(function) if (path := _assigned(node))}
    for verb in dict.fromkeys(verbs):
        for path in sorted(paths):
            yield verb, _full(path.partition("?")[0], module)


def _of_gemini(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those for Vertex AI."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _VERTEX in ast.unparse(node.test):
            is_negated = isinstance(node.test, ast.UnaryOp)
            waiting += node.body if is_negated else node.orelse
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def _assigned(node: ast.AST) -> str:
    """Return the path that a node assigns, or ""."""
    match node:
        case ast.Assign(targets=[ast.Name(id="path")], value=ast.Constant(str(path))):
            return path
    return ""


def _full(path: str, module: str) -> str:
    path = _VERSION.sub("v1beta", path)
    first, slash, rest = path.partition("/")
    name, colon, method = first.partition(":")
    if name.startswith("{"):
        resources = _RESOURCES.get(module, {})
        assert name in resources, f"{module}.py: say in {Path(__file__).name} what {name} is"
        first = resources[name] + colon + method
    path = first + slash + rest
    if path.startswith("upload/v1beta/"):
        head, tail = _UPLOAD, path.removeprefix("upload/v1beta/")
        for variable, resource in _RESOURCES.get(module, {}).items():
            tail = tail.replace(variable, resource)
        return head + tail
    return _BASE + path


def _of_generated(call: ast.Call) -> Iterator[tuple[str, str]]:
    match call.func:
        case ast.Attribute(attr="_build_request"):
            named = {one.arg: one.value for one in call.keywords}
            match named.get("method"), named.get("path"):
                case ast.Constant(str(verb)), ast.Constant(str(path)):
                    yield verb, _VERSION.sub("v1beta", path)
