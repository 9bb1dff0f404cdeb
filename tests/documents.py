"""The names that the documents mention: parsing, and checks that each of them exists."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import typer
from pydantic import BaseModel

from facade.endpoints import ENDPOINTS, OPERATORS_ENDPOINTS
from gateway.errors.v1.errors_pb2 import Reason
from services import cli
from services.common.settings import CONFIG_VARIABLE, ENVIRONMENT, Settings

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "envoy/README.md", *sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")
))  # fmt: skip

_FOLDERS = ("deploy", "docs", "envoy", "facade", "generated", "proto", "services", "tests")
_SUFFIXES = ("json", "md", "mjs", "proto", "py", "toml", "yaml")
_PATH = re.compile(
    rf"(?:{'|'.join(_FOLDERS)})/[\w./<>*-]*|[\w./<>*-]+\.(?:{'|'.join(_SUFFIXES)})|Makefile"
)
# Files of the operator's own, and data of a gateway that runs.
_OWN = frozenset({"gateway.toml", "./gateway.toml"})
# Files of other programs.
_OF_OTHERS = frozenset({"config.yaml", "extra-openai-models.yaml", "opencode.json"})
_MODULE = re.compile(r"(?:facade|services)(?:\.\w+)+")
_SETTING = re.compile(rf"\[{{0,2}}((?:{'|'.join(Settings.model_fields)})(?:\.\w+)*)\]{{0,2}}")
_VARIABLE = re.compile(r"GATEWAY_[A-Z_]+")
_SHELL_VARIABLES = frozenset({"GATEWAY_KEY", "GATEWAY_URL"})  # of clients, and commands as such
_ENDPOINT = re.compile(r"(?:(GET|POST|PUT|PATCH|DELETE|HEAD) )?(/[\w{}/.…-]+)(?:\?\w+)?")
_HEADER = re.compile(r"x-(?:gateway|memory|upstream|should)-[a-z-]+")
_METRIC = re.compile(r"gateway_[a-z_]+")
_CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]*)+")
# Classes of libraries.
_FOREIGN = frozenset({"AsyncOpenAI", "OpenAILike", "PyAV", "ResponsesWS", "TypedDict", "TypedDicts",
                      "DownstreamTlsContext", "HttpOnly", "UpstreamTlsContext"})  # fmt: skip
_COMMAND = re.compile(r"^gateway ((?:[a-z-]+ ?)+)")
_TARGET = re.compile(r"\bmake ([a-z][a-z-]*)")


def read(document: str) -> str:
    """Return the text of a document, by its path from the root."""
    return (ROOT / document).read_text()


def code_blocks(text: str, language: str) -> Sequence[str]:
    """Return the blocks of code in a language."""
    blocks = re.findall(r"^```([a-z]*)\n(.*?)^```", text, re.M | re.S)
    return [block for name, block in blocks if name == language]


def spans(text: str) -> Sequence[str]:
    """Return the code spans of a text, without its blocks of code."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]


def unknown_names(text: str) -> Sequence[str]:
    """Return the names in the code spans of a text that name nothing here, and its bad links."""
    unknown = [span for span in spans(text) if any(is_wrong(span) for is_wrong in _CHECKS)]
    unknown += [f"make {target}" for target in _targets_in(text) if target not in make_targets()]
    shell = (line for block in code_blocks(text, "sh") for line in block.splitlines())
    unknown += [line for line in shell if _is_unknown_command(line)]
    return unknown


def broken_links(text: str, folder: Path) -> Sequence[str]:
    """Return the relative links of a document in `folder` that lead nowhere."""
    prose = re.sub(r"`[^`\n]+`", "", text)
    links = re.findall(r"\]\((?!https?://)([^)\s]+)\)", prose)
    return [link for link in links if not _leads_somewhere(link, text, folder)]


def _leads_somewhere(link: str, text: str, folder: Path) -> bool:
    name, _, anchor = link.partition("#")
    target = folder / name
    if not name or (anchor and target.suffix == ".md" and target.is_file()):
        return anchor in anchors(target.read_text() if name else text)
    return target.exists()


def anchors(text: str) -> frozenset[str]:
    """Return the anchors of the headings of a document, as GitHub and the site name them."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", prose, re.M)
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    )


@cache
def make_targets() -> frozenset[str]:
    """Return the targets of the Makefile."""
    return frozenset(re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.M))


@cache
def endpoints() -> Mapping[str, frozenset[str]]:
    """Return the methods of each path; names of parameters are left out."""
    paths: defaultdict[str, set[str]] = defaultdict(set)
    for endpoint in (*ENDPOINTS, *OPERATORS_ENDPOINTS):
        paths[_without_names(endpoint.documented_path)].add(endpoint.method.lower())
    return {path: frozenset(methods) for path, methods in paths.items()}


def reasons() -> frozenset[str]:
    """Return the codes of all reasons of failures."""
    names = (name.removeprefix("REASON_").lower() for name in Reason.keys())
    return frozenset(names) - {"unspecified"}


def http_error_codes() -> frozenset[str]:
    """Return the codes of errors of HTTP itself, which have no reason."""
    return frozenset(re.findall(r'HttpError\(\s*\d+,\s*"(\w+)"', sources()))


@cache
def sources() -> str:
    """Return the product's own sources and protos as one text."""
    return "\n".join(
        path.read_text()
        for folder in ("facade", "services", "proto")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".proto")
    )


@cache
def _declared() -> frozenset[str]:
    """Return the names of all classes, messages and the like, and of all variables of modules."""
    declared = r"\b(?:class|enum|message|rpc|service) (\w+)|^(\w+) = "
    return frozenset(filter(None, chain(*re.findall(declared, sources(), re.M))))


@cache
def _commands() -> Any:
    return typer.main.get_command(cli.app)


@cache
def _files() -> frozenset[str]:
    return frozenset(
        str(path.relative_to(ROOT))
        for folder in (*_FOLDERS, "")
        for path in ((ROOT / folder).rglob("*") if folder else ROOT.iterdir())
        if "node_modules" not in path.parts and ".venv" not in path.parts
    )


def _is_unknown_path(span: str) -> bool:
    if not _PATH.fullmatch(span) or span in _OWN | _OF_OTHERS or span.startswith("/"):
        return False
    name = re.escape(span.rstrip("/")).replace(r"\*", "[^/]*")
    name = re.sub(r"<\w+>", "[^/]+", name)
    # A file's name alone stands for the files of that name.
    is_whole = span.split("/")[0] in _FOLDERS
    pattern = re.compile(name if is_whole else rf"(?:.*/)?{name}")
    return not any(map(pattern.fullmatch, _files()))


def _is_unknown_module(span: str) -> bool:
    if not _MODULE.fullmatch(span):
        return False
    module, _, name = span.rpartition(".")
    for dotted, attribute in ((span, ""), (module, name)):
        path = ROOT / dotted.replace(".", "/")
        if path.with_suffix(".py").exists() or path.is_dir():
            return bool(attribute) and not hasattr(import_module(dotted), attribute)
    return True


def _is_unknown_setting(span: str) -> bool:
    match = _SETTING.fullmatch(span)
    if match is None or _PATH.fullmatch(span) or ("." not in match[1] and "[" not in span):
        return False
    section: Any = Settings
    for name in match[1].split("."):
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            if not get_args(section):
                return True
            section = get_args(section)[-1]  # of a table of providers, or a list of models
            if span.startswith("[providers."):
                continue
        if name not in section.model_fields:
            return True
        section = section.model_fields[name].annotation
    return False


def _is_unknown_variable(span: str) -> bool:
    named = Settings().stored_providers.encryption_keys_env
    variables = {*ENVIRONMENT, CONFIG_VARIABLE, named, *_SHELL_VARIABLES}
    return any(name not in variables for name in _VARIABLE.findall(span) if not name.endswith("_"))


def _is_unknown_endpoint(span: str) -> bool:
    match = _ENDPOINT.fullmatch(span)
    if match is None or not (match[1] or re.match(r"/(beta|coding|article|admin)/v1", match[2])):
        return False
    method, path = (match[1] or "").lower(), _without_names(match[2])
    if path.startswith("/v1/"):
        path = f"/beta{path}"
    if path.endswith("…"):
        prefix = path.removesuffix("…")
        return not any(endpoint.startswith(prefix) for endpoint in endpoints())
    if path in ("/beta/v1", "/coding/v1", "/article/v1", "/admin/v1"):
        return False
    return path not in endpoints() or (bool(method) and method not in endpoints()[path])


def _without_names(path: str) -> str:
    return re.sub(r"{[^}]*}", "{}", path)


def _is_unknown_header(span: str) -> bool:
    return any(f'"{name}' not in sources() for name in _HEADER.findall(span))


def _is_unknown_metric(span: str) -> bool:
    return bool(_METRIC.fullmatch(span)) and f'"{span.removesuffix("_total")}"' not in sources()


def _is_unknown_class(span: str) -> bool:
    if not _CLASS.fullmatch(span) or span in _FOREIGN:
        return False
    return span not in _declared()


def _is_unknown_command(line: str) -> bool:
    match = _COMMAND.match(line)
    if match is None:
        return False
    command = _commands()
    for word in match[1].split():
        commands = getattr(command, "commands", None)
        if commands is None:
            return False  # an argument
        if word not in commands:
            return True
        command = commands[word]
    return False


def _targets_in(text: str) -> Iterator[str]:
    for code in (*spans(text), *code_blocks(text, "sh")):
        yield from _TARGET.findall(code)


_CHECKS: Sequence[Callable[[str], bool]] = (
    _is_unknown_path,
    _is_unknown_module,
    _is_unknown_setting,
    _is_unknown_variable,
    _is_unknown_endpoint,
    _is_unknown_header,
    _is_unknown_metric,
    _is_unknown_class,
    _is_unknown_command,
)
