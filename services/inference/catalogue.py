"""What is known of servers and models: `catalogue.toml`, read once.

Context sizes of models that are not in it come from `context_sizes.json`, which
`make context-sizes` writes from the package genai-prices (MIT licence). The package itself is
no dependency: importing it takes 280 ms and 28 MB, most of it for pydantic and a client that
fetches updates. It has no limits of output, rounds some sizes down, and the gateway has no use
for its prices. The file takes 0.3 ms to read, when a provider with a section in it is set up.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind

Inputs = frozenset[MediaKind.ValueType]
# What models read, by the provider's name and the model's.
Abilities = Mapping[tuple[str, str], Inputs]

# What media are called in this table and in the settings.
MEDIA: Mapping[str, MediaKind.ValueType] = {
    "image": conversation_pb2.MEDIA_KIND_IMAGE,
    "pdf": conversation_pb2.MEDIA_KIND_DOCUMENT,
    "audio": conversation_pb2.MEDIA_KIND_AUDIO,
    "video": conversation_pb2.MEDIA_KIND_VIDEO,
}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model.

    Attributes:
        display_name: its name for people, or "".
        inputs: media it reads beside text, or None when unknown.
        context_window: tokens it can read (OpenAI's cover what it writes too), or 0.
        max_output_tokens: tokens it can write, or 0 when unknown.
        tools: whether it can call tools, or None when unknown.
        thinking: whether it can think before it answers, or None.
        structured_output: whether it can be held to a JSON Schema, or None.
        adaptive: whether it decides by itself how much it thinks, asked by an effort and
            not by a budget.
        efforts: the efforts it can be asked for, weakest first; () when unknown.
        refuses: fields that it refuses, names of `services.inference.refusals`.
        thinking_off: fields of a body that keep it from thinking; none when unknown.
        listed: whether it is shown to callers who ask which models there are.
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
    """What is known of a server, whatever its models.

    Attributes:
        sizes: section of `context_sizes.json` that has its names for models, or "".
        newest: whether it knows OpenAI's newest shapes of messages.
        image_urls: whether it fetches images by their addresses.
        checks_signatures: whether it takes back no thinking but what it has signed itself.
        efforts, refuses, thinking_off: as of `ModelInfo`, for all of its models.
    """

    sizes: str = ""
    newest: bool = False
    image_urls: bool = True
    checks_signatures: bool = False
    efforts: tuple[str, ...] = ()
    refuses: frozenset[str] = frozenset()
    thinking_off: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes models and serves them itself.

    Attributes:
        hosts: where it serves them.
        claims: how the names begin that are its models when nothing else says so.
        leaves: names that begin so and are not served by it.
        models: its models by name, without the date of a snapshot.
        families: what the other models share, by how their names begin; the first counts.
    """

    hosts: Sequence[str]
    claims: tuple[str, ...]
    leaves: tuple[str, ...]
    models: Mapping[str, ModelInfo]
    families: Sequence[tuple[tuple[str, ...], ModelInfo]]


_FINE_TUNED = "ft:"
_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def facts_of(kind: str, upstream: str) -> ModelInfo:
    """Return what is known of the model `upstream` behind a provider of `kind`.

    Compatible servers serve models of every maker; one that goes by a well-known
    name is taken at its word. Of any other nothing is known: it has no limits, and is
    sent every medium until its provider refuses one.
    """
    maker = MAKERS.get(kind)
    if maker is None:
        return UNKNOWN
    if upstream.startswith(_FINE_TUNED):
        upstream = upstream.removeprefix(_FINE_TUNED).partition(":")[0]
    known = maker.models.get(upstream) or maker.models.get(_SNAPSHOT.sub("", upstream))
    return known or _family_of(upstream, maker.families)


def server_facts(kind: str, base_url: str) -> ServerFacts:
    """Return what is known of the server at an address, by its host."""
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
    """Return the tokens that a model of a server can read, or 0 where that is not known."""
    if not server.sizes:
        return 0
    sizes = _context_sizes(server.sizes)
    return sizes.get(upstream) or sizes.get(_SNAPSHOT.sub("", upstream), 0)


def maker_of(upstream: str) -> str:
    """Return the kind of provider whose maker a bare name belongs to, or ""."""
    for kind, maker in MAKERS.items():
        if upstream.startswith(maker.claims) and not upstream.startswith(maker.leaves):
            return kind
    return ""


@cache
def _context_sizes(section: str) -> Mapping[str, int]:
    file = resources.files("services.inference").joinpath("context_sizes.json")
    sizes: Mapping[str, int] = orjson.loads(file.read_bytes())[section]
    return sizes


def _is_at(pattern: str, host: str, place: str) -> bool:
    if pattern.startswith("*"):
        return host.endswith(pattern[1:])
    return pattern in (host, place)


def _family_of(upstream: str, families: Sequence[tuple[tuple[str, ...], ModelInfo]]) -> ModelInfo:
    # The last part of a path, such as that of a repository of models.
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


_TABLE = tomllib.loads(
    resources.files("services.inference").joinpath("catalogue.toml").read_text("utf-8")
)
_SERVERS = [_read_server(fields) for fields in _TABLE["servers"]]
# By the kind of provider that speaks to them, which is the maker's dialect.
MAKERS: Mapping[str, Maker] = {
    kind: _read_maker(fields) for kind, fields in _TABLE["makers"].items()
}
