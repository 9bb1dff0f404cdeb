"""The catalogue of known servers and models, loaded once from `catalogue.toml`.

Context sizes of models that are not in it come from `context_sizes.json`, which
`make context-sizes` writes from the package genai-prices (MIT licence). The package itself is
not a dependency: importing it takes 280 ms and 28 MB, most of it for pydantic and a client that
fetches updates. It has no output limits and rounds some sizes down. The file takes 0.3 ms to read,
when a provider with a section in it is set up.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind
from services.common.settings.clouds import BEDROCK, VERTEX

Inputs = frozenset[MediaKind.ValueType]
# Media read by a model, by provider and model name.
Abilities = Mapping[tuple[str, str], Inputs]

_FOLDER = Path(__file__).parent
# Names of media in the catalogue and in the settings.
MEDIA: Mapping[str, MediaKind.ValueType] = {
    "image": conversation_pb2.MEDIA_KIND_IMAGE,
    "pdf": conversation_pb2.MEDIA_KIND_DOCUMENT,
    "audio": conversation_pb2.MEDIA_KIND_AUDIO,
    "video": conversation_pb2.MEDIA_KIND_VIDEO,
}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Known properties of a model.

    Attributes:
        display_name: a human-readable name, or "".
        inputs: kinds of media that it reads besides text; None if unknown.
        context_window: in tokens (for OpenAI's models including output), or 0.
        max_output_tokens: 0 if unknown.
        tools: whether it can call tools; None if unknown.
        thinking: whether it supports thinking; None if unknown.
        structured_output: whether it supports JSON Schema output; None if unknown.
        adaptive: whether thinking is controlled by an effort, not by a budget.
        efforts: supported efforts, weakest first; () if unknown.
        refuses: fields that it rejects, as named by `services.inference.learned.refusals`.
        thinking_off: request fields that disable thinking; empty if unknown.
        listed: whether it is included in lists of models.
    """

    display_name: str = ""
    inputs: Inputs | None = None
    context_window: int = 0
    max_output_tokens: int = 0
    tools: bool | None = None
    thinking: bool | None = None
    structured_output: bool | None = None
    adaptive: bool = False
    efforts: tuple[str, ...] = ()
    refuses: frozenset[str] = frozenset()
    thinking_off: Mapping[str, Any] = field(default_factory=dict)
    listed: bool = True


UNKNOWN = ModelInfo()


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Known properties of a server, for all of its models.

    Attributes:
        sizes: section of `context_sizes.json` with its model names, or "".
        newest: whether it knows OpenAI's newest shapes of messages.
        image_urls: whether it fetches images by URL.
        responses: whether it has OpenAI's `/responses`, below a URL that ends in `/v1`.
        checks_signatures: whether it rejects thinking that it has not signed.
        efforts, refuses, thinking_off: as of `ModelInfo`, for all of its models.
    """

    sizes: str = ""
    newest: bool = False
    image_urls: bool = True
    responses: bool = False
    checks_signatures: bool = False
    efforts: tuple[str, ...] = ()
    refuses: frozenset[str] = frozenset()
    thinking_off: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Maker:
    """A maker of models who also serves them.

    Attributes:
        hosts: hosts of its servers.
        claims: name prefixes of its models.
        leaves: names with such a prefix that it does not serve.
        models: its models by name, without snapshot dates.
        families: properties of other models by name prefix; the first match wins.
    """

    hosts: Sequence[str]
    claims: tuple[str, ...]
    leaves: tuple[str, ...]
    models: Mapping[str, ModelInfo]
    families: Sequence[tuple[tuple[str, ...], ModelInfo]]


_FINE_TUNED = "ft:"
# Bedrock's names of models of a maker: an inference profile's geography or the path of an ARN, the
# maker, the maker's name, and a version.
_ON_BEDROCK = re.compile(
    r"(?:.*/)?(?:[a-z-]+\.)?(?P<maker>anthropic|openai)\.(?P<name>[a-z0-9.-]+?)(?:-v?\d(?::\d+)?)?",
    re.ASCII,
)
_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


# Vertex AI's names: the path of a publisher, the maker's name, and a snapshot after an `@`.
_PUBLISHER = re.compile(r"(?:publishers/[a-z0-9-]+/)?(?:models/)?", re.ASCII)


def maker_and_name(kind: str, upstream: str) -> tuple[str, str]:
    """Return the maker of a model, as the provider kind of its own API, and its name there.

    Args:
        kind: the kind of the provider, which is a cloud or the maker itself.
        upstream: the provider's name for the model.
    """
    if kind == BEDROCK and (match := _ON_BEDROCK.fullmatch(upstream)):
        return match["maker"], match["name"]
    if kind == VERTEX:
        name = _PUBLISHER.sub("", upstream, count=1).replace("@", "-")
        return maker_of(name) or "gemini", name
    return kind, upstream


def facts_of(kind: str, upstream: str) -> ModelInfo:
    """Return the known properties of the model `upstream` at a provider of `kind`.

    Compatible servers serve models of every maker, so a well-known name is trusted. Models with
    other names are unknown: they have no limits, and are sent all kinds of media until their
    provider rejects one.
    """
    kind, upstream = maker_and_name(kind, upstream)
    maker = MAKERS.get(kind)
    if maker is None:
        return UNKNOWN
    if upstream.startswith(_FINE_TUNED):
        upstream = upstream.removeprefix(_FINE_TUNED).partition(":")[0]
    model_facts = maker.models.get(upstream) or maker.models.get(_SNAPSHOT.sub("", upstream))
    return model_facts or _family_of(upstream, maker.families)


def server_facts(kind: str, base_url: str) -> ServerFacts:
    """Return the known properties of a server, by its host."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower()
    try:
        place = f"{host}:{parts.port}"
    except ValueError:
        place = ""
    for server_kind, hosts, facts in _SERVERS:
        if server_kind == kind and any(_is_at(pattern, host, place) for pattern in hosts):
            return facts
    return ServerFacts()


def context_window(server: ServerFacts, upstream: str) -> int:
    """Return the context window of a server's model in tokens, or 0 if unknown."""
    if not server.sizes:
        return 0
    sizes = _context_sizes(server.sizes)
    return sizes.get(upstream) or sizes.get(_SNAPSHOT.sub("", upstream), 0)


def maker_of(upstream: str) -> str:
    """Return the provider kind of the maker who claims a bare name, or ""."""
    for kind, maker in MAKERS.items():
        if upstream.startswith(maker.claims) and not upstream.startswith(maker.leaves):
            return kind
    return ""


@cache
def _context_sizes(section: str) -> Mapping[str, int]:
    file = _FOLDER.joinpath("context_sizes.json")
    sizes: Mapping[str, int] = orjson.loads(file.read_bytes())[section]
    return sizes


def _is_at(pattern: str, host: str, place: str) -> bool:
    if pattern.startswith("*"):
        return host.endswith(pattern[1:])
    return pattern in (host, place)


def _family_of(upstream: str, families: Sequence[tuple[tuple[str, ...], ModelInfo]]) -> ModelInfo:
    # The last part of a path, such as a repository name.
    last = f"/{upstream.rpartition('/')[2].lower()}"
    for beginnings, facts in families:
        if upstream.startswith(beginnings) or last.startswith(beginnings):
            return facts
    return UNKNOWN


def _read_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of an entry in the types of `ModelInfo`."""
    read = dict(fields)
    if "inputs" in read:
        read["inputs"] = frozenset(MEDIA[name] for name in read["inputs"])
    if "efforts" in read:
        read["efforts"] = tuple(read["efforts"])
    if "refuses" in read:
        read["refuses"] = frozenset(read["refuses"])
    return read


def _read_server(fields: dict[str, Any]) -> tuple[str, tuple[str, ...], ServerFacts]:
    kind, hosts = fields.pop("kind"), tuple(fields.pop("hosts"))
    return kind, hosts, ServerFacts(**_read_fields(fields))


def _read_maker(fields: Mapping[str, Any]) -> Maker:
    families = [
        (tuple(family.pop("names")), ModelInfo(**_read_fields(family)))
        for family in fields["families"]
    ]
    models = {
        name: replace(_family_of(name, families), **_read_fields(own))
        for name, own in fields["models"].items()
    }
    claims, leaves = tuple(fields["claims"]), tuple(fields["leaves"])
    return Maker(fields["hosts"], claims, leaves, models, families)


_TABLE = tomllib.loads(_FOLDER.joinpath("catalogue.toml").read_text("utf-8"))
_SERVERS = [_read_server(fields) for fields in _TABLE["servers"]]
# By provider kind, which is the maker's dialect.
MAKERS: Mapping[str, Maker] = {
    kind: _read_maker(fields) for kind, fields in _TABLE["makers"].items()
}
