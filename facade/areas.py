"""Areas of the API: the groups of endpoints in its descriptions, and the anchors of `/docs`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from facade.endpoint import EndpointSpec


class Area(NamedTuple):
    """A group of endpoints.

    Attributes:
        anchor: its anchor in `/docs`.
        title: its heading.
        words: segments of paths, below the version, that belong to it.
    """

    anchor: str
    title: str
    words: frozenset[str]


def _area(title: str, *words: str) -> Area:
    return Area(title.lower().replace(" ", "-"), title, frozenset(words))


# Of a path with words of several areas, the first area counts.
AREAS: Sequence[Area] = (
    _area("Administration", "admin"),
    _area("Documents", "article", "articles"),
    _area("Generate content", "v1beta"),
    _area("Chat completions", "chat", "completions"),
    _area("Responses", "responses"),
    _area("Conversations", "conversations"),
    _area("Batches", "batches", "batch"),
    _area("Messages", "messages", "message", "count_tokens", "complete"),
    _area("Embeddings", "embeddings", "embedding"),
    _area("Images", "images", "image"),
    _area("Audio", "audio", "speech", "transcriptions", "translations"),
    _area("Moderations", "moderations", "moderation"),
    _area("Rerank", "rerank", "reranking"),
    _area("Models", "models", "model"),
    _area("Vector stores", "vector_stores"),
    _area("Files", "files", "file", "storage", "uploads"),
    _area("Memory", "memories", "memory"),
    _area("Usage", "usage"),
)
OPERATIONS = Area("operations", "Operations", frozenset())


def area_of(path: str) -> Area | None:
    """Return the area that a path belongs to, also a misspelled one; None if no word is known."""
    segments = path.lower().split("/")
    return next((area for area in AREAS if not area.words.isdisjoint(segments)), None)


def by_area(endpoints: Iterable[EndpointSpec]) -> Mapping[Area, Sequence[EndpointSpec]]:
    """Return endpoints by their areas; areas without endpoints are left out."""
    # Requests of callers come first, and administration last.
    grouped: dict[Area, list[EndpointSpec]] = {area: [] for area in (*AREAS[2:], *AREAS[1::-1])}
    grouped[OPERATIONS] = []
    for endpoint in endpoints:
        grouped[area_of(endpoint.documented_path) or OPERATIONS].append(endpoint)
    return {area: members for area, members in grouped.items() if members}
