"""The methods of the official clients, and which of them are served.

`tests.tools.reference` makes `docs/reference/sdk-methods.md` of it.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from yarl import URL

from facade.aliases import route_of
from facade.endpoints import ENDPOINTS
from facade.http.router import Route, Router
from facade.unserved import instead_of
from tests.tools.google_methods import google_methods

_VERBS = {
    "_get": "GET",
    "_get_api_list": "GET",
    "_post": "POST",
    "_put": "PUT",
    "_patch": "PATCH",
    "_delete": "DELETE",
}
_VARIABLE = re.compile(r"\{[^}]*\}")
_SERVED = "served"
_GOOGLE = "google.genai"
_CLIENTS = {"openai": "OpenAI", "anthropic": "Anthropic", "google.genai": "Google"}


class Method(NamedTuple):
    """A request that a client sends: its HTTP method, and its path with variables in braces."""

    verb: str
    path: str


def methods(package: str) -> Sequence[Method]:
    """Return all methods of a client, from its sources."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None, f"{package} has no files"
    folder = Path(spec.origin).parent
    sent = {Method(*one) for one in google_methods(folder)} if package == _GOOGLE else set()
    for path in sorted((folder / "resources").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in _VERBS and node.args:
                    sent.update(_method(node, _VERBS[node.func.attr]))
    assert sent, f"no method of {package} is in its sources"
    return sorted(sent, key=lambda method: (method.path, method.verb))


def _method(call: ast.Call, verb: str) -> Iterator[Method]:
    for keyword in call.keywords:
        if keyword.arg == "method" and isinstance(keyword.value, ast.Constant):
            verb = str(keyword.value.value).upper()
    match call.args[0]:
        case ast.Constant(str(path)) | ast.Call(args=[ast.Constant(str(path)), *_]):
            path = path.partition("?")[0]
            yield Method(verb, path if path.startswith("/v1/") else f"/v1{path}")
        case _:
            # A path that an earlier answer has named, of a method that is listed by itself.
            pass


def tables() -> Iterator[str]:
    """Yield the lines of the page: for each client its methods, and what the gateway does.

    Raises:
        AssertionError: a method is neither served nor in `facade.unserved`.
    """
    router = Router([Route(one.method, one.path, one.handler) for one in ENDPOINTS], route_of)
    for number, (package, name) in enumerate(_CLIENTS.items()):
        yield from [""] * bool(number)
        yield from (f"## {name}'s client", "", "| method | in the gateway |", "|---|---|")
        for area, in_area in groupby(methods(package), key=_area):
            yield from _rows(area, [(method, _verdict(router, method)) for method in in_area])


def _area(method: Method) -> str:
    return "/".join(method.path.split("/", 3)[:3])


def _rows(area: str, verdicts: Sequence[tuple[Method, str]]) -> Iterator[str]:
    """Yield a row for each method of an area; one for all if none of several is served."""
    distinct = {verdict for _, verdict in verdicts}
    if len(verdicts) > 1 and len(distinct) == 1 and distinct != {_SERVED}:
        yield f"| `{area}…`: {len(verdicts)} methods | {distinct.pop()} |"
    else:
        for method, verdict in verdicts:
            yield f"| `{method.verb} {method.path}` | {verdict} |"


def _verdict(router: Router, method: Method) -> str:
    path = _VARIABLE.sub("x", method.path)
    if router.find(method.verb, URL.build(path=path)).endpoint is not None:
        return _SERVED
    advice = instead_of(method.verb, path)
    assert advice, f"{method.verb} {method.path}: say in facade/unserved.py what to do instead"
    return f"501: {advice}"
